"""Max pooling: the greatest element of each window, and where it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import (
    Dim,
    DType,
    Node,
    Op,
    TensorType,
    Trait,
    as_dtype,
    bool_,
    declare,
    full,
    int32,
    product,
)
from retrograd.ops.elementwise import eq, select
from retrograd.ops.leaf import Iota
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Slice, expand, fail, pad, reshape
from retrograd.ops.windows import Fold, Windows, check_spatial, placed, windows_of


class Pooling(Op):
    """An op on windows over the last axes of its input, after padding that never wins.

    The attributes have an entry for each axis: `sizes` of the windows, their `strides`, the
    `dilations` between their elements, and how much padding there is in front and behind.
    """

    traits = frozenset({Trait.KEPT, Trait.SIZED, Trait.IN_PARTS})
    arity = 1
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int | Dim, ...]

    @property
    def rank(self) -> int:
        """The number of axes the windows slide along."""
        return len(self.sizes)

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.dtype is bool_ or x.dtype.is_complex:
            raise DTypeError(f"{self.name} compares real numbers, not {x}")
        if x.rank < self.rank or not len(self.low) == len(self.high) == self.rank:
            raise fail(self, x, f"it needs {self.rank} axes, each with padding on two sides")
        if any(not isinstance(n, Dim) and n < 0 for n in (*self.low, *self.high)):
            raise fail(self, x, "padding is not negative")
        at = x.rank - self.rank
        check_spatial(self, x, x.shape[at:])
        axes = self.framed(x)[at:]
        outs = placed(self, x, axes, self.sizes, self.strides, self.dilations)
        return x.with_shape((*x.shape[:at], *outs))

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return result.size * product(self.sizes)

    def framed(self, x: Node | TensorType) -> tuple[int | Dim, ...]:
        """The shape of x with its padding."""
        at = len(x.shape) - self.rank
        axes = zip(x.shape[at:], self.low, self.high, strict=True)
        return (*x.shape[:at], *(lo + d + hi for d, lo, hi in axes))

    def frame(self, x: Node, value: Any) -> Node:
        """x with its padding."""
        lead = (0,) * (x.type.rank - self.rank)
        return pad(x, (*lead, *self.low), (*lead, *self.high), value=value)

    def windows(self, x: Any, value: Any) -> Any:
        """Windows over an array with its padding, those of one place along the last axis."""
        lead = [(0, 0)] * (x.ndim - self.rank)
        widths: Any = [*lead, *zip(self.low, self.high, strict=True)]
        padded = np.pad(x, widths, constant_values=x.dtype.type(value))
        y = windows_of(padded, self.sizes, self.strides, self.dilations)
        return y.reshape(*y.shape[: x.ndim], math.prod(self.sizes))

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


def least(dtype: DType) -> Any:
    """The least value of a dtype, which is what padding counts as."""
    return -math.inf if dtype.is_float else np.iinfo(dtype.dtype).min


@declare
class MaxPool(Pooling):
    """The maximum of each window over the last axes; NaN if an element is NaN.

    `y[..., o] = max over k of x[..., o * stride + k * dilation - low]`. The gradient goes to the
    first of equal maxima, in row-major order.
    """

    name = "max_pool"
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int | Dim, ...]

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        with np.errstate(invalid="ignore"):
            return np.max(self.windows(x, least(as_dtype(x.dtype))), axis=-1)

    def hits(self, x: Node) -> Node:
        """Which element of each window is its maximum: `[..., *O, k]`, k counting the window."""
        at = MaxPoolIndex(self.sizes, self.strides, self.dilations, self.low, self.high)(x)
        shape = (*at.shape, math.prod(self.sizes))
        last = at.type.rank
        return eq(expand(at, shape, (last,)), Iota(shape, last, int32)())

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        hits = self.hits(x)
        won = select(
            hits, expand(g, hits.shape, (g.type.rank,)), full(0, g.type.with_shape(hits.shape))
        )
        lead, framed = x.type.rank - self.rank, self.framed(x)
        won = reshape(won, (*g.shape, *self.sizes))
        back = Fold(framed[lead:], self.strides, self.dilations)(won)
        if framed == x.shape:
            return (back,)
        starts = (*(0,) * lead, *self.low)
        stops = tuple(a + d for a, d in zip(starts, x.shape, strict=True))
        return (Slice(starts, stops, (1,) * len(starts))(back),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        if t is None:
            return None
        hits = self.hits(inputs[0])
        windows = Windows(self.sizes, self.strides, self.dilations)(self.frame(t, 0))
        windows = reshape(windows, hits.shape)
        won = select(hits, windows, full(0, windows.type))
        return ReduceSum((hits.type.rank - 1,))(won)


@declare
class MaxPoolIndex(Pooling):
    """Where in its window, counted in row-major order, the maximum is that `max_pool` gives.

    int32. The first of equal ones, the first NaN where there is one; never a place in the padding,
    unless a window lies in the padding as a whole.
    """

    name = "max_pool_index"
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int | Dim, ...]

    def infer(self, *types: TensorType) -> TensorType:
        return super().infer(*types).with_dtype(int32)

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        values = self.windows(x, least(as_dtype(x.dtype)))
        inside = self.windows(np.ones(x.shape, np.bool_), False)
        with np.errstate(invalid="ignore"):
            top = np.max(values, axis=-1, keepdims=True)
            hits = inside & ((values == top) | (values != values))
        return np.argmax(hits, axis=-1).astype(np.int32)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None
