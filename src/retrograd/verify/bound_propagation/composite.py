"""Functions of one variable that are written in several operations: `x * sigmoid(x)`.

Where an element is a function of one element of a node before it, by operations that are each
bounded loosely as they do not know of each other, it is bounded as a whole. The interval of x is
cut into pieces. On each the function is within its interval there, and the mean value form

    f(m) + f'(piece) (x - m)

with the derivative by the reverse rules. What takes few values only (conditions, signs, roundings)
counts as a constant of the piece with the values that it has there, for which both forms hold.
Rounding in the program is added: the sum of `|df/dn| * error` over its nodes n on the piece.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.autodiff import batched, pullback
from retrograd.ir import Graph, Node, Trait, full, reachable
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import ELEMENTWISE, Cast
from retrograd.ops.leaf import input_node
from retrograd.verify.bound_propagation import relaxation as rx
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.linear_error import ADDITIVE, node_error
from retrograd.verify.bound_propagation.propagation import interval_of
from retrograd.verify.bound_propagation.relaxation_rules import Plane, Relaxed

Array = np.ndarray[Any, Any]
PIECES = 32
LONGEST = 64  # nodes of one function
STEPWISE = frozenset(f.name for f in (el.ceil, el.floor, el.round, el.sign, el.trunc))


class Composite:
    """A node as a function of another one, element by element."""

    def __init__(self, node: Node, variable: Node, inner: Sequence[Node], source: Any) -> None:
        """`inner` are the nodes between, the node itself last."""
        self.node, self.variable, self.inner, self.source = node, variable, inner, source
        own = {*inner, variable}
        self.given = list(dict.fromkeys(x for n in inner for x in n.inputs if x not in own))
        floats = [n for n in inner if n.dtype.is_float]
        stop = {variable, *self.given}
        slopes = pullback([node], [full(1, node.type)], [variable, *floats], stop)
        zero = full(0, node.type)
        self.floats = floats
        self.stack = input_node(node.type.with_shape((PIECES, *node.shape)))
        ends = [*inner, *[zero if g is None else g for g in slopes]]
        wide = [y for y, _ in batched(ends, {variable: self.stack}, PIECES)]
        self.values, self.slopes = wide[: len(inner)], wide[len(inner) :]
        self.graph = Graph([self.stack, *self.given], wide)

    def run(self, x: Interval, given: Sequence[Interval], held: Mapping[Node, Interval]) -> Any:
        """Intervals of all nodes; of some those that are given."""
        found: dict[Node, Any] = dict(zip(self.graph.inputs, (x, *given), strict=True))
        for node in self.graph.body:
            found[node] = held.get(node) or interval_of(node, [found[i] for i in node.inputs])
        return found

    def relaxed(self, known: Mapping[Node, Any], y: Interval) -> tuple[Relaxed, Interval]:
        """Planes, which hold for what the program computes, and the interval."""
        x = known[self.variable]
        with np.errstate(all="ignore"):
            finite = np.isfinite(x.lower) & np.isfinite(x.upper)
            lo, hi = np.where(finite, x.lower, 0.0), np.where(finite, x.upper, 0.0)
            share = np.linspace(0.0, 1.0, PIECES + 1).reshape(-1, *[1] * lo.ndim)
            cuts = np.clip(lo + share * (hi - lo), lo, hi)
            cuts[-1] = hi
            low, high = cuts[:-1], cuts[1:]
            m = np.clip(low / 2 + high / 2, low, high)
            least, most, slope, natural = self.pieces(known, low, m, high)
            away = np.maximum(high - m, m - low) * (1 + 1e-9)
            lines = _lines(lo, hi, low, m, high, least, most, slope, natural)
            bend = np.maximum(np.abs(slope[0]), np.abs(slope[1])) * away
            bottom = np.min(np.fmax(natural[0], least - bend), axis=0)
            top = np.max(np.fmin(natural[1], most + bend), axis=0)
        whole = Interval(
            np.where(finite & ~np.isnan(bottom), bottom, y.lower),
            np.where(finite & ~np.isnan(top), top, y.upper),
        )
        low, high = np.maximum(whole.lower, y.lower), np.minimum(whole.upper, y.upper)
        lines = rx.better(_where(finite, lines.within(low, high), low, high), lo, hi, low, high)
        lower, upper = (tuple(Plane((k,), b) for k, b in part) for part in lines)
        return Relaxed((0,), lower, upper), whole

    def pieces(self, known: Mapping[Node, Any], low: Array, m: Array, high: Array) -> Any:
        """At the middles the least and the greatest value, with the rounding of the piece; ends of
        derivatives; and the intervals."""
        given = [known[x] for x in self.given]
        piece = self.run(Interval(low, high), given, {})
        steps = {
            w: piece[w]
            for n, w in zip(self.inner, self.values, strict=True)
            if not n.dtype.is_float or n.op in STEPWISE
        }
        at = self.run(Interval(m, m), given, steps)
        of = dict(zip(self.inner, self.values, strict=True))
        of[self.variable] = self.stack

        def value(x: Node) -> Interval:
            found: Interval = piece[of[x]] if x in of else known[x]
            return found

        error: Any = 0.0
        for n, g in zip(self.floats, self.slopes[1:], strict=True):
            own = node_error(n, self.source, value, piece[of[n]])
            error = error + np.where(own == 0, 0.0, piece[g].size * own)
        y, d = at[of[self.node]], piece[self.slopes[0]]
        whole = piece[of[self.node]]
        wide = np.zeros_like(m)
        return (
            y.lower - error + wide,
            y.upper + error + wide,
            (d.lower + wide, d.upper + wide),
            (whole.lower + wide, whole.upper + wide),
        )


def _lines(
    lo: Array, hi: Array, low: Array, m: Array, high: Array, least: Array, most: Array,
    slope: tuple[Array, Array], natural: tuple[Array, Array],
) -> rx.BoundingLines:  # fmt: skip
    """Lines above and below what is known on each piece."""
    away = np.maximum(high - m, m - low) * (1 + 1e-9)
    y = least / 2 + most / 2
    found: list[tuple[rx.Line, ...]] = []
    for side in (-1, 1):
        part = []
        for k in slopes(lo, hi, m, side * y, side):
            bend = np.maximum(np.abs(slope[0] - k), np.abs(slope[1] - k)) * away
            if side > 0:
                flat = natural[1] - np.minimum(k * low, k * high)
                bias = np.max(np.fmin(flat, most - k * m + bend), axis=0)
            else:
                flat = natural[0] - np.maximum(k * low, k * high)
                bias = np.min(np.fmax(flat, least - k * m - bend), axis=0)
            reach = np.abs(k) * np.maximum(np.abs(lo), np.abs(hi))
            margin = rx.ROUNDINGS * rx.EPS * (reach + np.max(np.abs(y), axis=0)) + rx.TINY
            part.append(rx.Line(k, bias + side * margin))
        found.append(tuple(part))
    return rx.BoundingLines(found[0], found[1])


def slopes(lo: Array, hi: Array, m: Array, y: Array, side: int) -> list[Array]:
    """Of lines above points: of the edge of their hull over the middle, of the chord, and flat."""
    half = len(m) // 2
    a, p, b, q = m[:half:2], y[:half:2], m[half + 1 :: 2], y[half + 1 :: 2]
    middle = lo / 2 + hi / 2
    gap = b[None] - a[:, None]
    table = (p[:, None] * (b[None] - middle) + q[None] * (middle - a[:, None])) / gap
    table = np.where(np.isnan(table), -np.inf, table).reshape(-1, *lo.shape)
    edge = np.argmax(table, axis=0)[None]
    best = np.take_along_axis(((q[None] - p[:, None]) / gap).reshape(table.shape), edge, 0)[0]
    chord = (y[-1] - y[0]) / (m[-1] - m[0])
    return [side * np.where(np.isfinite(k), k, 0.0) for k in (best, chord, np.zeros_like(best))]


def _where(mask: Array, lines: rx.BoundingLines, low: Array, high: Array) -> rx.BoundingLines:
    """Constants where an interval is not finite."""
    zero = np.zeros(mask.shape)
    return rx.BoundingLines(
        tuple(rx.chosen(mask, line, rx.Line(zero, low + zero)) for line in lines.lower),
        tuple(rx.chosen(mask, line, rx.Line(zero, high + zero)) for line in lines.upper),
    )


def composites(
    graph: Graph, role: Mapping[Node, str], moving: Collection[Node], source: Any
) -> dict[Node, Composite]:
    """The nodes of a graph that are functions of one variable by several ways."""
    variable: dict[Node, Node] = {}
    meets: set[Node] = set()
    for node in graph.nodes:
        if node not in moving:
            continue
        own = list(dict.fromkeys(x for x in node.inputs if x in moving))
        ways = {variable[x] for x in own}
        start = next(iter(ways)) if len(ways) == 1 else None
        is_elementwise = node.op in ELEMENTWISE or isinstance(node.prim, Cast)
        fits = start is not None and is_elementwise
        if start is None or not fits or start.shape != node.shape or not start.dtype.is_float:
            variable[node] = node
            continue
        variable[node] = start
        if len(own) > 1 or any(x in meets for x in own):
            meets.add(node)
    found: dict[Node, Composite] = {}
    for node in graph.nodes:
        if node in meets and node.dtype.is_float and role[node] != "interval":
            inner = between(node, variable[node], moving)
            curved = [n for n in inner if n.op not in ADDITIVE and _is_curved(n, moving)]
            if len(curved) > 1 and len(inner) <= LONGEST:
                found[node] = Composite(node, variable[node], inner, source)
    return _used(graph, found)


def _used(graph: Graph, found: dict[Node, Composite]) -> dict[Node, Composite]:
    """Those that something else reads."""
    outputs = set(graph.outputs)
    inside = {n for c in found.values() for n in c.inner[:-1]}
    users = graph.users()
    return {
        node: c
        for node, c in found.items()
        if node not in inside or node in outputs or any(
            n not in found and n not in inside for n in users[node]
        )
    }  # fmt: skip


def between(node: Node, variable: Node, moving: Collection[Node]) -> list[Node]:
    """The nodes from a variable to a function of it, in order."""
    stop = {variable, *(x for x in reachable([node], {variable}) if x not in moving)}
    return [n for n in reachable([node], stop) if n not in stop]


def _is_curved(node: Node, moving: Collection[Node]) -> bool:
    if Trait.PRODUCT in node.prim.traits:
        return all(x in moving for x in node.inputs)
    return node.dtype.is_float and not isinstance(node.prim, Cast)
