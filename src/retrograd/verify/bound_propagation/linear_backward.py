"""The backward pass of CROWN as a program: a linear function of one node, bounded below by linear
functions of nodes before it until only known intervals are left.

`c . y >= sum of A_x . x + b` over a front of nodes x. At each step the front moves past the last of
them. What is linear is passed by the reverse rule of its op, applied to stacks of A by its batching
rule: there is the transpose of a convolution, and nowhere else. What is not linear has planes below
and above it: positive A takes the one below, negative A the one above. What has neither is replaced
by the ends of its interval. As the nodes of the program are computed with rounding, each one costs
`|A| . error`; what this pass itself loses in float64 is part of the same error.

All is one graph in float64, for any number S of functions c at once, and for stacks of samples:
where the program computes samples apart, c has one part for each, and so has the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import batched
from retrograd.errors import GradientError
from retrograd.ir import Dim, Graph, Node, TensorType, float64, full
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Cast
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceMax, reduce_sum
from retrograd.ops.shape import expand

Array = np.ndarray[Any, Any]
Key = tuple[Any, ...]  # a node, what of it, and which one


class Planes(NamedTuple):
    """How a node that is not linear is bounded: by planes in some nodes before it, of which there
    are several to choose from. `axes` are those of an operand that the node has reduced."""

    operands: tuple[Node, ...]
    lower: int = 1
    upper: int = 1
    axes: tuple[int, ...] = ()


class PropagationPlan(NamedTuple):
    """What the backward pass does at each node of a graph."""

    graph: Graph
    role: Mapping[Node, str]  # "linear", "relaxed" or "interval": its ends are taken
    moving: frozenset[Node]  # what depends on a region
    planes: Mapping[Node, Planes]
    products: frozenset[Node]  # linear nodes whose reverse rule reads other inputs
    rounds: frozenset[Node]  # linear nodes that have an error
    batch: Mapping[Node, int]  # the axis of samples, where there is one
    norms: Mapping[Node, float]  # inputs that lie in a ball of this norm, too


class BackwardProgram(NamedTuple):
    """A program, and what it takes after the functions c, by key."""

    graph: Graph
    keys: tuple[Key, ...]


SPECS = Dim("S")


def backward(steps: PropagationPlan, target: Node, own_slopes: bool = False) -> BackwardProgram:
    """The program for functions of one node: takes c of shape `[S, *target.shape]`, gives lower
    bounds of shape `[S]`, or `[S, B]` of a stack of samples.

    With `own_slopes` each function has planes of its own, `[S, ...]`.
    """
    return _BackwardPass(steps, own_slopes).to(target)


class _BackwardPass:
    def __init__(self, steps: PropagationPlan, own_slopes: bool) -> None:
        self.steps, self.own = steps, own_slopes
        self.known: dict[Key, Node] = {}
        self.total: Node | None = None
        self.found: dict[Node, Node] = {}

    def to(self, target: Node) -> BackwardProgram:
        c = input_node(TensorType(float64, (SPECS, *target.shape)), "c")
        self.found[target] = c
        for node in reversed(self.steps.graph.nodes):
            a = self.found.pop(node, None)
            if a is not None:
                getattr(self, f"_{self.steps.role[node]}")(node, a)
        if self.found:
            raise GradientError(f"a backward pass left {', '.join(map(str, self.found))} out")
        if self.total is None:
            self.total = self.reduced(el.mul(c, full(0, c.type)), target)
        return BackwardProgram(Graph([c, *self.known.values()], [self.total]), tuple(self.known))

    def take(self, key: Key, shape: Any, own: bool = False, type: Any = float64) -> Node:
        """An input of the program."""
        if key not in self.known:
            shape = (SPECS, *shape) if own else tuple(shape)
            self.known[key] = input_node(TensorType(type, shape), f"v{len(self.known)}")
        return self.known[key]

    def wide(self, value: Node, like: Node) -> Node:
        """One value for all functions."""
        return value if value.shape == like.shape else expand(value, like.shape, (0,))

    # -- sums -------------------------------------------------------------------------------------
    def reduced(self, terms: Node, node: Node) -> Node:
        """Summed over all but functions and samples."""
        keep = {0, *([self.steps.batch[node] + 1] if node in self.steps.batch else [])}
        return reduce_sum(terms, [i for i in range(terms.type.rank) if i not in keep])

    def add(self, terms: Node, node: Node) -> None:
        part = self.reduced(terms, node)
        if self.total is not None and part.type.rank != self.total.type.rank:
            raise GradientError(f"not of one sample: {node.describe()}")
        self.total = part if self.total is None else self.total + part

    def give(self, x: Node, part: Node) -> None:
        self.found[x] = self.found[x] + part if x in self.found else part

    # -- nodes ------------------------------------------------------------------------------------
    def _interval(self, node: Node, a: Node) -> None:
        """The least of `A . x` for x between two ends, and in a ball."""
        low = self.wide(self.take((node, "low"), node.shape), a)
        high = self.wide(self.take((node, "high"), node.shape), a)
        zero = full(0, a.type)
        terms = el.zmul(el.max(a, zero), low) + el.zmul(el.min(a, zero), high)
        norm = self.steps.norms.get(node)
        if norm is None:
            return self.add(terms, node)
        centre = self.wide(self.take((node, "centre"), node.shape), a)
        middle = self.reduced(el.zmul(a, centre), node)
        reach = self.dual(a, norm, node)
        shape = middle.shape[1:]
        radius = self.wide(self.take((node, "radius"), shape), middle)
        inside = middle - el.zmul(reach, radius)
        best = el.max(self.reduced(terms, node), inside)
        self.total = best if self.total is None else self.total + best

    def dual(self, a: Node, norm: float, node: Node) -> Node:
        """The norm of A that belongs to one of x."""
        size = el.abs(a)
        if norm == 1:
            keep = {0, *([self.steps.batch[node] + 1] if node in self.steps.batch else [])}
            axes = tuple(i for i in range(a.type.rank) if i not in keep)
            return ReduceMax(axes)(size) if axes else size
        if norm == 2:
            return el.sqrt(self.reduced(size * size, node))
        q = norm / (norm - 1)
        power = self.reduced(el.pow(size, full(q, size.type)), node)
        return el.pow(power, full(1 / q, power.type))

    def _linear(self, node: Node, a: Node) -> None:
        if node in self.steps.rounds:
            error = self.wide(self.take((node, "error"), node.shape), a)
            self.add(-el.zmul(el.abs(a), error), node)
        if node in self.steps.products and all(x in self.steps.moving for x in node.inputs):
            bias = self.wide(self.take((node, "bias"), node.shape), a)
            self.add(el.zmul(a, bias), node)
        for x, part in self.passed(node, a):
            self.give(x, part)

    def passed(self, node: Node, a: Node) -> list[tuple[Node, Node]]:
        """What A becomes at the inputs, by the reverse rule of the op."""
        if isinstance(node.prim, Cast):
            return [(node.inputs[0], a)]
        inputs = [self.operand(node, i) for i in range(len(node.inputs))]
        y = node.prim(*inputs)
        g = input_node(y.type)
        reads = node in self.steps.products
        given = [
            (x, part)
            for x, part in zip(node.inputs, node.prim.vjp(g, y, *inputs), strict=True)
            if isinstance(part, Node) and (x in self.steps.moving or not reads)
        ]
        parts = batched([part for _, part in given], {g: a}, SPECS)
        return [
            (x, part if is_stack else expand(part, (SPECS, *part.shape), (0,)))
            for (x, _), (part, is_stack) in zip(given, parts, strict=True)
        ]

    def operand(self, node: Node, i: int) -> Node:
        """An input as the reverse rule sees it: the middle of its interval, where it looks."""
        x = node.inputs[i]
        if not x.dtype.is_float:
            return self.take((x, "value"), x.shape, False, x.dtype)
        others = node.inputs[:i] + node.inputs[i + 1 :]
        if node in self.steps.products and any(z in self.steps.moving for z in others):
            return self.take((x, "middle"), x.shape)
        return input_node(x.type.with_dtype(float64))

    def _relaxed(self, node: Node, a: Node) -> None:
        planes = self.steps.planes[node]
        zero = full(0, a.type)
        plus, minus = el.max(a, zero), el.min(a, zero)
        low = self.plane(node, "lower bias", 0, node.shape, a)
        high = self.plane(node, "upper bias", 0, node.shape, a)
        self.add(el.zmul(plus, low) + el.zmul(minus, high), node)
        if planes.axes:
            x = planes.operands[0]
            shape, axes = (SPECS, *x.shape), tuple(i + 1 for i in planes.axes)
            plus, minus = (expand(v, shape, axes) for v in (plus, minus))
        for i, x in enumerate(planes.operands):
            low = self.plane(node, "lower slope", i, x.shape, plus)
            high = self.plane(node, "upper slope", i, x.shape, plus)
            self.give(x, el.zmul(plus, low) + el.zmul(minus, high))

    def plane(self, node: Node, what: str, i: int, shape: Any, like: Node) -> Node:
        return self.wide(self.take((node, what, i), shape, self.own), like)
