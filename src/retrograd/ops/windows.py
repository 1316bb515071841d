"""Sliding windows over the last axes, and overlap-add, their transpose.

Pooling and the native form of convolutions are made of these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Node, Op, Shape, TensorType, Trait, bool_, declare
from retrograd.ops.numerics.half import in_float32
from retrograd.ops.shape import LinearOp, fail


def span(size: int | Dim, dilation: int) -> int | Dim:
    """How many elements a window reaches over: `(size - 1) * dilation + 1`."""
    return (size - 1) * dilation + 1


def count(size: int | Dim, width: int | Dim, stride: int) -> int | Dim:
    """How many windows that reach over `width` elements fit into an axis: at least one must."""
    return (size - width) // stride + 1


def placed(
    op: Op,
    x: TensorType,
    axes: Shape,
    sizes: Shape,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Shape:
    """How many windows there are along each of the given axes; raises where none fits."""
    if not len(axes) == len(sizes) == len(strides) == len(dilations):
        raise fail(
            op, x, f"a size, a stride and a dilation are needed for each of {len(axes)} axes"
        )
    if any(n < 1 for n in (*strides, *dilations)):
        raise fail(op, x, "strides and dilations are at least 1")
    if any(not isinstance(k, Dim) and k < 1 for k in sizes):
        raise fail(op, x, "windows have at least one element along each axis")
    found = []
    for d, k, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        width = span(k, dilation)
        room = d - width
        if not isinstance(room, Dim) and room < 0:
            raise fail(op, x, f"a window of {width} elements does not fit into an axis of {d}")
        found.append(count(d, width, stride))
    return tuple(found)


def windows_of(
    x: Any, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Any:
    """The windows over the last axes of an array, as a view."""
    rank = len(sizes)
    spans = tuple(int(span(k, d)) for k, d in zip(sizes, dilations, strict=True))
    axes = tuple(range(x.ndim - rank, x.ndim))
    y: Any = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    return y[(..., *(slice(None, None, n) for n in (*strides, *dilations)))]


@declare
class Windows(LinearOp):
    """Windows over the last axes: `y[..., o, k] = x[..., o * stride + k * dilation]`.

    With one size, stride and dilation for each of D axes, `[..., *S]` gives `[..., *O, *sizes]`,
    where `O = (S - (size - 1) * dilation - 1) // stride + 1`. What no window reaches is left out.
    """

    name = "windows"
    traits = frozenset(
        {
            Trait.STRIDED,
            Trait.REAL_LINEAR,
            Trait.DETERMINED,
            Trait.FREE,
            Trait.SIZED,
            Trait.IN_PARTS,
        }
    )
    sizes: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        rank = len(self.sizes)
        if x.rank < rank:
            raise fail(self, x, f"it has fewer than {rank} axes")
        at = x.rank - rank
        outs = placed(self, x, x.shape[at:], self.sizes, self.strides, self.dilations)
        return x.with_shape((*x.shape[:at], *outs, *self.sizes))

    def reference(self, *arrays: Any) -> Any:
        return windows_of(arrays[0], self.sizes, self.strides, self.dilations)  # type: ignore[arg-type]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        shape = x.shape[x.type.rank - len(self.sizes) :]
        return (Fold(shape, self.strides, self.dilations)(g),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


@declare
class Fold(LinearOp):
    """Overlap-add, the transpose of `windows`: `y[..., s]` is the sum of all `x[..., o, k]` with
    `s = o * stride + k * dilation`.

    `[..., *O, *K]` gives `[..., *shape]`. Half precision is summed in float32.
    """

    name = "fold"
    traits = frozenset({Trait.REAL_LINEAR, Trait.SIZED, Trait.IN_PARTS})
    shape: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        rank = len(self.shape)
        if x.dtype is bool_:
            raise DTypeError(f"fold adds numbers, not {x}; cast first")
        if x.rank < 2 * rank:
            raise fail(self, x, f"it has fewer than 2 * {rank} axes")
        at = x.rank - 2 * rank
        outs, sizes = x.shape[at : at + rank], x.shape[at + rank :]
        expected = placed(self, x, self.shape, sizes, self.strides, self.dilations)
        if outs != expected:
            raise fail(self, x, f"axes of the sizes {self.shape} have {expected} such windows")
        return x.with_shape((*x.shape[:at], *self.shape))

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return types[0].size

    def reference(self, *arrays: Any) -> Any:
        return in_float32(self._value, arrays)

    def _value(self, x: Any) -> Any:
        rank = len(self.shape)
        at = x.ndim - 2 * rank
        outs, sizes = x.shape[at : at + rank], x.shape[at + rank :]
        y: Any = np.zeros((*x.shape[:at], *self.shape), x.dtype)
        steps = list(zip(outs, self.strides, self.dilations, strict=True))
        with np.errstate(all="ignore"):
            for k in np.ndindex(sizes):
                place = [slice(i * d, i * d + (n - 1) * s + 1, s)
                         for i, (n, s, d) in zip(k, steps, strict=True)]  # fmt: skip
                y[(..., *place)] += x[(..., *k)]
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        sizes = x.shape[x.type.rank - len(self.shape) :]
        return (Windows(sizes, self.strides, self.dilations)(g),)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


def full_size(size: int | Dim, low: int | Dim, high: int | Dim, dilation: int) -> int | Dim:
    """The length of an axis with zeros put between its elements and around them."""
    return low + span(size, dilation) + high


def check_spatial(op: Op, x: TensorType, sizes: Shape) -> None:
    """Refuse axes without elements."""
    if any(not isinstance(d, Dim) and d < 1 for d in sizes):
        raise ShapeError(f"{op} does not fit its input {x}: an axis to slide along has no elements")
