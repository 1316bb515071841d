"""Names for the inputs that differentiation adds to a graph."""

from __future__ import annotations

from collections.abc import Iterable

from retrograd.ir import Graph


def fresh(wanted: Iterable[str], graph: Graph) -> list[str]:
    """The wanted names, numbered where the graph has an input of that name already."""
    taken = {x.name for x in graph.inputs}
    found = []
    for name in wanted:
        new, count = name, 1
        while new in taken:
            count += 1
            new = f"{name}_{count}"
        taken.add(new)
        found.append(new)
    return found
