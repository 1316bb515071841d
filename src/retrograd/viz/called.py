"""The calls of a graph for those who look at it: what was called, its formula, and on which line.

A call is the scope of the nodes that it made. So is a module; of a layer of the library it is said,
too, what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.ir import Source
from retrograd.ir.calls import without_number
from retrograd.viz.mathematics.composites import formula_of
from retrograd.viz.scopes import prefixes

Record = dict[str, Any]
# What was called where a record is from; the name of the call, if it is part of one.
Told = tuple[Record, Source, str]


def calls(told: Sequence[Told], place: Callable[[Source], int | None]) -> list[Record]:
    """One entry for each scope that is a call or a module: `name`, what it is `of`, `formula`, and
    the `source` line. `place` gives the number of a line."""
    found: dict[str, Record] = {}
    made: dict[str, set[tuple[int, str]]] = {}  # the calls of each module
    around: set[str] = set()  # scopes that hold others
    for record, source, shown in told:
        path = record["scope"]
        if not path:
            continue
        if path not in made and path not in found:
            around.update(prefixes(path)[:-1])
        if not shown:
            made.setdefault(path, set()).add((source.call, source.called))
        if path in found:
            continue
        name, of = _named(without_number(shown)) if shown else (source.module, "")
        if name:
            formula = "" if of == "step" else formula_of(name)  # which all parameters share
            entry = {"scope": path, "name": name.removeprefix("nn."), "of": of, "formula": formula}
            found[path] = entry | {"source": place(source)}
    for path, entry in found.items():
        of_module = made.get(path, set())
        if not entry["formula"] and len(of_module) == 1 and path not in around:
            ((_, called),) = of_module
            entry["formula"] = formula_of(_named(called)[0])
    return list(found.values())


def _named(called: str) -> tuple[str, str]:
    """The name of a function, and what stands in parentheses behind it: "Adam(weight)"."""
    name, _, of = called.partition("(")
    return name, of.removesuffix(")")
