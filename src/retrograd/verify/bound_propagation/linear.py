"""CROWN: linear bounds of every node, each found by a backward pass over the graph before it.

Nodes are visited in order. The interval of each is that of interval arithmetic at first. Of a node
that something not linear reads, the backward pass (`linear_backward.py`) gives a tighter one, from
which the planes of its reader (`relaxation_rules.py`) are made. The outputs are last. What comes
out is intersected with what was known, so no bound is ever worse than interval arithmetic.

The passes are programs that are compiled once for a graph: they serve all regions and weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.backend_registry import compile_graph
from retrograd.eager.modes import current_backend
from retrograd.ir import Graph, Node, Trait
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Cast
from retrograd.ops.index import Gather
from retrograd.ops.matmul import BilinearOp
from retrograd.ops.scatter import ScatterSet
from retrograd.ops.shape import Expand, Pad
from retrograd.ops.windows import Windows
from retrograd.runtime.backend import Program
from retrograd.shared import lock
from retrograd.verify.bound_propagation.bounds import method
from retrograd.verify.bound_propagation.composite import composites
from retrograd.verify.bound_propagation.interval import (
    Interval,
    Rectangle,
    RoundInterval,
    format_of,
    meet,
)
from retrograd.verify.bound_propagation.linear_backward import (
    BackwardProgram,
    Key,
    Planes,
    PropagationPlan,
    backward,
)
from retrograd.verify.bound_propagation.linear_error import (
    ADDITIVE,
    SUMS,
    magnitudes,
    node_error,
)
from retrograd.verify.bound_propagation.linear_graph import Rewritten, rewritten
from retrograd.verify.bound_propagation.linear_samples import sample_axes
from retrograd.verify.bound_propagation.propagation import interval_of, outputs_of
from retrograd.verify.bound_propagation.relaxation_rules import RELAXATIONS, Plane, Relaxed
from retrograd.verify.bound_propagation.rules.contraction import in_any_order

Array = np.ndarray[Any, Any]
EPS = 2.0**-52
UNDERFLOW = 2.0**-400  # of coefficients, times what they belong to
CHUNK = 1 << 27  # bytes of coefficients of one node in one pass
LINEAR = (*SUMS, BilinearOp, Cast, Gather, ScatterSet, Windows)  # beside ADDITIVE, and views


Optimiser = Callable[..., Array]


class BoundedGraph:
    """The bounds of one graph: its structure, and the programs that were compiled for it."""

    def __init__(self, graph: Graph, regions: Sequence[bool], norms: Mapping[int, float]) -> None:
        """`regions` says which inputs are not points, `norms` which of them are in a ball."""
        self.source: Rewritten = rewritten(graph)
        self.graph = self.source.graph
        starts = [x for x, is_region in zip(self.graph.inputs, regions, strict=True) if is_region]
        self.starts = starts
        moving = set(starts)
        for node in self.graph.body:
            if any(x in moving for x in node.inputs):
                moving.add(node)
        self.moving = frozenset(moving)
        self.batch = sample_axes(self.graph, starts, moving)
        self.role = {node: self._role(node) for node in self.graph.nodes}
        users = self.graph.users()
        self.composites = composites(self.graph, self.role, moving, self.source)
        self.live = self._live()
        self.shared = {x for x in self.graph.nodes if len(users[x]) > 1}
        linear = [n for n in self.graph.nodes if self.role[n] == "linear"]
        self.steps = PropagationPlan(
            graph=self.graph,
            role=self.role,
            moving=self.moving,
            planes={},
            products=frozenset(n for n in linear if _is_product(n)),
            rounds=frozenset(n for n in linear if not self._moves(n)),
            batch=self.batch,
            norms={self.graph.inputs[i]: norm for i, norm in norms.items()},
        )
        self.targets = self._targets()
        self.signs = self._signs(users)
        self.widest = max((math.prod(n.shape) for n in moving), default=1)
        # Where the meaning of programs is asked for, that of these, too.
        self.engine = "reference" if current_backend() == "reference" else "llvm"
        self.programs: dict[tuple[Node, bool], tuple[BackwardProgram, Program]] = {}
        self.optimisers: dict[Node, Any] = {}
        size = sum(math.prod(n.shape) for n in linear) + 1
        rank = max((n.type.rank for n in linear), default=0) + 2
        most = max((len(users[n]) for n in self.graph.nodes), default=1)
        # Of a sum of sums along `rank` axes, of so many parts: see `ReduceSum`.
        self.loss = EPS * (rank * (130 + math.log2(size)) + len(self.graph.nodes) + most + 64)

    # -- what is done at each node ----------------------------------------------------------------
    def _role(self, node: Node) -> str:
        if node not in self.moving or node in self.graph.inputs:
            return "interval"
        if not node.dtype.is_float:  # of several results it has no dtype
            return "interval"
        floats = [x for x in node.inputs if x.dtype.is_float]
        whole = [x for x in node.inputs if x not in floats]
        if self._is_linear(node) and not any(x in self.moving for x in whole) and floats:
            return "linear"
        return "relaxed" if node.op in RELAXATIONS else "interval"

    def operands(self, node: Node) -> Sequence[Node]:
        """The nodes that a backward pass goes on to."""
        if node in self.composites:
            return (self.composites[node].variable,)
        return node.inputs if self.role[node] != "interval" else ()

    def _live(self) -> set[Node]:
        """Nodes that a backward pass meets; a function of one variable is passed at once."""
        todo = list(self.graph.outputs)
        found = set(todo)
        for node in todo:  # which grows
            if node in self.composites:
                self.role[node] = "relaxed"
            new = [x for x in self.operands(node) if x not in found]
            found.update(new)
            todo += new
        return found

    def _is_linear(self, node: Node) -> bool:
        if Trait.PRODUCT in node.prim.traits:
            return sum(x in self.moving for x in node.inputs) == 1
        if node.op == el.select.name or any(not x.dtype.is_float for x in node.inputs[:1]):
            return False
        is_view = Trait.VIEW in node.prim.traits
        return is_view or node.op in ADDITIVE or isinstance(node.prim, LINEAR)

    def _moves(self, node: Node) -> bool:
        once = all(x not in self.shared for x in node.inputs if x in self.moving)
        return _is_move(node) and once

    def _targets(self) -> dict[Node, None]:
        """Nodes whose bounds a backward pass may tighten: what relaxations read, and outputs."""
        exact = self._exact()
        found: dict[Node, None] = {}
        for node in self.graph.body:
            if self.role[node] != "relaxed" or node not in self.live:
                continue
            for x in self.operands(node):
                while _repeats(x) and self.role[x] == "linear":
                    x = x.inputs[0]
                if (self.role[x] == "linear" and x not in exact) or (
                    self.role[x] == "relaxed" and sum(z in self.moving for z in x.inputs) > 1
                ):
                    found[x] = None
        for y in self.graph.outputs:
            if self.role[y] != "interval" and y not in exact:
                found[y] = None
        return found

    def _signs(self, users: Mapping[Node, list[Node]]) -> set[Node]:
        """Nodes of which relu alone reads something else than a linear function."""
        found: set[Node] = set()
        for x in self.targets:
            same = [x]
            for z in same:  # which grows
                same += [n for n in users[z] if _repeats(n) and self.role[n] == "linear"]
            readers = [
                n for z in same for n in users[z] if self.role[n] == "relaxed" and n in self.live
            ]
            wide = any(c.variable in same for y, c in self.composites.items() if y in self.live)
            if (
                not wide
                and all(n.op == el.relu.name for n in readers)
                and not set(same) & set(self.graph.outputs)
            ):
                found.add(x)
        return found

    def _exact(self) -> set[Node]:
        """Nodes that interval arithmetic bounds as well as a linear function can: in each element,
        every element of a box occurs once."""
        apart = {x for x in self.starts if x not in self.steps.norms}
        exact = set(apart)
        for node in self.graph.body:
            own = [x for x in node.inputs if x in self.moving]
            if self.role[node] != "linear" or len(own) != 1 or own[0] not in exact:
                continue
            keeps = _is_move(node) or node.op in ADDITIVE or isinstance(node.prim, Cast)
            keeps = keeps or Trait.PRODUCT in node.prim.traits
            if keeps and own[0] in apart:
                apart.add(node)
            if keeps or isinstance(node.prim, Expand) or own[0] in apart:
                exact.add(node)
        return exact

    # -- programs ---------------------------------------------------------------------------------
    def program(self, target: Node, own_slopes: bool = False) -> tuple[BackwardProgram, Program]:
        """The compiled backward pass of a node."""
        key = (target, own_slopes)
        if key not in self.programs:
            found = backward(self.steps, target, own_slopes)
            self.programs[key] = found, compile_graph(found.graph, self.engine)
        return self.programs[key]


class Bounding:
    """One run: intervals of the nodes of a network, and what its programs read of them."""

    def __init__(
        self,
        network: BoundedGraph,
        given: Sequence[Any],
        optimise: Optimiser | None = None,
    ) -> None:
        self.network, self.optimise = network, optimise
        self.values: dict[Node, Any] = dict(zip(network.graph.inputs, given, strict=True))
        self.store: dict[Key, Array] = {}
        self.relaxed: dict[Node, Relaxed] = {}
        self.underflow = np.float64(UNDERFLOW)
        for x, value in zip(network.graph.inputs, given, strict=True):
            if x in network.steps.norms:
                self.enter_ball(x, value.round)

    def run(self, known: Mapping[Node, Interval] | None = None) -> list[Any]:
        """The intervals of the outputs. `known` are some to intersect with."""
        network = self.network
        for node in network.graph.nodes:
            if node not in self.values:
                self.values[node] = self.interval(node)
            if known is not None and node in known:
                self.values[node] = meet(self.values[node], known[node])
            if node in network.targets:
                self.values[node] = self.tightened(node)
            if node in network.moving and node in network.live:
                self.enter(node)
        return [self.values[y] for y in network.graph.outputs]

    # -- intervals --------------------------------------------------------------------------------
    def interval(self, node: Node) -> Any:
        """By interval arithmetic, of what the node stands for, too."""
        source = self.network.source
        found = interval_of(node, [self.values[x] for x in node.inputs])
        program = source.program.get(node)
        if program is not None and isinstance(found, Interval):
            error = self.error(node, found)
            found = Interval(
                np.nextafter(found.lower - error, -np.inf),
                np.nextafter(found.upper + error, np.inf),
                found.nan,
            )
            if all(x in self.values for x in program.inputs):
                own = interval_of(program, [self.values[x] for x in program.inputs])
                found = meet(found, own)
        return found

    def error(self, node: Node, result: Interval) -> Any:
        """How far rounding moves a node of the program, as `node_error`."""
        return node_error(node, self.network.source, self.values.__getitem__, result)

    # -- what programs read -----------------------------------------------------------------------
    def enter(self, node: Node) -> None:
        """What the backward pass reads of a node."""
        role, value = self.network.role[node], self.values[node]
        for x in node.inputs:
            if x not in self.network.moving and (x, "low") not in self.store:
                self.enter_ends(x)
        if role == "interval":
            self.enter_ends(node)
        elif role == "linear":
            self.enter_linear(node, value)
        else:
            self.enter_relaxed(node, value)

    def enter_ends(self, node: Node) -> None:
        value = self.values[node]
        if isinstance(value, Rectangle | list):
            return
        if not node.dtype.is_float:
            self.store[node, "value"] = value.lower.astype(node.dtype.dtype)
        with np.errstate(all="ignore"):
            loss = self.network.loss * value.size
            self.store[node, "low"] = np.where(value.lower == 0, 0.0, value.lower) - loss
            self.store[node, "high"] = value.upper + loss
        self.store[node, "middle"] = value.mid
        self.lost(value.size)

    def lost(self, size: Array) -> None:
        """Coefficients that underflow, beside a value of this size."""
        finite = np.where(np.isfinite(size), size, 0.0)
        self.underflow = self.underflow + UNDERFLOW * float(np.sum(finite))

    def enter_ball(self, x: Node, ball: Any) -> None:
        """Its centre, and the radius with what the pass may lose."""
        size = float(np.abs(ball.centre).max(initial=0.0)) * ball.centre.size
        radius = ball.radius * (1 + 1e-9) + 2 * self.network.loss * size
        self.store[x, "centre"] = np.asarray(ball.centre, np.float64)
        self.store[x, "radius"] = np.full((x.shape[0],) if x in self.network.batch else (), radius)
        self.underflow = self.underflow + UNDERFLOW * (size + radius)

    def enter_linear(self, node: Node, value: Interval) -> None:
        store, network = self.store, self.network
        given = [self.values[x] for x in node.inputs]
        sizes = [x.size if p.dtype.is_float else x.lower.astype(p.dtype.dtype)
                 for x, p in zip(given, node.inputs, strict=True)]  # fmt: skip
        if node in network.steps.rounds:
            error = self.error(node, value) * (1 + 1e-9)
            total: Any = value.size
            if _is_product(node) or isinstance(node.prim, (*SUMS, Windows)):
                total = magnitudes(node, sizes)
            elif node.op in (el.add.name, el.sub.name):
                total = sizes[0] + sizes[1]
            error = error + network.loss * total
            if _is_product(node):
                error = error + self.spread(node, given, sizes)
            store[node, "error"] = np.broadcast_to(error, value.shape).astype(np.float64)
        if node in network.steps.products:
            for x, interval in zip(node.inputs, given, strict=True):
                store[x, "middle"] = interval.mid
            if all(x in network.moving for x in node.inputs):
                middles = [x.mid for x in given]
                store[node, "bias"] = -np.asarray(in_any_order(node.prim)(*middles), np.float64)
        self.lost(value.size)

    def spread(self, node: Node, given: Sequence[Interval], sizes: Sequence[Array]) -> Any:
        """How far a product is from that of the middles of one factor or both."""
        with np.errstate(all="ignore"):
            away = [np.maximum(x.upper - x.mid, x.mid - x.lower) * (1 + 1e-9) for x in given]
        moving = [x in self.network.moving for x in node.inputs]
        if all(moving):
            return magnitudes(node, away)
        factors = [size if m else by for size, by, m in zip(sizes, away, moving, strict=True)]
        if not any(f.any() for f, m in zip(factors, moving, strict=True) if not m):
            return 0.0
        return magnitudes(node, factors)

    def enter_relaxed(self, node: Node, value: Interval) -> None:
        composite = self.network.composites.get(node)
        if composite is not None:
            operands: Sequence[Node] = (composite.variable,)
            given, error = [self.values[composite.variable]], 0.0
            found, inner = composite.relaxed(self.values, value)
            self.values[node] = value = meet(value, inner)
        else:
            operands = node.inputs
            given = [self.values[x] for x in node.inputs]
            found = RELAXATIONS[node.op](node, given, interval_of(node, given))
            error = self.error(node, value)
        planes = Relaxed(
            found.operands,
            tuple(self.outward(p, found, given, error, -1) for p in found.lower),
            tuple(self.outward(p, found, given, error, 1) for p in found.upper),
            found.axes,
        )
        self.relaxed[node] = planes
        nodes = tuple(operands[i] for i in found.operands)
        known = Planes(nodes, len(planes.lower), len(planes.upper), found.axes)
        self.network.steps.planes[node] = known  # type: ignore[index]
        for side, part in (("lower", planes.lower[0]), ("upper", planes.upper[0])):
            self.store[node, f"{side} bias", 0] = part.bias
            for i, slope in enumerate(part.slopes):
                self.store[node, f"{side} slope", i] = slope
        self.lost(value.size)

    def outward(
        self, plane: Plane, found: Relaxed, given: Sequence[Interval], error: Any, side: int
    ) -> Plane:
        """A plane moved by the rounding of the node and that of the backward pass."""
        with np.errstate(all="ignore"):
            size = np.abs(plane.bias)
            for position, slope in zip(found.operands, plane.slopes, strict=True):
                part = np.where(slope == 0, 0.0, np.abs(slope) * given[position].size)
                size = size + (np.sum(part, axis=found.axes) if found.axes else part)
            moved = plane.bias + side * (error + self.network.loss * size)
            bias = np.where(np.isnan(moved), side * np.inf, moved)
        shape = [given[p].shape for p in found.operands]
        slopes = tuple(
            np.broadcast_to(s, d).astype(np.float64)
            for s, d in zip(plane.slopes, shape, strict=True)
        )
        return Plane(slopes, np.asarray(bias, np.float64))

    # -- backward passes --------------------------------------------------------------------------
    def tightened(self, node: Node) -> Interval:
        """The interval of a node, intersected with what a backward pass gives."""
        value, network = self.values[node], self.network
        self.enter(node)
        axis = network.batch.get(node)
        low, high = (_rows(v, axis) for v in (value.lower, value.upper))
        loose = low < high
        if node in network.signs:  # where the sign is known, relu is a line
            loose &= (low < 0) & (high > 0)
        samples = len(loose)
        most = int(loose.sum(axis=1).max(initial=0))
        # The places of each sample that are loose, the first of them again where there are fewer.
        order = np.argsort(~loose, axis=1, kind="stable")[:, :most]
        places = np.where(np.take_along_axis(loose, order, 1), order, order[:, :1])
        step = max(CHUNK // (16 * network.widest), 1)
        for start in range(0, most, step):
            part = places[:, start : start + step]
            found = self.least(node, self.functions(node, part, axis))
            found = found.reshape(2, part.shape[1], samples).swapaxes(1, 2)
            at = np.arange(samples)[:, None], part
            np.maximum.at(low, at, found[0])
            np.minimum.at(high, at, -found[1])
        shape = value.shape
        ends = [_unrowed(v, axis, shape) for v in (np.minimum(low, high), np.maximum(low, high))]
        return Interval(ends[0], ends[1], value.nan)

    def functions(self, node: Node, places: Array, axis: int | None) -> Array:
        """The elements at some places of each sample, and their negatives, as functions."""
        samples, n = places.shape
        size = math.prod(node.shape) // max(samples, 1)
        c = np.zeros((2, n, samples, size))
        which = np.arange(n)[:, None], np.arange(samples), places.T
        c[(0, *which)], c[(1, *which)] = 1.0, -1.0
        rest = [d for i, d in enumerate(node.shape) if i != axis]
        c = c.reshape(2 * n, *([] if axis is None else [samples]), *rest)
        return c if axis is None else np.asarray(np.moveaxis(c, 1, axis + 1), order="C")

    def least(self, node: Node, c: Array) -> Array:
        """Lower bounds of linear functions of a node, `[S]` or `[S, B]`."""
        if self.optimise is not None:
            found = self.optimise(self, node, c)
        else:
            steps, program = self.network.program(node)
            (found,) = program([c, *[self.read(key) for key in steps.keys]])
        found = np.asarray(found) - float(self.underflow)
        return np.where(np.isnan(found), -np.inf, found)

    def read(self, key: Key) -> Array:
        return np.asarray(self.store[key], order="C")


def _is_product(node: Node) -> bool:
    """Whether an operation is linear in each of two inputs."""
    return Trait.PRODUCT in node.prim.traits or isinstance(node.prim, BilinearOp)


def _is_move(node: Node) -> bool:
    """Whether the reverse rule moves elements, and adds up none."""
    is_view = Trait.VIEW in node.prim.traits and not isinstance(node.prim, Expand)
    return is_view or node.op == el.neg.name


def _repeats(node: Node) -> bool:
    """Whether each element is one of the input, or a constant."""
    return Trait.STRIDED in node.prim.traits or isinstance(node.prim, Pad)


def _rows(x: Array, axis: int | None) -> Array:
    """A copy with one row for each sample."""
    if axis is None:
        return np.array(x).reshape(1, -1)
    moved = np.moveaxis(x, axis, 0)
    return np.array(moved).reshape(moved.shape[0], math.prod(moved.shape[1:]))


def _unrowed(x: Array, axis: int | None, shape: tuple[int, ...]) -> Array:
    if axis is None:
        return x.reshape(shape)
    rest = shape[:axis] + shape[axis + 1 :]
    return np.asarray(np.moveaxis(x.reshape(shape[axis], *rest), 0, axis), order="C")


def linear_bounds(
    graph: Graph, given: Sequence[Any], optimise: Optimiser | None = None
) -> list[Any]:
    """What the outputs of a graph can be, by CROWN; with `optimise`, see `alpha.py`, as well."""
    network = network_of(graph, given)
    found = Bounding(network, given).run()
    if optimise is not None:
        found = _both(found, Bounding(network, given, optimise).run())
    return _both(found, outputs_of(graph, given))


def _both(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """What is in both, of real numbers."""
    return [
        meet(a, b) if isinstance(a, Interval) else b for a, b in zip(first, second, strict=True)
    ]


@method("crown")
def crown(graph: Graph, regions: Sequence[Any]) -> Sequence[Any]:
    """CROWN (Zhang et al., arXiv:1811.00866), for any graph."""
    return linear_bounds(graph, regions)


_NETWORKS: dict[Any, BoundedGraph] = {}
_CHOOSING = lock(66)
KEPT = 8


def network_of(graph: Graph, given: Sequence[Any]) -> BoundedGraph:
    """The network of a graph, which is kept: a few of those that were used last."""
    regions = tuple(_is_region(x, node) for x, node in zip(given, graph.inputs, strict=True))
    norms = {i: x.round.norm for i, x in enumerate(given) if isinstance(x, RoundInterval)}
    key = (graph, regions, tuple(sorted(norms.items())), current_backend() == "reference")
    with _CHOOSING:
        found = _NETWORKS.pop(key, None)
    found = found or BoundedGraph(graph, regions, norms)
    with _CHOOSING:
        _NETWORKS[key] = found
        while len(_NETWORKS) > KEPT:
            _NETWORKS.pop(next(iter(_NETWORKS)))
    return found


def _is_region(value: Any, node: Node) -> bool:
    """Not so of numbers, even of subnormal ones that may count as zero."""
    if not isinstance(value, Interval):
        return not value.is_point
    if not node.dtype.is_float:
        return not value.is_point
    return bool((value.upper - value.lower > 2 * format_of(node.dtype).tiny).any())
