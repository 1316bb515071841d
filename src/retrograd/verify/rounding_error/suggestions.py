"""What would lose fewer digits, each suggestion proved by evaluating it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.ir import (
    DType,
    Graph,
    Node,
    Provenance,
    Trait,
    float32,
    float64,
    graphs_of,
    made_by,
    substitute,
)
from retrograd.ops.elementwise import Elementwise, cast
from retrograd.ops.matmul import BilinearOp
from retrograd.ops.reduce import Reduction
from retrograd.ops.scan import CumSum
from retrograd.tuning import TUNING
from retrograd.verify.rounding_error.nodes import NodeError
from retrograd.verify.rounding_error.rewrites import REWRITES, Rewrite


@dataclass(frozen=True)
class Suggestion:
    """A change of the program that was evaluated.

    `before` and `after` are the errors of the program as it is and as it would be, relative to the
    largest element of each output, of the worst output, `inf` where one is not finite. `measured`
    says whether they are differences to exact values; otherwise they are bounds. `graph` is the
    changed program; None where it is the same in another dtype throughout.
    """

    name: str
    formula: str
    source: str
    before: float
    after: float
    measured: bool
    graph: Any
    places: int = 1

    @property
    def is_wider(self) -> bool:
        """Whether it is a wider dtype, not a rewriting."""
        return self.name in ("float32", "float64")

    @property
    def digits(self) -> float:
        """How many more decimal digits are right."""
        if self.after == 0 or not math.isfinite(self.before):
            return math.inf
        return math.log10(self.before / self.after)

    def __str__(self) -> str:
        how = "error" if self.measured else "bound of the error"
        place = self.source.partition(" in ")[0].rpartition("/")[2]
        at = f" at {place}" if place else ""
        return f"{self.formula}{at}: {how} {self.before:.1e} before, {self.after:.1e} after"


Error = Callable[[Graph], float]
REWRITTEN = frozenset(r.name for r in REWRITES)  # two that come to the same are told once


def suggestions(
    graph: Graph, nodes: Sequence[NodeError], before: float, measured: bool, error: Error
) -> list[Suggestion]:
    """Rewritings, then wider dtypes, that at least halve the error, of each kind the best first.

    `error` evaluates a changed graph; where that raises, the change is none.
    """
    found: list[Suggestion] = []
    for name, formula, source, places, new in _candidates(graph, nodes):
        try:
            after = error(new)
        except (RetrogradError, np.linalg.LinAlgError):
            continue  # of a function that is not defined at these inputs, as a log of a sign
        same = any((s.source, s.after) == (source, after) and not s.is_wider for s in found)
        if _better(before, after) and not (same and name in REWRITTEN):
            found.append(Suggestion(name, formula, source, before, after, measured, new, places))
    return sorted(found, key=lambda s: (s.is_wider, s.after))


def _better(before: float, after: float) -> bool:
    if not math.isfinite(after):
        return False
    return not math.isfinite(before) or after * TUNING.rounding_gain <= before


Candidate = tuple[str, str, str, int, Graph]


def _candidates(graph: Graph, nodes: Sequence[NodeError]) -> Iterator[Candidate]:
    count = 0
    for r in REWRITES:
        for source, places, new in _applied(graph, r):
            yield r.name, r.formula, source, places, new
            count += 1
            if count == TUNING.rounding_candidates:
                return
    lines: set[Any] = set()
    for e in nodes[: TUNING.rounding_widened]:
        wider = wider_than(e.node.dtype) if e.node.dtype.is_float else None
        if wider is None or e.kind == "exact":
            continue
        alone = widened(graph, {e.node}, wider)
        if alone is not None:
            yield wider.name, f"{e.op} in {wider}", e.source, 1, alone
        line = {n for n in _all_nodes(graph) if n.source and _place(n) == _place(e.node)}
        whole = widened(graph, line, wider) if len(line) > 1 else None
        if whole is not None and _place(e.node) not in lines:
            lines.add(_place(e.node))
            yield wider.name, f"the line in {wider}", e.source, len(line), whole


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.body:
        yield node
        for inner in graphs_of(node.prim):
            yield from _all_nodes(inner)


def _place(node: Node) -> Any:
    return (node.source.code, node.source.line) if node.source else None


def _applied(graph: Graph, r: Rewrite) -> Iterator[tuple[str, int, Graph]]:
    """A graph for each line of the program with places for the rule."""
    found: dict[Any, list[Node]] = {}
    new: dict[Node, Node] = {}
    for node in _all_nodes(graph):
        if not node.dtype.is_float:
            continue
        with made_by(Provenance(node.scope, node.source, node.origin)):
            replacement = r.apply(node)
        if replacement is not None and replacement is not node:
            new[node] = replacement
            found.setdefault(_place(node) or node, []).append(node)
    for nodes in found.values():
        source = str(nodes[0].source) if nodes[0].source else ""
        yield source, len(nodes), replaced(graph, {n: new[n] for n in nodes})


def replaced(graph: Graph, new: Mapping[Node, Node]) -> Graph:
    """The graph with other nodes in place of some, in the bodies of loops as well."""
    change = dict(new)
    for node in graph.body:
        inner = {
            name: replaced(value, new)
            for name, value in node.attrs.items()
            if isinstance(value, Graph) and any(n in new for n in _all_nodes(value))
        }
        if inner:
            prim: Any = dataclasses.replace(node.prim, **inner)  # type: ignore[type-var]
            change[node] = Node(
                prim, node.inputs, node.type, node.scope, node.source, node.origin, node.name
            )
    return graph.with_outputs(_substituted(graph, change))


def _substituted(graph: Graph, new: Mapping[Node, Node]) -> list[Node]:
    """Outputs with nodes replaced, from the last to the first: what replaces one is made of others
    that are to be replaced."""
    outputs, todo = list(graph.outputs), dict(new)
    for old in sorted(new, key=lambda n: -n.id):
        here = {old: todo[old]}
        outputs = substitute(outputs, here) if old in _reach(outputs) else outputs
    return outputs


def _reach(outputs: Sequence[Node]) -> set[Node]:
    seen, todo = set(outputs), list(outputs)
    while todo:
        for x in todo.pop().inputs:
            if x not in seen:
                seen.add(x)
                todo.append(x)
    return seen


# -- wider dtypes ---------------------------------------------------------------------------------


def wider_than(dtype: DType) -> DType | None:
    """The next wider floating dtype, if there is one."""
    return float32 if dtype.is_half else float64 if dtype is float32 else None


def _can_widen(node: Node) -> bool:
    if not node.dtype.is_float or not node.inputs:
        return False
    moves = Trait.REAL_LINEAR in node.prim.traits and Trait.DETERMINED in node.prim.traits
    return moves or isinstance(node.prim, Elementwise | Reduction | BilinearOp | CumSum)


def widened(graph: Graph, wanted: set[Node], dtype: DType) -> Graph | None:
    """The graph with some nodes computed in a wider dtype: operands are converted before, results
    after. None where no node of them can be."""
    chosen = {n for n in wanted if _can_widen(n) and wider_than(n.dtype) is dtype}
    if not chosen or not any(n in chosen for n in _all_nodes(graph)):
        return None
    wide: dict[Node, Node] = {}
    new: dict[Node, Node] = {x: x for x in graph.inputs}

    def as_wide(x: Node) -> Node:
        if x in wide:
            return wide[x]
        return cast(new[x], dtype) if x.dtype.is_float else new[x]

    for node in graph.body:
        with made_by(Provenance(node.scope, node.source, node.origin)):
            if node in chosen:
                wide[node] = node.prim(*[as_wide(x) for x in node.inputs])
                new[node] = cast(wide[node], node.dtype)
                continue
        inner = {}
        for name, value in node.attrs.items():
            body = widened(value, wanted, dtype) if isinstance(value, Graph) else None
            if body is not None:
                inner[name] = body
        given = tuple([new[x] for x in node.inputs])
        if inner:
            prim: Any = dataclasses.replace(node.prim, **inner)  # type: ignore[type-var]
            new[node] = Node(prim, given, node.type, node.scope, node.source, node.origin)
        else:
            new[node] = node if given == node.inputs else node.with_inputs(given)
    return graph.with_outputs([new[y] for y in graph.outputs])
