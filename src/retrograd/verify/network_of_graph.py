"""The network of a graph: sums with constant weights, and ReLUs, where it is made of these.

Every node that depends on the input is a view of one value of the network (which of its elements
stands where; -1 is a zero), so what moves elements costs nothing. What is linear in it becomes a
sum whose weights are found by applying the op to each unit vector; `max`, `min`, `abs`, `clamp`,
pooling and leaky ReLUs become ReLUs, exactly: `max(a, b) = b + relu(a - b)`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.errors import BackendError, NonFiniteError, OptionError
from retrograd.ir import Graph, Node, apply, interpret
from retrograd.ops import elementwise as el
from retrograd.ops.conv import Conv, framed
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.index import Gather
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.pool import MaxPool
from retrograd.ops.reduce import ReduceMax, ReduceMin, ReduceSum
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice
from retrograd.ops.windows import Fold, Windows, windows_of
from retrograd.tuning import TUNING
from retrograd.verify.network import EXACT, ROUNDING, Affine, Array, Relu, ReluNetwork


class NotPiecewiseLinear(BackendError):
    """A program that is not made of sums with constant weights and ReLUs."""


@dataclass(frozen=True)
class ElementView:
    """An array whose element k is element `at[k]` of a value, 0 where that is -1."""

    value: int
    at: Array
    sole: bool = False  # nothing else reads the value


def network_of(graph: Graph) -> ReluNetwork:
    """The network from all inputs of a graph, flat and one after the other, to all its outputs.

    `NotPiecewiseLinear` names the first node that is no sum with constant weights, and no ReLU.
    """
    sizes = [math.prod(map(int, x.shape)) for x in graph.inputs]
    uses = Counter(x for node in graph.body for x in node.inputs) + Counter(graph.outputs)
    build = Builder(sum(sizes), uses)
    starts = np.cumsum([0, *sizes])
    for x, start, size in zip(graph.inputs, starts, sizes, strict=False):
        if x.dtype.name not in ROUNDING:
            raise NotPiecewiseLinear(f"the input {x.describe()} is not of a floating dtype")
        build.known[x] = ElementView(0, np.arange(start, start + size).reshape(x.shape))
    for node in graph.body:
        build.visit(node)
    return build.finished(graph.outputs)


class Builder:
    """The steps so far, and of each node its view, or its value where it is constant."""

    def __init__(self, inputs: int, uses: Counter[Node]) -> None:
        self.inputs = inputs
        self.steps: list[Affine | Relu] = []
        self.sizes = [inputs]
        self.known: dict[Node, ElementView | Array] = {}
        self.uses = uses
        self.weights = 0

    def finished(self, outputs: Sequence[Node]) -> ReluNetwork:
        total = self.concatenated([self.known[y] for y in outputs])
        last = len(self.steps)
        if total.value != last or not np.array_equal(total.at, np.arange(self.sizes[last])):
            total = self.affine([total], np.zeros(total.at.size), EXACT)
        return ReluNetwork(self.inputs, tuple(self.steps))

    def visit(self, node: Node) -> None:
        given = [self.known[x] for x in node.inputs]
        if not any(isinstance(x, ElementView) for x in given):
            self.known[node] = np.asarray(apply(node, given))
            return
        rule = RULES.get(type(node.prim)) or NAMED.get(node.op)
        if rule is None or node.dtype.name not in (*ROUNDING, "bool"):
            raise self.refusal(node)
        found = rule(self, node, given)
        if isinstance(found, ElementView) and found.sole and self.uses[node] > 1:
            found = ElementView(found.value, found.at)
        self.known[node] = found

    def refusal(self, node: Node) -> NotPiecewiseLinear:
        return NotPiecewiseLinear(
            f"{node.op!r} ({node.describe()}) is neither a sum with constant weights nor a ReLU; "
            "method='crown' or 'ibp' takes any program"
        )

    # Steps

    def added(self, step: Affine | Relu, size: int) -> ElementView:
        self.steps.append(step)
        self.sizes.append(size)
        return ElementView(len(self.steps), np.arange(size), sole=True)

    def affine(
        self, views: Sequence[ElementView], bias: Array, dtype: str,
        weights: Sequence[Array | float] | None = None,
    ) -> ElementView:  # fmt: skip
        """The sum of views, each weighed: by a matrix, or elementwise."""
        bias = np.asarray(bias, np.float64).ravel()
        terms: dict[int, Array] = {}
        for view, w in zip(views, weights or [1.0] * len(views), strict=True):
            columns = self.columns(view, w, bias.size)
            terms[view.value] = terms[view.value] + columns if view.value in terms else columns
        if not all(np.isfinite(x).all() for x in (bias, *terms.values())):
            raise NonFiniteError(
                "a weight of the network is infinite or NaN: nothing can be proved of it"
            )
        return self.added(Affine(tuple(terms.items()), bias, dtype), bias.size)

    def columns(self, view: ElementView, w: Array | float, rows: int) -> Array:
        """A matrix for the elements of a view, as one for the elements of its value."""
        size = self.sizes[view.value]
        self.weights += rows * size
        if self.weights > TUNING.network_weights:
            raise OptionError(
                f"the network has more than {TUNING.network_weights} weights, zeros included: too "
                "large for branch and bound; method='crown' or 'ibp' takes it"
            )
        at = view.at.ravel()
        here = np.flatnonzero(at >= 0)
        full = np.zeros((rows, size))
        if np.ndim(w) == 2:
            assert isinstance(w, np.ndarray)
            full[:, at[here]] = w[:, here]
        else:
            full[here, at[here]] = np.broadcast_to(w, at.shape)[here]
        return full

    def rectified(self, view: ElementView) -> ElementView:
        size = self.sizes[view.value]
        if view.at.size != size or not np.array_equal(np.sort(view.at.ravel()), np.arange(size)):
            view = ElementView(
                self.moved(view).value, np.arange(view.at.size).reshape(view.at.shape)
            )
        made = self.added(Relu(view.value), self.sizes[view.value])
        return ElementView(made.value, view.at, sole=True)

    def moved(self, view: ElementView) -> ElementView:
        """The elements of a view as a value of their own."""
        made = self.affine([view], np.zeros(view.at.size), EXACT)
        return ElementView(made.value, made.at.reshape(view.at.shape), sole=True)

    def distinct(self, view: ElementView) -> ElementView:
        """A view that has no element twice."""
        at = view.at[view.at >= 0]
        return view if len(np.unique(at)) == len(at) else self.moved(view)

    def maximum(self, a: ElementView, b: ElementView) -> ElementView:
        """`b + relu(a - b)`."""
        none = np.zeros(a.at.size)
        over = self.rectified(self.affine([a, b], none, EXACT, [1.0, -1.0]))
        y = self.affine([b, over], none, EXACT)
        return ElementView(y.value, y.at.reshape(a.at.shape))

    def negative(self, a: ElementView) -> ElementView:
        y = self.affine([a], np.zeros(a.at.size), EXACT, [-1.0])
        return ElementView(y.value, y.at.reshape(a.at.shape))

    def shifted(self, a: ElementView, by: Array, dtype: str = EXACT) -> ElementView:
        y = self.affine([a], by, dtype)
        return ElementView(y.value, y.at.reshape(a.at.shape), sole=True)

    def concatenated(self, parts: Sequence[ElementView | Array]) -> ElementView:
        """Views and constants, flat and one after the other, as a view of one value."""
        views = [p for p in parts if isinstance(p, ElementView)]
        if len(views) == len(parts) and len({v.value for v in views}) == 1:
            return ElementView(views[0].value, np.concatenate([v.at.ravel() for v in views]))
        size = sum(p.at.size if isinstance(p, ElementView) else p.size for p in parts)
        bias, spread, start = np.zeros(size), [], 0
        for p in parts:
            count = p.at.size if isinstance(p, ElementView) else p.size
            if isinstance(p, ElementView):
                at = np.full(size, -1)
                at[start : start + count] = p.at.ravel()
                spread.append(ElementView(p.value, at))
            else:
                bias[start : start + count] = p.ravel()
            start += count
        return self.affine(spread, bias, EXACT)


Given = Sequence[Any]
Rule = Callable[[Builder, Node, Given], Any]


def _move(build: Builder, node: Node, given: Given) -> ElementView:
    """What puts elements elsewhere does the same to their positions."""
    (view,) = given
    return ElementView(view.value, np.asarray(node.prim.reference(view.at)), view.sole)


def _pad(build: Builder, node: Node, given: Given) -> ElementView:
    view, value = given
    if isinstance(view, ElementView) and not isinstance(value, ElementView) and float(value) == 0:
        at = node.prim.reference(view.at, np.asarray(-1))
        return ElementView(view.value, np.asarray(at), view.sole)
    raise build.refusal(node)


def _gather(build: Builder, node: Node, given: Given) -> ElementView:
    view, index = given
    if isinstance(index, ElementView) or not isinstance(view, ElementView):
        raise build.refusal(node)
    return ElementView(view.value, np.asarray(node.prim.reference(view.at, index)))


def _identity(build: Builder, node: Node, given: Given) -> ElementView:
    return given[0]


def _cast(build: Builder, node: Node, given: Given) -> ElementView:
    (view,) = given
    before, after = node.inputs[0].dtype.name, node.dtype.name
    if after == "bool" or before not in ROUNDING:
        raise build.refusal(node)
    wider = ROUNDING[after][0] <= ROUNDING[before][0] and ROUNDING[after][1] <= ROUNDING[before][1]
    return view if wider else build.shifted(view, np.zeros(view.at.size), after)


def _contraction(build: Builder, node: Node, given: Given) -> ElementView:
    """Of `dot_general` with a constant: the weights of each sum, at the elements it is of."""
    op = node.prim
    assert isinstance(op, DotGeneral)
    first = isinstance(given[0], ElementView)
    if isinstance(given[1], ElementView) == first:
        raise build.refusal(node)
    view, other = build.distinct(given[1 - first]), np.asarray(given[first], np.float64)
    a_free, b_free = op.free_axes(*(x.type.rank for x in node.inputs))
    sides = (op.a_batch, a_free, op.a_contract), (op.b_batch, b_free, op.b_contract)
    own, its = sides if first else sides[::-1]
    order = np.arange(view.at.size).reshape(view.at.shape)
    columns, weights = _matrices(order, own), _matrices(other, its)
    batch, rows, inner = columns.shape
    full = np.zeros((batch, rows, weights.shape[1], view.at.size))
    at = np.broadcast_to(columns[:, :, None], (batch, rows, weights.shape[1], inner))
    np.put_along_axis(full, at, np.broadcast_to(weights[:, None], at.shape), axis=3)
    return _weighed(build, node, view, full if first else full.swapaxes(1, 2))


def _matrices(x: Array, axes: tuple[Sequence[int], ...]) -> Array:
    """An array as [batch, free, contracted]."""
    sizes = [math.prod(x.shape[i] for i in part) for part in axes]
    return x.transpose([i for part in axes for i in part]).reshape(sizes)


def _convolution(build: Builder, node: Node, given: Given) -> ElementView:
    """Of `conv` with a constant kernel: it stands at the elements of each window."""
    op = node.prim
    assert isinstance(op, Conv)
    if not isinstance(given[0], ElementView) or isinstance(given[1], ElementView):
        return _linear(build, node, given)
    view, kernel = build.distinct(given[0]), np.asarray(given[1], np.float64)
    order = np.arange(1, view.at.size + 1).reshape(view.at.shape)
    full = framed(order, op.low, op.high, op.x_dilation)
    windows = windows_of(full, kernel.shape[2:], op.strides, op.w_dilation)
    samples, places = len(order), math.prod(map(int, node.shape[2:]))
    groups, own = int(op.groups), math.prod(kernel.shape[1:])
    at = windows.reshape(samples, groups, kernel.shape[1], places, -1).swapaxes(2, 3)
    at = at.reshape(samples, groups, 1, places, own)
    weights = kernel.reshape(1, groups, -1, 1, own)
    shape = (samples, groups, weights.shape[2], places, own)
    found = np.zeros((*shape[:4], view.at.size + 1))  # column 0 is the padding's
    np.put_along_axis(found, np.broadcast_to(at, shape), np.broadcast_to(weights, shape), axis=4)
    return _weighed(build, node, view, found[..., 1:])


def _weighed(build: Builder, node: Node, view: ElementView, weights: Array) -> ElementView:
    matrix = weights.reshape(-1, view.at.size)
    made = build.affine([view], np.zeros(len(matrix)), node.dtype.name, [matrix])
    return ElementView(made.value, made.at.reshape(node.shape), sole=True)


def _linear(build: Builder, node: Node, given: Given) -> ElementView:
    """An op that is linear in the one input that is not constant: its matrix, column by column."""
    changing = [isinstance(x, ElementView) for x in given]
    if sum(changing) != 1:
        raise build.refusal(node)
    k = changing.index(True)
    view = build.distinct(given[k])
    n, shape = view.at.size, node.inputs[k].shape
    inputs = [input_node(x.type.with_shape((n, *shape))) if c else constant(np.asarray(a))
              for x, a, c in zip(node.inputs, given, changing, strict=True)]  # fmt: skip
    y = node.prim.batch(n, changing, *inputs)
    units = np.eye(n, dtype=node.inputs[k].dtype.dtype).reshape(n, *shape)
    (found,) = interpret(Graph([inputs[k]], [y]), [units], apply)
    return _weighed(build, node, view, np.asarray(found, np.float64).reshape(n, -1).T)


def _add(build: Builder, node: Node, given: Given) -> ElementView:
    sign = -1.0 if node.op == el.sub.name else 1.0
    a, b = given
    if isinstance(a, ElementView) and isinstance(b, ElementView):
        y = build.affine([a, b], np.zeros(a.at.size), node.dtype.name, [1.0, sign])
        return ElementView(y.value, y.at.reshape(node.shape), sole=True)
    if isinstance(a, ElementView):
        view, other, weight = a, sign * np.asarray(b, np.float64), 1.0
    else:
        view, other, weight = b, np.asarray(a, np.float64), sign
    if weight == 1.0 and (found := _with_bias(build, view, other, node)):
        return found
    y = build.affine([view], other, node.dtype.name, [weight])
    return ElementView(y.value, y.at.reshape(node.shape), sole=True)


def _with_bias(build: Builder, view: ElementView, bias: Array, node: Node) -> ElementView | None:
    """The bias of the sum before it, which nothing else reads."""
    if not view.sole or view.value != len(build.steps):
        return None
    step = build.steps[-1]
    if not isinstance(step, Affine) or step.dtype != node.dtype.name or step.bias.any():
        return None
    at = view.at.ravel()
    if not np.array_equal(np.sort(at), np.arange(len(step.bias))) or not np.isfinite(bias).all():
        return None
    own = np.zeros(len(step.bias))
    own[at] = bias.ravel()
    build.steps[-1] = Affine(step.terms, own, step.dtype)
    return view


def _mul(build: Builder, node: Node, given: Given) -> ElementView:
    a, b = given
    if isinstance(a, ElementView) == isinstance(b, ElementView) or (
        node.op == el.div.name and isinstance(b, ElementView)
    ):
        raise build.refusal(node)
    view, other = (a, b) if isinstance(a, ElementView) else (b, a)
    factor = np.asarray(other, np.float64).ravel()
    if node.op == el.div.name:
        with np.errstate(divide="ignore"):
            factor = 1.0 / factor  # off by a rounding of float64, which the two spare terms cover
    y = build.affine([view], np.zeros(view.at.size), node.dtype.name, [factor])
    return ElementView(y.value, y.at.reshape(node.shape), sole=True)


def _neg(build: Builder, node: Node, given: Given) -> ElementView:
    return build.negative(given[0])


def _relu(build: Builder, node: Node, given: Given) -> ElementView:
    return build.rectified(given[0])


def _abs(build: Builder, node: Node, given: Given) -> ElementView:
    (x,) = given
    y = build.affine([build.rectified(x), x], np.zeros(x.at.size), EXACT, [2.0, -1.0])
    return ElementView(y.value, y.at.reshape(node.shape))


def _at_least(build: Builder, view: ElementView, least: Array) -> ElementView:
    """`max(view, least)` for a constant."""
    if not np.any(least):
        return build.rectified(view)
    return build.shifted(build.rectified(build.shifted(view, -least)), least)


def _max(build: Builder, node: Node, given: Given) -> ElementView:
    a, b = given
    if isinstance(a, ElementView) and isinstance(b, ElementView):
        return build.maximum(a, b)
    view, other = (a, b) if isinstance(a, ElementView) else (b, a)
    return _at_least(build, view, np.asarray(other, np.float64))


def _min(build: Builder, node: Node, given: Given) -> ElementView:
    turned = [build.negative(x) if isinstance(x, ElementView) else -np.asarray(x) for x in given]
    return build.negative(_max(build, node, turned))


def _clamp(build: Builder, node: Node, given: Given) -> ElementView:
    view, low, high = given
    if (
        not isinstance(view, ElementView)
        or isinstance(low, ElementView)
        or isinstance(high, ElementView)
    ):
        raise build.refusal(node)
    if np.isfinite(low).all():
        view = _at_least(build, view, np.asarray(low, np.float64))
    if np.isfinite(high).all():
        view = build.negative(view)
        view = build.negative(_at_least(build, view, -np.asarray(high, np.float64)))
    return view


def _largest(build: Builder, view: ElementView) -> ElementView:
    """The maximum along the last axis, of halves and halves of these."""
    while view.at.shape[-1] > 1:
        half = view.at.shape[-1] // 2
        a, b = (
            ElementView(view.value, view.at[..., :half]),
            ElementView(view.value, view.at[..., -half:]),
        )
        both = build.maximum(a, b)
        if view.at.shape[-1] % 2:
            rest = ElementView(view.value, view.at[..., half : half + 1])
            lead = view.at.shape[:-1]
            parts = [ElementView(v.value, np.moveaxis(v.at, -1, 0)) for v in (both, rest)]
            y = build.concatenated(parts)
            view = ElementView(y.value, np.moveaxis(y.at.reshape(half + 1, *lead), 0, -1))
        else:
            view = both
    return ElementView(view.value, view.at[..., 0])


def _max_pool(build: Builder, node: Node, given: Given) -> ElementView:
    (view,) = given
    pool = node.prim
    assert isinstance(pool, MaxPool)
    order = np.arange(view.at.size).reshape(view.at.shape)
    windows = pool.windows(order, -1)
    first = windows.max(axis=-1, keepdims=True)  # padding never wins: another element in its place
    if (first < 0).any():
        raise build.refusal(node)
    at = view.at.ravel()[np.where(windows < 0, first, windows)]
    return _largest(build, ElementView(view.value, at))


def _reduce_max(build: Builder, node: Node, given: Given) -> ElementView:
    (view,) = given
    axes = node.prim.axes  # type: ignore[attr-defined]
    kept = [i for i in range(view.at.ndim) if i not in axes]
    at = view.at.transpose(*kept, *axes).reshape(*(view.at.shape[i] for i in kept), -1)
    view = ElementView(view.value, at)
    if isinstance(node.prim, ReduceMax):
        return _largest(build, view)
    return build.negative(_largest(build, build.negative(view)))


@dataclass(frozen=True)
class Compared:
    """Whether a view is above (or below) zero."""

    view: ElementView
    positive: bool


def _compare(build: Builder, node: Node, given: Given) -> Compared:
    a, b = given
    if isinstance(a, ElementView) and not isinstance(b, ElementView) and not np.any(b):
        return Compared(a, node.op in (el.gt.name, el.ge.name))
    if isinstance(b, ElementView) and not isinstance(a, ElementView) and not np.any(a):
        return Compared(b, node.op in (el.lt.name, el.le.name))
    raise build.refusal(node)


def _select(build: Builder, node: Node, given: Given) -> ElementView:
    """`where(z > 0, z, a * z)`, a leaky ReLU: `relu(z) - a * relu(-z)`; and constant choices."""
    condition, above, below = given
    if isinstance(condition, Compared):
        nodes = node.inputs[1:] if condition.positive else node.inputs[:0:-1]
        above = build.known[nodes[0]]
        factor = _leak(build, nodes[1], condition.view)
        if factor is not None and _same(above, condition.view):
            return _leaky(build, condition.view, factor, node)
        raise build.refusal(node)
    if isinstance(condition, ElementView) or not isinstance(condition, np.ndarray):
        raise build.refusal(node)
    parts = [_part(x, c) for x, c in ((above, condition), (below, ~condition))]
    bias = sum((p for p in parts if not isinstance(p, ElementView)), np.zeros(condition.shape))
    y = build.affine([p for p in parts if isinstance(p, ElementView)], bias, EXACT)
    return ElementView(y.value, y.at.reshape(node.shape), sole=True)


def _part(x: ElementView | Array, chosen: Array) -> ElementView | Array:
    if isinstance(x, ElementView):
        return ElementView(x.value, np.where(chosen, x.at, -1))
    return np.where(chosen, x, 0.0)


def _same(a: Any, b: ElementView) -> bool:
    return isinstance(a, ElementView) and a.value == b.value and np.array_equal(a.at, b.at)


def _leak(build: Builder, node: Node, view: ElementView) -> Array | None:
    """The constant a of a node that is `a * view`, zeros for a constant zero."""
    known = build.known[node]
    if not isinstance(known, ElementView):
        return None if np.any(known) else np.zeros(view.at.shape)
    if node.op != el.mul.name:
        return None
    a, b = (build.known[x] for x in node.inputs)
    for factor, other in ((a, b), (b, a)):
        if not isinstance(factor, ElementView) and _same(other, view):
            return np.asarray(factor, np.float64)
    return None


def _leaky(build: Builder, z: ElementView, factor: Array, node: Node) -> ElementView:
    over = build.rectified(z)
    none = np.zeros(z.at.size)
    if not factor.any():
        return ElementView(over.value, over.at)
    under = build.affine([over, z], none, EXACT, [1.0, -1.0])  # relu(-z)
    leaked = build.affine([under], none, node.dtype.name, [-factor.ravel()])
    y = build.affine([over, leaked], none, EXACT)
    return ElementView(y.value, y.at.reshape(node.shape), sole=True)


def _concat(build: Builder, node: Node, given: Given) -> ElementView:
    axis = node.prim.axis  # type: ignore[attr-defined]
    at, start = [], 0
    for x, part in zip(node.inputs, given, strict=True):
        size = part.at.size if isinstance(part, ElementView) else part.size
        at.append(np.arange(start, start + size).reshape(x.shape))
        start += size
    y = build.concatenated(given)
    return ElementView(y.value, y.at[np.concatenate(at, axis)])


RULES: dict[Any, Rule] = {
    **dict.fromkeys((Expand, Reshape, Permute, Slice, Flip, Windows), _move),
    **dict.fromkeys((ReduceSum, Fold), _linear),
    DotGeneral: _contraction,
    Conv: _convolution,
    **dict.fromkeys((ReduceMax, ReduceMin), _reduce_max),
    Pad: _pad, Gather: _gather, Concat: _concat, MaxPool: _max_pool, el.Cast: _cast,
}  # fmt: skip
NAMED: dict[str, Rule] = {
    **dict.fromkeys((el.add.name, el.sub.name), _add),
    **dict.fromkeys((el.mul.name, el.div.name), _mul),
    **dict.fromkeys((el.gt.name, el.ge.name, el.lt.name, el.le.name), _compare),
    **dict.fromkeys((StopGradient.name, Alias.name), _identity),
    el.neg.name: _neg, el.relu.name: _relu, el.abs.name: _abs, el.max.name: _max,
    el.min.name: _min, el.clamp.name: _clamp, el.select.name: _select,
}  # fmt: skip
