"""First-order error of outputs: what each rounding of a run does to them, by one backward pass.

With d[v] the rounding error of node v, an output y of the run is off by

    sum over v of (dy / dv) . d[v]   +   terms of second order,

so by at most `sum |dy / dv| . bound[v]`, and, where roundings are independent, with a standard
deviation of `sqrt(sum (dy / dv)^2 . std[v]^2)`. The derivatives come from the graph's reverse
rules, through all paths at once: errors that cancel do. (Bauer, "Computational graphs and rounding
error", SIAM J. Numer. Anal. 1974; Linnainmaa 1976.) At kinks and ties, where the rules choose a
subgradient, the largest is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import batched
from retrograd.autodiff.reverse import Cotangents, active, contributions, walk
from retrograd.ir import Graph, Node, apply, full, interpret
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Cast, cast, eq, keep_if, select
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceMax, ReduceMin
from retrograd.verify.rounding_error.formats import Array, format_of
from retrograd.verify.rounding_error.local_error import LocalError
from retrograd.verify.rounding_error.stochastic import Spread
from retrograd.verify.rounding_error.straight_line import StraightLine


class FirstOrder(NamedTuple):
    """Errors of chosen elements of an output: bounds, standard deviations; what each node adds to
    the bounds and to the variances; and what rounded inputs would add."""

    bound: Array
    std: Array
    by_node: dict[Node, Array]
    variances: dict[Node, Array]
    inputs: Array
    through: dict[Node, Array]
    sizes: dict[Node, Array]


def first_order(
    run: StraightLine,
    local: Mapping[Node, LocalError],
    output: Node,
    places: Sequence[int],
    spread: Mapping[Node, Spread] | None = None,
) -> FirstOrder:
    """The errors of the elements of an output at these places, counted in row-major order.

    `through` tells how much of the sampled `spread` of each node arrives at them, and `sizes` how
    much of its value would, elements in norm: what counts of a node is what an output sees of it.
    """
    m = len(places)
    seeds = np.zeros((m, math.prod(map(int, output.shape))))
    seeds[np.arange(m), list(places)] = 1.0
    found = _NodeSums(run, local, m, spread or {})
    path = active([output], set(run.graph.nodes), run.graph.inputs)
    seed = input_node(output.type)
    adjoints = Cotangents()
    adjoints.add(output, seed)
    parts: list[tuple[Node, Node, Node]] = []
    computed = [x for x in path if x.inputs]
    on_path = set(path)
    for node, passed in walk(computed, adjoints, on_path.__contains__, None, _rule):
        if local[node].backward:
            parts += [(node, x, part) for x, part, _ in passed]
    adjoints.settle([x for x in path if not x.inputs])
    wanted: dict[Node, list[Node]] = {adjoints.of[x]: [] for x in path if x in adjoints.of}
    for x in path:
        if x in adjoints.of:
            wanted[adjoints.of[x]].append(x)
    backward: dict[Node, list[tuple[Node, Node]]] = {}
    for node, x, part in parts:
        backward.setdefault(part, []).append((node, x))
    stack = input_node(output.type.with_shape((m, *output.shape)))
    ends = list(dict.fromkeys([*wanted, *backward]))
    wide = dict(zip(ends, batched(ends, {seed: stack}, m), strict=True))
    use: dict[Node, list[Node]] = {}
    for end, (new, _) in wide.items():
        use.setdefault(new, []).append(end)

    def see(new: Node, value: Any) -> None:
        for end in use.get(new, ()):
            g = np.asarray(value, np.float64)
            g = g if wide[end][1] else np.broadcast_to(g, (m, *g.shape))
            for x in wanted.get(end, ()):
                found.add(x, g)
            for node, x in backward.get(end, ()):
                found.add_backward(node, x, g)

    _evaluate(run, stack, seeds.reshape(m, *output.shape), list(use), see)
    return found.result()


def _evaluate(run: StraightLine, stack: Node, seeds: Array, ends: list[Node], see: Any) -> None:
    """The adjoints in float64, each shown as it is known; the values of the run are given."""
    known = list(run.graph.nodes)
    inputs = [stack, *known]
    given = [seeds, *[_wide(run.values[x]) for x in known]]
    graph = Graph(inputs, ends)
    for x, array in zip(inputs, given, strict=True):
        see(x, array)
    reads = {x for node in graph.body for x in node.inputs}
    last = [y for y in graph.body if y not in reads]

    def value(node: Node, xs: Sequence[Any]) -> Any:
        found = wide_value(node, xs)
        see(node, found)
        return found

    with np.errstate(all="ignore"):
        interpret(Graph(inputs, last), given, value)


def wide_value(node: Node, xs: Sequence[Any]) -> Any:
    """The value of a node in float64, whatever its dtype."""
    if isinstance(node.prim, Cast) and node.dtype.is_float:
        return np.asarray(xs[0], np.float64)
    return _wide(apply(node, xs))


def _wide(x: Any) -> Any:
    """Floats as float64; what is whole or boolean stays."""
    x = np.asarray(x)
    return x if x.dtype.kind in "biu" else x.astype(np.float64)


class _NodeSums:
    """Sums over the elements of nodes, for each chosen element of the output."""

    def __init__(
        self,
        run: StraightLine,
        local: Mapping[Node, LocalError],
        m: int,
        spread: Mapping[Node, Spread],
    ) -> None:
        self.run = run
        self.local = local
        self.bounds: dict[Node, Array] = {}
        self.variances: dict[Node, Array] = {}
        self.inputs = np.zeros(m)
        self.zero = np.zeros(m)
        self.spread = spread
        self.through: dict[Node, Array] = {}
        self.sizes: dict[Node, Array] = {}

    def add(self, x: Node, g: Array) -> None:
        """Take in the derivatives by a node, of each element."""
        rows = np.abs(g).reshape(len(g), math.prod(g.shape[1:]))
        if not x.inputs:
            if x in self.run.graph.inputs:
                size = np.abs(_wide(self.run.values[x])).reshape(-1)
                self.inputs += _times(rows, format_of(x.dtype).u * size)
            return
        error = self.local[x]
        squares = np.square(rows)
        variance = _times(squares, np.square(error.std.reshape(-1)))
        self._put(x, _times(rows, error.bound.reshape(-1)), variance)
        if x in self.spread:
            arrived = _times(squares, np.square(self.spread[x].std.reshape(-1)))
            self.through[x] = np.sqrt(arrived)
            value = np.abs(_wide(self.run.values[x])).reshape(-1)
            self.sizes[x] = np.sqrt(_times(squares, np.square(value)))

    def add_backward(self, node: Node, x: Node, g: Array) -> None:
        """Take in what a node hands back to an operand, a stack of matrices, that counts as off."""
        relative = self.local[node].backward
        axes = tuple(range(-min(2, x.type.rank), 0))
        sizes = np.sqrt(np.square(_wide(self.run.values[x])).sum(axis=axes))
        slopes = np.sqrt(np.square(g).sum(axis=axes))
        each = np.where(sizes == 0, 0.0, slopes * sizes).reshape(len(g), sizes.size)
        variance = (relative / 4) ** 2 * np.square(each).sum(axis=1)
        self._put(node, relative * each.sum(axis=1), variance)

    def _put(self, node: Node, bound: Array, variance: Array) -> None:
        self.bounds[node] = self.bounds.get(node, self.zero) + bound
        self.variances[node] = self.variances.get(node, self.zero) + variance

    def result(self) -> FirstOrder:
        bound = sum(self.bounds.values(), self.zero)
        std = np.sqrt(sum(self.variances.values(), self.zero))
        bound, std, inputs = (_known(x) for x in (bound, std, self.inputs))
        return FirstOrder(bound, std, self.bounds, self.variances, inputs, self.through, self.sizes)


def _known(x: Array) -> Array:
    """Infinite where an infinite slope meets what is zero, so that nothing is known."""
    return np.where(np.isnan(x), np.inf, x)


def _times(slopes: Array, errors: Array) -> Array:
    """Sums of products along the last axis; where nothing is off, an infinite slope adds nothing,
    and where nothing depends on it, neither does an infinite error."""
    if np.isfinite(slopes).all() and np.isfinite(errors).all():
        return np.asarray(slopes @ errors)
    with np.errstate(all="ignore"):
        both = np.where((slopes == 0) | (errors == 0), 0.0, slopes * errors)
        return np.asarray(both.sum(axis=-1))


# -- subgradients ---------------------------------------------------------------------------------


def _rule(node: Node, g: Any, seen: Any) -> Iterator[tuple[Node, Any]] | Any:
    """The reverse rule of a node, but at kinks and ties the largest that its slopes may be."""
    largest = LARGEST.get(node.op)
    return contributions(node, g, seen) if largest is None else largest(node, g)


def _abs(node: Node, g: Node) -> Iterator[tuple[Node, Node]]:
    (x,) = node.inputs
    yield x, select(x < full(0, x.type), -g, g)


def _relu(node: Node, g: Node) -> Iterator[tuple[Node, Node]]:
    (x,) = node.inputs
    yield x, keep_if(x >= full(0, x.type), g)


def _extremum(node: Node, g: Node) -> Iterator[tuple[Node, Node]]:
    a, b = node.inputs
    yield a, keep_if(eq(a, node), g)
    yield b, keep_if(eq(b, node), g)


def _clamp(node: Node, g: Node) -> Iterator[tuple[Node, Node]]:
    for x in node.inputs:
        yield x, keep_if(eq(x, node), g)


def _extremum_of_many(node: Node, g: Node) -> Iterator[tuple[Node, Node]]:
    (x,) = node.inputs
    prim = node.prim
    assert isinstance(prim, ReduceMax | ReduceMin)
    yield x, cast(eq(x, prim.back(node, x)), x.dtype) * prim.back(g, x)


LARGEST: dict[str, Any] = {
    el.abs.name: _abs,
    el.relu.name: _relu,
    el.max.name: _extremum,
    el.min.name: _extremum,
    el.clamp.name: _clamp,
    ReduceMax.name: _extremum_of_many,
    ReduceMin.name: _extremum_of_many,
}
