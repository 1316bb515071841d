"""Ops that move elements and change none: expand, reshape, permute, slice, pad, flip, concat.

All are linear, so their forward rule is the op itself applied to the tangent, and each one's
reverse rule is its transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Node, Op, Shape, TensorType, bool_, declare, full, lookup, product


class Linear(Op):
    """A linear op of one input."""

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


@declare
class Expand(Linear):
    """Repeat along new axes: the result has the given shape, `axes` are the axes that are new."""

    name = "expand"
    shape: Shape
    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if any(not 0 <= a < len(self.shape) for a in self.axes):
            raise fail(self, x, f"the axes must lie within the {len(self.shape)} of the result")
        kept = tuple(d for i, d in enumerate(self.shape) if i not in self.axes)
        if kept != x.shape:
            raise fail(self, x, f"without the new axes the result has the shape {kept}")
        return x.with_shape(self.shape)

    def reference(self, *arrays: Any) -> Any:
        return np.broadcast_to(np.expand_dims(arrays[0], self.axes), self.shape)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (lookup("reduce_sum")(self.axes)(g),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Expand((size, *self.shape), tuple(a + 1 for a in self.axes))(*inputs)


@declare
class Reshape(Linear):
    """The same elements, in row-major order, under another shape."""

    name = "reshape"
    shape: Shape

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
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
class Permute(Linear):
    """Reorder axes: axis `i` of the result is axis `perm[i]` of the input."""

    name = "permute"
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


@declare
class Slice(Linear):
    """Elements `start, start + step, ...` below `stop` along each axis; steps are positive."""

    name = "slice"
    starts: Shape
    stops: Shape
    steps: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if not len(self.starts) == len(self.stops) == len(self.steps) == x.rank:
            raise fail(self, x, f"it needs a start, a stop and a step for each of {x.rank} axes")
        sizes = []
        for start, stop, step, size in zip(
            self.starts, self.stops, self.steps, x.shape, strict=True
        ):
            if step < 1:
                raise fail(self, x, f"steps are positive, not {step}")
            known = not any(isinstance(d, Dim) for d in (start, stop, size))
            if known and not 0 <= start <= stop <= size:  # type: ignore[operator]
                raise fail(self, x, f"{start}:{stop} is not within 0:{size}")
            sizes.append((stop - start + step - 1) // step)
        return x.with_shape(tuple(sizes))

    def reference(self, *arrays: Any) -> Any:
        return arrays[0][tuple(map(slice, self.starts, self.stops, self.steps))]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        low = self.starts
        # What lies behind the last element taken: the size less the reach of the taken elements.
        spread = [n + (n - 1) * (s - 1) for n, s in zip(g.shape, self.steps, strict=True)]
        if any(n == 0 for n in g.shape):
            return (full(0, inputs[0].type),)
        high = tuple(
            d - lo - w for d, lo, w in zip(inputs[0].shape, self.starts, spread, strict=True)
        )
        return (pad(g, low, high, tuple(s - 1 for s in self.steps)),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return Slice((0, *self.starts), (size, *self.stops), (1, *self.steps))(*inputs)


@declare
class Pad(Op):
    """Put `low` and `high` copies of a scalar around, `interior` between elements, per axis."""

    name = "pad"
    arity = 2
    low: Shape
    high: Shape
    interior: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        x, value = types
        if value.shape != () or value.dtype is not x.dtype:
            raise DTypeError(f"pad fills with a scalar of the dtype of {x}, not with {value}")
        if not len(self.low) == len(self.high) == len(self.interior) == x.rank:
            raise fail(self, x, f"it needs three widths for each of {x.rank} axes")
        widths = [w for w in (*self.low, *self.high, *self.interior) if not isinstance(w, Dim)]
        if any(w < 0 for w in widths):
            raise fail(self, x, "widths are not negative")
        return x.with_shape(tuple(map(self._size, x.shape, self.low, self.high, self.interior)))

    @staticmethod
    def _size(d: int | Dim, low: int | Dim, high: int | Dim, interior: int) -> int | Dim:
        between = 0 if d == 0 or not interior else (d - 1) * interior
        return low + d + between + high

    def reference(self, *arrays: Any) -> Any:
        x, value = arrays
        shape = map(self._size, x.shape, self.low, self.high, self.interior)
        y = np.full(tuple(shape), value, x.dtype)
        y[self._inside(x.shape)] = x
        return y

    def _inside(self, shape: Shape) -> tuple[Any, ...]:
        return tuple(
            slice(lo, lo + d + (d - 1) * i if d != 0 else lo, i + 1)
            for d, lo, i in zip(shape, self.low, self.interior, strict=True)
        )

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        x, value = inputs
        parts = self._inside(x.shape)
        gx = Slice(*(tuple(getattr(p, f) for p in parts) for f in ("start", "stop", "step")))(g)
        # The scalar's share is the sum over the padding alone: nothing is subtracted, so nothing
        # that is infinite inside can spoil it.
        inside = pad(full(True, TensorType(bool_, x.shape)), self.low, self.high, self.interior)
        outside = lookup("select")()(inside, full(0, g.type), g)
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
        return lookup("select")()(expand(inside, y.shape, (0,)), y, fill)


@declare
class Flip(Linear):
    """Reverse the order along the given axes."""

    name = "flip"
    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        if any(not 0 <= a < types[0].rank for a in self.axes):
            raise fail(self, types[0], f"the axes must lie within its {types[0].rank}")
        return types[0]

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
            if t.shape[:axis] + t.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]:
                raise ShapeError(f"concat along axis {axis} of {first} and {t}: other axes differ")
        total: int | Dim = 0
        for t in types:
            total = total + t.shape[axis]
        return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))

    def reference(self, *arrays: Any) -> Any:
        return np.concatenate(arrays, self.axis)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        parts, at = [], 0
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


def slice_axis(x: Node, axis: int, start: int | Dim, stop: int | Dim) -> Node:
    """Elements `start` to `stop` along one axis."""
    starts, stops = [0] * x.type.rank, list(x.shape)
    starts[axis], stops[axis] = start, stop  # type: ignore[call-overload]
    return Slice(tuple(starts), tuple(stops), (1,) * x.type.rank)(x)


def pad(
    x: Node, low: Shape, high: Shape, interior: tuple[int, ...] | None = None, value: Any = 0
) -> Node:
    """`x` with a constant put around it; itself where there is nothing to add."""
    interior = interior or (0,) * x.type.rank
    if not any(isinstance(w, Dim) or w for w in (*low, *high, *interior)):
        return x
    return Pad(tuple(low), tuple(high), interior)(x, full(value, TensorType(x.dtype, ())))
