"""Running sums, products, extrema, and first-order recurrences along an axis.

Each goes along its axis from the front or, with `reverse`, from the back. "Before" means before in
this direction. Derivatives are scans again, in the other direction, so they are exact to any order,
also where elements are zero, and take linear time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Node, Op, TensorType, Trait, declare, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import (
    COMPLEX,
    FLOAT,
    NUMBER,
    drop_if,
    eq,
    exp,
    floor,
    ne,
    reciprocal,
    select,
    zmul,
)
from retrograd.ops.identity import StopGradient
from retrograd.ops.index import gather_along, scatter_along
from retrograd.ops.numerics.compensated_sum import (
    by_halves,
    cumulative,
    settled,
    two_product,
    two_sum,
)
from retrograd.ops.numerics.half import in_float32
from retrograd.ops.shape import fail, pad, slice_axis, stack_front


class AxisScan(Op):
    """An op along one axis whose result has the shape of its inputs."""

    traits = frozenset({Trait.READS_MANY})
    arity = 1
    axis: int
    reverse: bool
    kinds: Sequence[str] = NUMBER
    combine: el.Elementwise | None = None  # what is so far and the next, where that is an op

    def infer(self, *types: TensorType) -> TensorType:
        x = types[0]
        for t in types[1:]:
            if t != x:
                error = ShapeError if t.shape != x.shape else DTypeError
                listed = " and ".join(map(str, types))
                raise error(f"{self.name} takes inputs of one shape and dtype, not {listed}")
        if x.dtype.kind not in self.kinds:
            raise DTypeError(f"{self.name} takes {' or '.join(self.kinds)} inputs, not {x}")
        if not 0 <= self.axis < x.rank:
            raise fail(self, x, f"the axis must lie within its {x.rank}")
        return x

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return in_float32(self._directed, arrays)

    def _directed(self, *arrays: Any) -> Any:
        """The value, by way of arrays turned round where the scan is reversed."""
        if not self.reverse:
            return self.forward(*arrays)
        turned = [np.flip(x, self.axis) for x in arrays]
        return np.flip(self.forward(*turned), self.axis)

    def forward(self, *arrays: Any) -> Any:
        """The meaning of the scan from the front, in NumPy."""
        raise NotImplementedError(self.name)

    def back(self) -> LinearScan:
        """The recurrence in the other direction, of which reverse rules are made."""
        return LinearScan(self.axis, not self.reverse)

    def before(self, x: Node, value: float = 0) -> Node:
        """`x` of the place before each; the first place gets a value."""
        return shifted(x, self.axis, self.reverse, value)

    def after(self, x: Node) -> Node:
        """`x` of the place after each; 0 in the last place."""
        return shifted(x, self.axis, not self.reverse, 0)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        wider = type(self)(self.axis + 1, self.reverse)
        return wider(*stack_front(size, batched, inputs))


def shifted(x: Node, axis: int, up: bool, value: float) -> Node:
    """`y[i] = x[i - 1]`, or `x[i + 1]` with `up`; the place that is left gets a value."""
    none = [0] * x.type.rank
    one = [int(i == axis) for i in range(x.type.rank)]
    low, high = (none, one) if up else (one, none)
    n = x.shape[axis]
    wide = pad(x, tuple(low), tuple(high), value=value)
    return slice_axis(wide, axis, 1, n + 1) if up else slice_axis(wide, axis, 0, n)


@declare
class CumSum(AxisScan):
    """Running sum along an axis."""

    name = "cumsum"
    traits = frozenset({Trait.READS_MANY, Trait.REAL_LINEAR, Trait.KEPT, Trait.WHOLE})
    axis: int
    reverse: bool = False
    combine = el.add
    kinds = NUMBER + COMPLEX

    def forward(self, *arrays: Any) -> Any:
        return cumulative(arrays[0], self.axis)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (CumSum(self.axis, not self.reverse)(g),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None if tangents[0] is None else self(tangents[0])


@declare
class LinearScan(AxisScan):
    """The recurrence `y[t] = a[t] * y[t-1] + b[t]` along an axis, `y[0] = b[0]`.

    A state of exactly zero absorbs its factor: `inf * 0` is 0 there, as it is in all products with
    cotangents. States are kept in twice the precision, so errors do not add up with the steps.
    """

    name = "linear_scan"
    arity = 2
    axis: int
    reverse: bool = False
    kinds = NUMBER + COMPLEX

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return 2 * result.size

    def forward(self, *arrays: Any) -> Any:
        a, b = (np.moveaxis(x, self.axis, 0) for x in arrays)
        y = np.empty_like(b)
        exact = y.dtype.kind not in "fc"
        wide = y.dtype if exact else np.result_type(y.dtype, np.float64)
        state = lost = np.full(y.shape[1:], -0.0).astype(wide)
        for t in range(len(y)):
            by = a[t].astype(wide)
            moved = np.where(state == 0, state, by * state)
            if y.dtype != np.float64:
                y[t] = state = moved + b[t]
                continue
            rounded = np.where(state == 0, 0.0, two_product(by, state)[1])
            state, rest = two_sum(moved, b[t])
            lost = np.where(lost == 0, lost, by * lost) + (rounded + rest)
            y[t] = settled(state, lost)
        return np.moveaxis(y, 0, self.axis)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        state = self.back()(self.after(inputs[0]), g)
        return zmul(state, self.before(y)), state

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        ta, tb = tangents
        if ta is None:
            return None if tb is None else self(inputs[0], tb)
        moved = zmul(ta, self.before(y))
        return self(inputs[0], moved if tb is None else moved + tb)


@declare
class CumProd(AxisScan):
    """Running product along an axis. Its partials are products of the others: zeros are fine."""

    name = "cumprod"
    traits = frozenset({Trait.READS_MANY, Trait.WHOLE})
    axis: int
    reverse: bool = False
    combine = el.mul
    kinds = NUMBER + COMPLEX

    def forward(self, *arrays: Any) -> Any:
        return np.cumprod(arrays[0], axis=self.axis, dtype=arrays[0].dtype)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        # d y[j] / d x[i] is the product of all before i, and of all from behind i up to j.
        state = self.back()(self.after(inputs[0]), g)
        return (zmul(state, self.before(y, 1)),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        if t is None:
            return None
        return LinearScan(self.axis, self.reverse)(inputs[0], zmul(t, self.before(y, 1)))


@declare
class LogCumSumExp(AxisScan):
    """`log(cumsum(exp(x)))` along an axis, without overflow.

    Its partials are `exp(x[i] - y[t])`, as products of ratios; 0 where all up to there are -inf,
    NaN from +inf on.
    """

    name = "logcumsumexp"
    traits = frozenset({Trait.READS_MANY, Trait.TRANSCENDENTAL, Trait.IN_PARTS})
    kinds = FLOAT
    axis: int
    reverse: bool = False

    def forward(self, *arrays: Any) -> Any:
        (x,) = arrays
        if x.dtype == np.float64:
            return np.moveaxis(by_halves(np.logaddexp, np.moveaxis(x, self.axis, 0)), 0, self.axis)
        return np.logaddexp.accumulate(x, self.axis, dtype=np.float64).astype(x.dtype)

    def _weights(self, y: Node, x: Node) -> tuple[Node, Node, Node]:
        """The partials as products: of what an element adds to a state, what the state keeps from
        place to place, and what it is worth in a result: the reciprocal of the state, as the
        rounded `y` of large elements would not tell."""
        first = StopGradient()(steady_top(x, self.axis, self.reverse))
        none = eq(first, full(-math.inf, y.type))
        top = drop_if(none, first)
        before, zero, one = self.before(top), full(0, y.type), full(1, y.type)
        kept = exp(select(eq(before, top), zero, before - top))
        kept = drop_if(eq(self.before(first, -math.inf), full(-math.inf, y.type)), kept)
        own = exp(x - top)
        state = LinearScan(self.axis, self.reverse)(kept, own)
        plain = none | eq(top, full(math.inf, y.type))
        return own, kept, reciprocal(select(plain, one, state))

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        own, kept, worth = self._weights(y, *inputs)
        return (zmul(self.back()(self.after(kept), zmul(g, worth)), own),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        if t is None:
            return None
        own, kept, worth = self._weights(y, *inputs)
        return zmul(LinearScan(self.axis, self.reverse)(kept, zmul(t, own)), worth)


def steady_top(x: Node, axis: int, reverse: bool) -> Node:
    """What to scale running sums of exponentials by: the first element that was a maximum with the
    whole part of the maximum so far.

    It grows by nearly one at a time, or seldom: the factors that an element is scaled down by in
    the end are few, or so small that errors of earlier ones do not matter. With the maximum itself
    there would be as many as elements, and each is rounded.
    """
    highest = CumMax(axis, reverse)(x)
    level = floor(highest)
    is_new = ne(level, shifted(level, axis, reverse, math.nan))
    return CumMax(axis, reverse)(select(is_new, highest, full(-math.inf, x.type)))


class Extremes(AxisScan):
    """Running extremum; NaN from the first NaN on. The gradient of each goes to where it was first
    attained."""

    traits = frozenset({Trait.READS_MANY, Trait.WHOLE})

    def positions(self, x: Node) -> Node:
        """Where each extremum was first attained."""
        kind = CumArgMax if self.combine is el.max else CumArgMin
        return kind(self.axis, self.reverse)(x)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return (scatter_along(g, self.positions(x), self.axis, x.type),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return None if t is None else gather_along(t, self.positions(*inputs), self.axis)


@declare
class CumMax(Extremes):
    """Running maximum along an axis; NaN from the first NaN on."""

    name = "cummax"
    axis: int
    reverse: bool = False
    combine = el.max

    def forward(self, *arrays: Any) -> Any:
        return np.maximum.accumulate(arrays[0], self.axis)


@declare
class CumMin(Extremes):
    """Running minimum along an axis; NaN from the first NaN on."""

    name = "cummin"
    axis: int
    reverse: bool = False
    combine = el.min

    def forward(self, *arrays: Any) -> Any:
        return np.minimum.accumulate(arrays[0], self.axis)


class Attained(AxisScan):
    """Where a running extremum was first attained, as int64; a NaN counts as one."""

    def infer(self, *types: TensorType) -> TensorType:
        return super().infer(*types).with_dtype(int64)

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        rows = np.moveaxis(np.flip(x, self.axis) if self.reverse else x, self.axis, -1)
        y = np.zeros(rows.shape, np.int64)
        for i in np.ndindex(rows.shape[:-1]):
            row, best = rows[i], 0
            for t in range(len(row)):
                if self.better(row[t], row[best]):
                    best = t
                y[i][t] = best
        y = np.moveaxis(y, -1, self.axis)
        return x.shape[self.axis] - 1 - np.flip(y, self.axis) if self.reverse else y

    def better(self, value: Any, best: Any) -> bool:
        """Whether a value takes the place of the best so far."""
        raise NotImplementedError(self.name)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None


@declare
class CumArgMax(Attained):
    """Where the running maximum along an axis was first attained, as int64."""

    name = "cumargmax"
    axis: int
    reverse: bool = False
    combine = el.max  # of two elements the one whose place it gives

    def better(self, value: Any, best: Any) -> bool:
        return bool(value > best or (value != value and best == best))


@declare
class CumArgMin(Attained):
    """Where the running minimum along an axis was first attained, as int64."""

    name = "cumargmin"
    axis: int
    reverse: bool = False
    combine = el.min  # of two elements the one whose place it gives

    def better(self, value: Any, best: Any) -> bool:
        return bool(value < best or (value != value and best == best))
