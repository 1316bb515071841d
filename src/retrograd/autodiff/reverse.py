"""Reverse mode: from nodes to the nodes of their gradient.

One loop over the nodes, from the one that was made last to the first. Contributions to a node are
added in the order in which its users are visited: so the order of sums is given by the program, by
the order in which its operations were recorded, and two nodes that compute the same are two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from retrograd.autodiff.names import fresh
from retrograd.autodiff.remat import Recomputation, has_regions
from retrograd.autodiff.slice_sums import sum_of
from retrograd.errors import GradientError
from retrograd.ir import Graph, Node, Provenance, full, made_by, reachable
from retrograd.ops.complex import conj
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Pad
from retrograd.shared import contained

G = TypeVar("G", bound=Graph)


class Visit(NamedTuple):
    """One step of the reverse walk: a node, the cotangent that arrived at it, and for each input
    that receives something its position, what is added, and the sum so far. Cotangents of nodes of
    several results are lists, contributions to them those of one result."""

    node: Node
    upstream: Any
    parts: list[tuple[int, Node, Node]]


def active(outputs: Sequence[Node], wrt: Collection[Node], stop: Collection[Node]) -> list[Node]:
    """Nodes of floating or complex dtype on a path from `wrt` to the outputs, inputs first."""
    found: dict[Node, None] = {}
    for node in reachable(outputs, stop):
        if node.type.is_inexact and (
            node in wrt or (node not in stop and any(x in found for x in node.inputs))
        ):
            found[node] = None
    return list(found)


@contained
def pullback(
    outputs: Sequence[Node],
    cotangents: Sequence[Node],
    wrt: Sequence[Node],
    stop: Collection[Node] = (),
    visit: Callable[[Visit], None] | None = None,
) -> list[Node | None]:
    """Cotangents of `wrt` for the given cotangents of the outputs.

    Computes `sum_k cotangents[k]^T d outputs[k] / d wrt[i]` for each i. None means that no output
    depends on `wrt[i]` through differentiable operations. The walk does not pass nodes of `stop`.
    What was computed in a region is computed again for it (`autodiff/remat.py`). `visit` is told
    every step of the walk.

    The gradient of a real L with respect to a complex z is `dL/dRe(z) + i dL/dIm(z)`: a step
    against it descends. Rules of ops work with its conjugate (`ops/complex.py`), so both ends
    conjugate.
    """
    kept = {*wrt, *stop}
    path = active(outputs, set(wrt), stop)
    on_path = set(path)
    again = Recomputation(outputs, stop) if has_regions(path) else None
    found = Cotangents()
    for y, g in zip(outputs, cotangents, strict=True):
        if g.type != y.type:
            raise GradientError(f"the cotangent of {y.describe()} must be {y.type}, not {g.type}")
        if y in on_path:
            with made_by(Provenance(y.scope, y.source, y)):
                found.add(y, conj(g))

    def rule(node: Node, g: Any, seen: Any) -> Iterable[tuple[Node, Any]]:
        smooth = visit is None and _smooth(node, g, seen, kept)
        return smooth or contributions(node, g, seen)

    way = [node for node in path if node not in stop] if stop else path
    for node, passed in walk(way, found, on_path.__contains__, again, rule):
        if visit is not None:
            visit(Visit(node, found.of[node], _placed(node, passed)))
    found.settle(wrt)
    return [conj(found.of[x]) if x in found.of else None for x in wrt]


def walk(
    path: Sequence[Node],
    found: Cotangents,
    takes: Callable[[Node], bool],
    again: Recomputation | None = None,
    rule: Callable[[Node, Any, Any], Iterable[tuple[Node, Any]]] | None = None,
    arrive: Callable[[Node], bool] | None = None,
) -> Iterator[tuple[Node, list[tuple[Node, Any, Any]]]]:
    """The reverse walk: the nodes of a path, which come inputs first, from the last to the first.

    A node is visited when its cotangent in `found` is complete, and adds what its rule says to
    those of the inputs that `takes` holds for. Yields it with each of these inputs, what is added,
    and the sum so far. `arrive` is told of a node before its rule is asked, and may replace its
    cotangent; where it is False nothing goes further from there.
    """
    rule = rule or contributions
    for node in reversed(path):
        if node not in found.of:
            continue
        found.settle((node,))
        if not (arrive is None or arrive(node)):
            continue
        passed = []
        with made_by(Provenance(node.scope, node.source, node)):
            seen = None if again is None else again.seen(node, found.of)
            for x, part in rule(node, found.of[node], seen):
                if takes(x):
                    found.add(x, part)
                    passed.append((x, part, found.total(x, part)))
        yield node, passed


def _placed(node: Node, passed: Sequence[tuple[Node, Any, Any]]) -> list[tuple[int, Node, Node]]:
    """Contributions with the positions of the inputs they go to: they come in this order."""
    found, slot = [], 0
    for x, part, total in passed:
        while node.inputs[slot] is not x:
            slot += 1
        found.append((slot, part if isinstance(part, Node) else next(iter(part.values())), total))
        slot += 1
    return found


class Cotangents:
    """Cotangents of nodes, each the sum of its contributions in the order in which they come. That
    of a node of several results is a list of theirs, None where nothing has come."""

    def __init__(self) -> None:
        self.of: dict[Node, Any] = {}
        self._parts: dict[Node, list[Node]] = {}  # of a node that has had more than one

    def add(self, x: Node, part: Node | Mapping[int, Node]) -> None:
        """Add a contribution; to a node of several results a mapping from their numbers."""
        if isinstance(part, Node):
            if x in self.of:
                self._parts.setdefault(x, [self.of[x]]).append(part)
                self.of[x] = self.of[x] + part
            else:
                self.of[x] = part
            return
        known = self.of.setdefault(x, [None] * len(x.type.items))  # type: ignore[attr-defined]
        for i, g in part.items():
            known[i] = g if known[i] is None else known[i] + g

    def settle(self, nodes: Iterable[Node]) -> None:
        """Cotangents that are complete, made of the slices that contributed to them."""
        for x in nodes:
            parts = self._parts.pop(x, None)
            if parts is not None and any(isinstance(part.prim, Pad) for part in parts):
                with made_by(Provenance(x.scope, x.source, x)):
                    self.of[x] = sum_of(parts)

    def total(self, x: Node, part: Node | Mapping[int, Node]) -> Any:
        """The sum that a contribution has become part of."""
        if isinstance(part, Node):
            return self.of[x]
        return next((self.of[x][i] for i in part), None)


def contributions(
    node: Node, g: Any, seen: tuple[Node, Sequence[Node]] | None = None
) -> Iterator[tuple[Node, Any]]:
    """What a node with the cotangent `g` adds to the cotangents of its inputs, by the reverse rule
    of its op; inputs without a gradient are left out. The rule sees the node and its inputs, or
    what computes them again."""
    y, inputs = seen or (node, node.inputs)
    parts = node.prim.vjp(g, y, *inputs)
    for x, part in zip(node.inputs, parts, strict=True):
        if part is None:
            continue
        if isinstance(part, Node) and part.type != x.type:
            raise GradientError(
                f"the reverse rule of {node.op} gave {part.type} for an input of type {x.type}: "
                f"{node.describe()}"
            )
        yield x, part


def _smooth(
    node: Node, g: Any, seen: tuple[Node, Sequence[Node]] | None, kept: Collection[Node]
) -> list[tuple[Node, Node]] | None:
    """The same past inputs with a kink that the node does not have (`Op.smooth`), unless one of
    those is `kept`."""
    own = node.prim.smooth(*node.inputs)
    if own is None or any(x in kept for x in own.passed):
        return None
    copy = own if seen is None else node.prim.smooth(*seen[1])
    if copy is None:
        return None
    parts = pullback([copy.node], [g], list(dict.fromkeys(copy.ends)), copy.ends)
    return [(x, p) for x, p in zip(dict.fromkeys(own.ends), parts, strict=True) if p is not None]


def depends(
    outputs: Sequence[Node], wrt: Sequence[Node], stop: Collection[Node] = ()
) -> list[bool]:
    """For each of `wrt`, whether some output depends on it differentiably."""
    ends = [y for y in outputs if y.dtype.is_inexact]
    one = [full(1, y.type) for y in ends]
    return [g is not None for g in pullback(ends, one, wrt, stop)]


def seeds(outputs: Sequence[Node]) -> list[Node]:
    """The cotangent 1 for each output, which has to be a real scalar."""
    for y in outputs:
        _need_float(y)
        if y.dtype.is_complex:
            raise GradientError(
                f"a gradient starts from a real number, but the output is {y.describe()}; take its "
                "real(), imag() or abs(), or give a cotangent (seed)"
            )
        if y.shape != ():
            raise GradientError(
                f"a gradient starts from a scalar, but the output has the shape {y.shape}: "
                f"{y.describe()}; reduce it with sum() or mean(), or give a cotangent (seed)"
            )
    return [full(1, y.type) for y in outputs]


def gradient(
    graph: G,
    outputs: Sequence[Node] | None = None,
    wrt: Sequence[Node] | None = None,
    visit: Callable[[Visit], None] | None = None,
) -> G:
    """The graph of the gradient of `outputs` with respect to `wrt`.

    Its inputs are those of `graph`, then one cotangent for each output that is not a real scalar; a
    real scalar is seeded with 1. Its outputs are the gradients in the order of `wrt`, by default
    all floating and complex inputs; zeros where the outputs do not depend on one. `visit` is told
    the steps of the walk.
    """
    ends = [y for y in graph.outputs if y.dtype.is_inexact] if outputs is None else list(outputs)
    wanted = [x for x in graph.inputs if x.dtype.is_inexact] if wrt is None else list(wrt)
    if not ends:
        raise GradientError("the graph has no floating output to differentiate")
    known = set(graph.nodes)
    for node in (*ends, *wanted):
        if node not in known:
            raise GradientError(f"not a node of the graph, so it has no gradient: {node}")
    for y in ends:
        _need_float(y)
    for x in wanted:
        if not x.dtype.is_inexact:
            raise GradientError(f"integers and booleans have no gradient: {x.describe()}")
    given = [y.shape != () or y.dtype.is_complex for y in ends]
    wide = [(f"d_{y.name or f'output{i}'}", y.type) for i, y in enumerate(ends) if given[i]]
    names = fresh([name for name, _ in wide], graph)
    extra = [input_node(type, name) for name, (_, type) in zip(names, wide, strict=True)]
    seed = iter(extra)
    start = [
        next(seed) if wanted else full(1, y.type) for y, wanted in zip(ends, given, strict=True)
    ]
    found = pullback(ends, start, wanted, set(graph.inputs), visit)
    results = [full(0, x.type) if g is None else g for x, g in zip(wanted, found, strict=True)]
    return type(graph)((*graph.inputs, *extra), results, f"gradient of {graph.name or 'graph'}")


def _need_float(y: Node) -> None:
    if not y.dtype.is_inexact:
        raise GradientError(
            f"only floating outputs have gradients, not {y.describe()}; cast it, or differentiate "
            "what it was computed from"
        )
