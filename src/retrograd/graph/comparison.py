"""`rg.compare`: what changed between two graphs, and where the values of two runs part."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retrograd import ir, notebook, viz
from retrograd.errors import ArgumentError, DTypeError
from retrograd.files import write_atomically
from retrograd.gc_paused import gc_paused
from retrograd.graph.display import show_page
from retrograd.graph.explorer import Backward, explorer_document, with_backward
from retrograd.graph.graph import Graph
from retrograd.ir import Node, TupleType
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.tracing.arguments import argument

LISTED = 20  # rows of a text and of a table
RUNS = "first run", "second run"


@dataclass(frozen=True)
class Change:
    """A node that is not as it was: `kind` is "added", "removed", "changed" or "moved"; `was` its
    earlier form or scope; `differs` what of it is different."""

    kind: str
    node: int
    text: str
    scope: str
    was: str
    differs: tuple[str, ...]

    def __str__(self) -> str:
        where = f" in {self.scope}" if self.scope else ""
        how = f" ({', '.join(self.differs)})" if self.differs else ""
        was = f"; was {self.was}" if self.was else ""
        return f"{self.kind:8}%{self.node} {self.text}{where}{how}{was}"


@dataclass(frozen=True)
class Difference:
    """A node with other values: `relative` is ‖a - b‖ / max(‖a‖, ‖b‖), `largest` the largest
    |a - b|, both infinite where one is not finite."""

    node: int
    text: str
    scope: str
    relative: float
    largest: float

    def __str__(self) -> str:
        where = f" in {self.scope}" if self.scope else ""
        return f"{self.relative:9.3g}{self.largest:12.3g}  %{self.node} {self.text}{where}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` found. `changes` are nodes in the order of the graphs, `differences` those
    whose values differ, the largest relative difference first. Numbers of nodes are those of the
    second graph, and go on for what only the first one has."""

    document: viz.Document

    @property
    def changes(self) -> list[Change]:
        nodes = self.document["nodes"]
        alone = {r["id"] for r in nodes if r["role"] == "constant"}  # used by what is like them
        for r in nodes:
            alone -= {x for x in r["inputs"] if nodes[x]["change"] != r["change"]}
        return [
            Change(
                r["change"], r["id"], _text(r), r["scope"], r.get("was", ""),
                tuple(r.get("differs", ())),
            )
            for r in nodes
            if r["change"] != "same" and r["body"] is None
            and not (r["id"] in alone and r["change"] in ("added", "removed"))
        ]  # fmt: skip

    @property
    def differences(self) -> list[Difference]:
        nodes = self.document["nodes"]
        return [
            Difference(
                d["node"], _text(nodes[d["node"]]), nodes[d["node"]]["scope"], d["relative"],
                d["largest"],
            )
            for d in self.document.get("differences", ())
            if d["relative"] or d["largest"]
        ]  # fmt: skip

    def to_document(self) -> viz.Document:
        """The comparison as a graph document (`docs/document-format.md`)."""
        return self.document

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the explorer's page: what changed is coloured, and listed to jump to."""
        write_atomically(path, viz.page(self.document).encode(), "page")

    def show(self, path: str | os.PathLike[str] | None = None, open: bool = True) -> Path:
        """Show that page in the browser, or in the notebook; as `Graph.show`."""
        return show_page(self.document, path, open)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes or self.differences)

    def __str__(self) -> str:
        before, after = self.document["compared"]
        changes, parted = self.changes, self.differences
        lines = [f"{before} → {after}: {len(changes)} changes" if changes else "the same graph"]
        lines += [str(c) for c in changes[:LISTED]]
        if "differences" in self.document:
            lines.append(f"{len(parted)} of {len(self.document['differences'])} values differ")
            if parted:
                lines.append(f"{'relative':>9}{'largest':>12}  node")
            lines += [str(d) for d in parted[:LISTED]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.changes)} changes, {len(self.differences)} differences>"

    def _repr_html_(self) -> str:
        """What notebooks show: the lists; `show()` puts the explorer there."""
        rows = [[c.kind, f"%{c.node}", c.text, c.scope, c.was] for c in self.changes[:LISTED]]
        told = [
            [f"{d.relative:.3g}", f"{d.largest:.3g}", f"%{d.node}", d.text, d.scope]
            for d in self.differences[:LISTED]
        ]
        return notebook.output(
            notebook.headline("Comparison", notebook.text(repr(self)[1:-1])),
            _table(("change", "node", "", "scope", "was"), rows),
            _table(("relative", "largest", "node", "", "scope"), told),
        )


def compare(
    before: ir.Graph,
    after: ir.Graph | None = None,
    *,
    inputs: tuple[Any, Any] | None = None,
    gradient: bool | None = None,
) -> Comparison:
    """What changed from one graph to another, and where the values of two runs part.

    Nodes that compute the same are the same; others are paired by name, place and operation, and
    are `changed`, or `moved` to another scope; the rest was `added` or `removed`. `inputs` are what
    two runs are given, each as `inputs=` of `Graph.to_html`: of nodes in both graphs that have the
    same shape the values are compared. Without `after` it is the same graph that is run: on two
    batches, or on the weights of two checkpoints. `gradient` says whether the gradients of a loss
    belong to it, as they do where there are inputs unless said otherwise. Raises `ArgumentError`
    where there is one thing only.

    >>> import retrograd as rg
    >>> g = rg.trace(lambda x: rg.exp(x) * 2, rg.spec((2,)))
    >>> h = rg.trace(lambda x: rg.tanh(x) * 2, rg.spec((2,)))
    >>> [c.kind for c in rg.compare(g, h).changes if c.text in ("exp", "tanh")]
    ['added', 'removed']
    >>> print(rg.compare(g, inputs=([[0.0, 1.0]], [[0.0, 2.0]])))
    the same graph
    3 of 4 values differ
     relative     largest  node
        0.626        4.67  %1 exp
        0.626        9.34  %3 mul
          0.5           1  %0 x
    """
    graphs = [_graph(g) for g in ((before,) if after is None else (before, after))]
    if after is None and inputs is None:
        raise ArgumentError("compare() needs a second graph, or inputs= of two runs, or both")
    if inputs is not None and not (isinstance(inputs, tuple | list) and len(inputs) == 2):
        kind = type(inputs).__name__
        raise ArgumentError(f"inputs= are those of two runs, a pair; this is {kind}")
    with gc_paused():
        pair = [graphs[0], graphs[-1]]
        whole = inputs is not None if gradient is None else gradient
        shown = [with_backward(g) if whole else Backward(g) for g in pair]
        if inputs is None:
            plain = [explorer_document(what) for what in shown]
            return Comparison(viz.completed(viz.compared(plain[0], plain[1])))
        given = [_arrays(g, i) for g, i in zip(pair, inputs, strict=True)]
        first = explorer_document(shown[0])
        second = explorer_document(shown[1], given[1])
        pairs = viz.paired(first, second)
        doc = viz.compared(first, second, pairs)
        doc["differences"] = _differences(shown, given, pairs)
        if after is None:
            doc["compared"] = list(RUNS)
        return Comparison(viz.completed(doc))


def _graph(g: Any) -> Graph:
    if isinstance(g, Graph):
        return g
    if isinstance(g, ir.Graph):
        return Graph(g.inputs, g.outputs, g.name)
    raise DTypeError(
        f"compare() takes graphs, not {type(g).__name__}; rg.trace(f, ...) makes one of a function"
    )


def _arrays(g: Graph, inputs: Any) -> list[Array]:
    values = g._given((), {"inputs": inputs}) or ()
    return [argument(x, v) for x, v in zip(g.inputs, values, strict=True)]


def _differences(
    shown: Sequence[Backward], given: Sequence[Sequence[Array]], pairs: viz.Pairs
) -> list[dict[str, Any]]:
    """How far the values of nodes are apart; the values of one run are kept, of the other looked
    at."""
    kept: dict[int, Array] = {}
    found: list[dict[str, Any]] = []

    def keep(i: int, value: Array) -> None:
        kept[i] = np.array(value)

    def look(j: int, value: Array) -> None:
        other = kept.get(pairs[j][0]) if j in pairs else None
        if other is not None and other.shape == value.shape:
            relative, largest = viz.difference(other, value)
            found.append({"node": j, "relative": relative, "largest": largest})

    _run(shown[0], given[0], keep)
    _run(shown[1], given[1], look)
    return viz.largest_first(found)


def _run(what: Backward, arrays: Sequence[Array], see: Callable[[int, Array], None]) -> None:
    """Run a graph, and see each value with the number its node has in the document."""
    nodes, kin = viz.shown(what.graph, what.forward)
    number: dict[Node, int] = {n: i for i, n in enumerate(nodes)}
    number.update({n: number[twin] for n, twin in kin.same.items() if twin in number})
    used = {x for n in nodes for x in n.inputs}
    seen: set[int] = set()

    def told(node: Node, value: Array, operands: Sequence[Array]) -> None:
        i = number.get(node)
        if i is not None and i not in seen and not isinstance(node.type, TupleType):
            seen.add(i)
            see(i, value if value.dtype.kind in "biufc" else value.astype(np.float32))

    ends = [n for n in nodes if n not in used]
    ReferenceProgram(ir.Graph(what.graph.inputs, ends), told)(arrays)


def _text(r: Mapping[str, Any]) -> str:
    return r["name"] or (r["attrs"] if r["role"] == "constant" else r["op"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return notebook.table(head, [[notebook.text(x) for x in row] for row in rows]) if rows else ""
