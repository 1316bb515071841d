"""Ops that move elements and change none: expand, reshape, permute, slice, pad, flip, concat.

All are linear, so their forward rule is the op itself applied to the tangent, and each one's
reverse rule is its transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    Dim,
    Node,
    Op,
    Shape,
    TensorType,
    Trait,
    as_dtype,
    bool_,
    declare,
    full,
    lookup,
    product,
)

# Of ops that put elements of their inputs at places known from the attributes.
MOVEMENT = frozenset({Trait.VIEW, Trait.REAL_LINEAR, Trait.DETERMINED, Trait.HANDS_ON, Trait.FREE})


class LinearOp(Op):
    """A linear op of one input."""

    traits = frozenset({Trait.REAL_LINEAR})
    arity = 1

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return self(t) if t is not None else None


def stack_front(
    size: int | Dim, batched: Sequence[bool], inputs: Sequence[Node]
) -> tuple[Node, ...]:
    """Give the inputs that have none a batch axis 0 of the given size."""
    return tuple(
        x if b else expand(x, (size, *x.shape), (0,)) for x, b in zip(inputs, batched, strict=True)
    )


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `perm`."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def fail(op: Op, x: TensorType, why: str) -> ShapeError:
    return ShapeError(f"{op} does not fit its input {x}: {why}")


def gaps(size: int | Dim) -> int | Dim:
    """The number of gaps between that many elements, `max(size - 1, 0)`."""
    return size - (2 * size) // (size + 1)  # the quotient is min(size, 1)


@declare
class Expand(LinearOp):
    """Repeat along new axes: the result has the given shape, `axes` are the axes that are new."""

    name = "expand"
    traits = MOVEMENT | {Trait.STRIDED}
    shape: Shape
    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        rank = len(self.shape)
        if any(not 0 <= a < rank for a in self.axes) or list(self.axes) != sorted(set(self.axes)):
            raise fail(self, x, f"axes are distinct, ascending and within the result's {rank}")
        if any(not isinstance(d, Dim) and d < 0 for d in self.shape):
            raise fail(self, x, "sizes are not negative")
        kept = tuple(d for i, d in enumerate(self.shape) if i not in self.axes)
        if kept != x.shape:
            raise fail(self, x, f"without the new axes the result has the shape {kept}")
        return x.with_shape(self.shape)

    def reference(self, *arrays: Any) -> Any:
        return np.broadcast_to(np.expand_dims(arrays[0], self.axes), tuple(map(index, self.shape)))

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (lookup("reduce_sum")(self.axes)(g),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Expand((size, *self.shape), tuple(a + 1 for a in self.axes))(*inputs)


@declare
class Reshape(LinearOp):
    """The same elements, in row-major order, under another shape."""

    name = "reshape"
    traits = MOVEMENT | {Trait.STRIDED, Trait.NO_TRAFFIC}
    shape: Shape

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if any(not isinstance(d, Dim) and d < 0 for d in self.shape):
            raise fail(self, x, "sizes are not negative")
        if x.size != product(self.shape):
            raise fail(self, x, f"it has {x.size} elements, the result {product(self.shape)}")
        return x.with_shape(self.shape)

    def reference(self, *arrays: Any) -> Any:
        return np.reshape(arrays[0], self.shape)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (reshape(g, inputs[0].shape),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Reshape((size, *self.shape))(*inputs)


@declare
class Permute(LinearOp):
    """Reorder axes: axis `i` of the result is axis `perm[i]` of the input."""

    name = "permute"
    traits = MOVEMENT | {Trait.STRIDED}
    perm: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if sorted(self.perm) != list(range(x.rank)):
            raise fail(self, x, f"a permutation lists each of 0 to {x.rank - 1} once")
        return x.with_shape(tuple(x.shape[p] for p in self.perm))

    def reference(self, *arrays: Any) -> Any:
        return np.transpose(arrays[0], self.perm)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (permute(g, inverse(self.perm)),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Permute((0, *(p + 1 for p in self.perm)))(*inputs)


def _taken(op: Slice | SliceSet, x: TensorType) -> TensorType:
    """The type of what a slice takes."""
    if not len(op.starts) == len(op.stops) == len(op.steps) == x.rank:
        raise fail(op, x, f"it needs a start, a stop and a step for each of {x.rank} axes")
    sizes = []
    for start, stop, step, size in zip(op.starts, op.stops, op.steps, x.shape, strict=True):
        if step < 1:
            raise fail(op, x, f"steps are positive, not {step}")
        count = (stop - start + step - 1) // step
        spare = (start, size - start, size - stop, count)
        if any(not isinstance(d, Dim) and d < 0 for d in spare):
            raise fail(op, x, f"{start}:{stop}:{step} is not within 0:{size}")
        sizes.append(count)
    return x.with_shape(tuple(sizes))


@declare
class Slice(LinearOp):
    """Elements `start, start + step, ...` below `stop` along each axis; steps are positive.

    There are `(stop - start + step - 1) // step` of them. Where that is 0, `stop` may be less than
    `start`: what a formula in symbolic sizes gives for an empty axis.
    """

    name = "slice"
    traits = MOVEMENT | {Trait.STRIDED, Trait.SIZED}
    starts: Shape
    stops: Shape
    steps: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        return _taken(self, x)

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        shape = self.infer(TensorType(as_dtype(x.dtype), x.shape)).shape
        ends = [a + n * s for a, n, s in zip(self.starts, shape, self.steps, strict=True)]
        return x[tuple(map(slice, self.starts, ends, self.steps))]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        # What lies behind the last element taken: the size less the reach of the taken elements.
        high = tuple(
            d - lo - n - gaps(n) * (s - 1)
            for d, lo, n, s in zip(inputs[0].shape, self.starts, g.shape, self.steps, strict=True)
        )
        return (pad(g, self.starts, high, tuple(s - 1 for s in self.steps)),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Slice((0, *self.starts), (size, *self.stops), (1, *self.steps))(*inputs)


@declare
class SliceSet(Op):
    """Replace the elements that `slice` takes: `y = x`, but `slice(y)` is the value.

    The gradient goes to the value; an element that is replaced gets none.
    """

    name = "slice_set"
    traits = frozenset(
        {Trait.READS_MANY, Trait.REAL_LINEAR, Trait.DETERMINED, Trait.HANDS_ON, Trait.SIZED}
    )
    arity = 2
    starts: Shape
    stops: Shape
    steps: tuple[int, ...]

    @property
    def _slice(self) -> Slice:
        return Slice(self.starts, self.stops, self.steps)

    def infer(self, *types: TensorType) -> TensorType:
        x, value = types
        expected = _taken(self, x)
        if value != expected:
            if value.dtype is not x.dtype:
                raise DTypeError(f"{self.name} into {x} takes a value of its dtype, not {value}")
            raise fail(self, x, f"the value must be {expected}, not {value}")
        return x

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return 0

    def reference(self, *arrays: Any) -> Any:
        x, value = arrays
        y = np.array(x)
        ends = [a + n * s for a, n, s in zip(self.starts, value.shape, self.steps, strict=True)]
        y[tuple(map(slice, self.starts, ends, self.steps))] = value
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return self(g, full(0, inputs[1].type)), self._slice(g)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (tx, tv), (x, value) = tangents, inputs
        if tx is None and tv is None:
            return None
        return self(
            full(0, x.type) if tx is None else tx, full(0, value.type) if tv is None else tv
        )

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        wider = SliceSet((0, *self.starts), (size, *self.stops), (1, *self.steps))
        return wider(*stack_front(size, batched, inputs))


@declare
class Pad(Op):
    """Put `low` and `high` copies of a scalar around, `interior` between elements, per axis."""

    name = "pad"
    traits = MOVEMENT | {Trait.SIZED}
    arity = 2
    low: Shape
    high: Shape
    interior: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        x, value = types
        if value.shape != () or value.dtype is not x.dtype:
            error = ShapeError if value.shape != () else DTypeError
            raise error(f"pad fills with a scalar of the dtype of {x}, not with {value}")
        if not len(self.low) == len(self.high) == len(self.interior) == x.rank:
            raise fail(self, x, f"it needs three widths for each of {x.rank} axes")
        widths = [w for w in (*self.low, *self.high, *self.interior) if not isinstance(w, Dim)]
        if any(w < 0 for w in widths):
            raise fail(self, x, "widths are not negative")
        return x.with_shape(self._result(x.shape))

    def _result(self, shape: Shape) -> Shape:
        return tuple(
            lo + d + hi + (gaps(d) * i if i else 0)
            for d, lo, hi, i in zip(shape, self.low, self.high, self.interior, strict=True)
        )

    def reference(self, *arrays: Any) -> Any:
        x, value = arrays
        y = np.full(self._result(x.shape), value, x.dtype)
        y[tuple(map(slice, *self._inside(x.shape)))] = x
        return y

    def _inside(self, shape: Shape) -> tuple[Shape, Shape, tuple[int, ...]]:
        """Starts, stops and steps of the slice of the result that holds the input."""
        steps = tuple(i + 1 for i in self.interior)
        stops = tuple(
            lo + d * s - (0 if d == 0 else s - 1)
            for d, lo, s in zip(shape, self.low, steps, strict=True)
        )
        return self.low, stops, steps

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        x, _ = inputs
        gx = Slice(*self._inside(x.shape))(g)
        # The scalar's share is the sum over the padding alone: nothing is subtracted, so nothing
        # that is infinite inside can spoil it.
        inside = pad(full(True, TensorType(bool_, x.shape)), self.low, self.high, self.interior)
        outside: Node = lookup("select")()(inside, full(0, g.type), g)
        return gx, lookup("reduce_sum")(tuple(range(g.type.rank)))(outside)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        t, s = tangents
        if t is None and s is None:
            return None
        return self(
            full(0, inputs[0].type) if t is None else t, full(0, inputs[1].type) if s is None else s
        )

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        x, value = inputs
        wider = Pad((0, *self.low), (0, *self.high), (0, *self.interior))
        if not batched[1]:
            return wider(x, value)
        # A different scalar for each sample: pad a mask, then choose.
        one = x.shape[1:] if batched[0] else x.shape
        (x,) = stack_front(size, batched[:1], inputs[:1])
        inside = pad(full(True, TensorType(bool_, one)), self.low, self.high, self.interior)
        y = wider(x, full(0, TensorType(x.dtype, ())))
        fill = expand(value, y.shape, tuple(range(1, y.type.rank)))
        chosen: Node = lookup("select")()(expand(inside, y.shape, (0,)), y, fill)
        return chosen


@declare
class Flip(LinearOp):
    """Reverse the order along the given axes."""

    name = "flip"
    traits = MOVEMENT
    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if any(not 0 <= a < x.rank for a in self.axes) or len(set(self.axes)) < len(self.axes):
            raise fail(self, x, f"axes are distinct and within its {x.rank}")
        return x

    def reference(self, *arrays: Any) -> Any:
        return np.flip(arrays[0], self.axes)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (self(g),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Flip(tuple(a + 1 for a in self.axes))(*inputs)


@declare
class Concat(Op):
    """Join along one axis."""

    name = "concat"
    traits = MOVEMENT
    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        if not types:
            raise ShapeError("concat needs at least one input")
        first, axis = types[0], self.axis
        if not 0 <= axis < first.rank:
            raise fail(self, first, f"the axis must lie within its {first.rank}")
        for t in types:
            if t.dtype is not first.dtype:
                raise DTypeError(f"concat takes inputs of one dtype, not {first} and {t}")
            others = t.shape[:axis] + t.shape[axis + 1 :]
            if others != first.shape[:axis] + first.shape[axis + 1 :] or t.rank != first.rank:
                raise ShapeError(f"concat along axis {axis} of {first} and {t}: other axes differ")
        total: int | Dim = 0
        for t in types:
            total = total + t.shape[axis]
        return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))

    def reference(self, *arrays: Any) -> Any:
        return np.concatenate(arrays, self.axis)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        parts: list[Node] = []
        at: int | Dim = 0
        for x in inputs:
            end = at + x.shape[self.axis]
            parts.append(slice_axis(g, self.axis, at, end))
            at = end
        return parts

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        if all(t is None for t in tangents):
            return None
        return self(
            *[full(0, x.type) if t is None else t for x, t in zip(inputs, tangents, strict=True)]
        )

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Concat(self.axis + 1)(*stack_front(size, batched, inputs))


def expand(x: Node, shape: Shape, axes: Sequence[int]) -> Node:
    """Repeat `x` along new axes of the result; itself where there are none."""
    return Expand(tuple(shape), tuple(axes))(x) if axes else x


def reshape(x: Node, shape: Shape) -> Node:
    """`x` under another shape; itself where it has that shape."""
    return x if x.shape == tuple(shape) else Reshape(tuple(shape))(x)


def permute(x: Node, perm: Sequence[int]) -> Node:
    """`x` with its axes reordered; itself where the order is the same."""
    return x if list(perm) == list(range(len(perm))) else Permute(tuple(perm))(x)


def flip(x: Node, axes: Sequence[int]) -> Node:
    """`x` in the reverse order along axes; itself where there are none."""
    return Flip(tuple(axes))(x) if axes else x


def slice_axis(x: Node, axis: int, start: int | Dim, stop: int | Dim) -> Node:
    """Elements `start` to `stop` along one axis."""
    starts: list[int | Dim] = [0] * x.type.rank
    stops = list(x.shape)
    starts[axis], stops[axis] = start, stop
    return Slice(tuple(starts), tuple(stops), (1,) * x.type.rank)(x)


def pad(
    x: Node, low: Shape, high: Shape, interior: tuple[int, ...] | None = None, value: Any = 0
) -> Node:
    """`x` with a constant put around it; itself where there is nothing to add."""
    interior = interior or (0,) * x.type.rank
    if not any(isinstance(w, Dim) or w for w in (*low, *high, *interior)):
        return x
    return Pad(tuple(low), tuple(high), interior)(x, full(value, TensorType(x.dtype, ())))
