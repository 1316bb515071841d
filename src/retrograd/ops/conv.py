"""`conv`, convolution over any number of axes; its gradients are convolutions too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import Dim, Node, Shape, TensorType, Trait, bool_, declare, lower_bound, product
from retrograd.ops.matmul import BilinearOp
from retrograd.ops.numerics.half import in_float32
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.ops.shape import fail, flip, permute, reshape
from retrograd.ops.windows import check_spatial, full_size, placed, span, windows_of


def has_more_places(these: Shape, those: Shape) -> bool | None:
    """Whether there are more of `those` along some axis, and fewer along none; None where that
    depends on what the names of sizes are, which stand for 2 at least. The order of the sum of a
    convolution, or of its gradient, goes by it."""
    more = [b - a for a, b in zip(these, those, strict=True)]
    least, most = [lower_bound(m, 2) for m in more], [lower_bound(-m, 2) for m in more]
    if any(m is not None and m > 0 for m in most) or all(m is not None and m >= 0 for m in most):
        return False
    if any(m is None or m < 0 for m in least):
        return None
    return True if any(m is not None and m > 0 for m in least) else None


@declare
class Conv(BilinearOp):
    """Convolution: `x[N, C, *S]` with `w[O, C / groups, *K]` gives `y[N, O, *P]`.

    `y[n, o, p] = sum over c, k of w[o, c, k] * X[n, c, p * stride + k * w_dilation]`, where X is x
    with `x_dilation - 1` zeros between its elements and `low` and `high` zeros around them;
    negative numbers of zeros take elements away. With groups, channels fall into as many blocks,
    and block i of o sees block i of the channels of x alone. As everywhere in neural networks the
    kernel is not flipped. Half precision is summed in float32.

    All of this is there because the gradients need it: the stride of one operation is the dilation
    of its gradient.
    """

    name = "conv"
    traits = frozenset({Trait.EXPENSIVE, Trait.KEPT, Trait.SIZED, Trait.IN_PARTS})
    strides: tuple[int, ...]
    low: Shape
    high: Shape
    x_dilation: tuple[int, ...]
    w_dilation: tuple[int, ...]
    groups: int | Dim = 1

    @property
    def rank(self) -> int:
        """The number of axes the kernel slides along."""
        return len(self.strides)

    def infer(self, *types: TensorType) -> TensorType:
        x, w = types
        if x.dtype is not w.dtype or x.dtype is bool_:
            raise DTypeError(f"{self.name} takes numbers of one dtype, not {x} and {w}")
        for t, what in ((x, "[N, C, *S]"), (w, "[O, C / groups, *K]")):
            if t.rank != self.rank + 2:
                raise fail(self, t, f"with {self.rank} strides it is {what}")
        widths = (self.low, self.high, self.x_dilation, self.w_dilation)
        if any(len(v) != self.rank for v in widths):
            raise fail(self, x, f"paddings and dilations are given for each of {self.rank} axes")
        if any(n < 1 for n in self.x_dilation):
            raise fail(self, x, "dilations are at least 1")
        if x.shape[1] != w.shape[1] * self.groups:
            raise fail(
                self, x, f"its {x.shape[1]} channels must be {w.shape[1]} * {self.groups}: those "
                f"of the weight {w} in each of {self.groups} groups"
            )  # fmt: skip
        if self.per_group(w.shape[0]) * self.groups != w.shape[0]:
            raise fail(
                self, w, f"its {w.shape[0]} channels do not divide into {self.groups} groups"
            )
        check_spatial(self, x, x.shape[2:])
        outs = placed(self, x, self.full(x.shape), w.shape[2:], self.strides, self.w_dilation)
        return x.with_shape((x.shape[0], w.shape[0], *outs))

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return 2 * result.size * product(types[1].shape[1:])

    def needs_sizes(self, result: TensorType, *types: TensorType) -> bool:
        x, w = types
        if any(s != 1 for s in self.strides):
            return False
        more = has_more_places(x.shape[2:], result.shape[2:])
        return more is None or (more and isinstance(product(w.shape[2:]), Dim))

    def gradient_needs_sizes(self, result: TensorType, *types: TensorType) -> bool:
        x, w = types
        known = not isinstance(product(w.shape[2:]), Dim)
        return not known or has_more_places(result.shape[2:], x.shape[2:]) is None

    def full(self, shape: Shape) -> Shape:
        """The axes of x with zeros between and around their elements."""
        axes = zip(shape[2:], self.low, self.high, self.x_dilation, strict=True)
        return tuple(full_size(*axis) for axis in axes)

    def per_group(self, channels: int | Dim) -> int | Dim:
        """Channels in each group; of no groups (a stack of no samples) none."""
        return channels // self.groups if self.groups != 0 else 0

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return in_float32(self._value, arrays)

    def _value(self, x: Any, w: Any) -> Any:
        full = framed(x, self.low, self.high, self.x_dilation)
        windows = windows_of(full, w.shape[2:], self.strides, self.w_dilation)
        groups, own = int(self.groups), w.shape[1]
        places = windows.shape[2 : 2 + self.rank]
        windows = windows.reshape(x.shape[0], groups, own, *windows.shape[2:])
        kernels = w.reshape(groups, int(self.per_group(w.shape[0])), *w.shape[1:])
        y = _products(windows, kernels, self.rank)
        return y.reshape(x.shape[0], w.shape[0], *places)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        x, w = inputs
        return self._to_x(g, x, w), self._to_w(g, x, w)

    def _to_x(self, g: Node, x: Node, w: Node) -> Node:
        """What x contributed to, with the weights it had: `g` dilated by the strides, slid along
        by the flipped kernel."""
        low, high = [], []
        for d, k, p, before, stride, gap, dilation in zip(
            x.shape[2:], w.shape[2:], g.shape[2:], self.low, self.strides, self.x_dilation,
            self.w_dilation, strict=True,
        ):  # fmt: skip
            low.append(span(k, dilation) - 1 - before)
            high.append(span(d, gap) + before - span(p, stride))
        op = Conv(
            self.x_dilation, tuple(low), tuple(high), self.strides, self.w_dilation, self.groups
        )
        return op(g, self.transposed(w))

    def transposed(self, w: Node) -> Node:
        """`[O, C / groups, *K]` as `[C, O / groups, *K]`, the kernel flipped."""
        kernel = w.shape[2:]
        axes = range(2, 2 + self.rank)
        if self.groups == 1:
            w = permute(w, (1, 0, *axes))
        else:
            own = self.per_group(w.shape[0])
            blocks = reshape(w, (self.groups, own, *w.shape[1:]))
            blocks = permute(blocks, (0, 2, 1, *(a + 1 for a in axes)))
            w = reshape(blocks, (self.groups * w.shape[1], own, *kernel))
        return w if all(k == 1 for k in kernel) else flip(w, axes)

    def _to_w(self, g: Node, x: Node, w: Node) -> Node:
        """`sum over n, p of g[n, o, p] * X[n, c, p * stride + k * w_dilation]`: a convolution in
        which samples are channels, and the places of `g` the kernel; or, if there are fewer, those
        of `x`, which give the kernel flipped."""
        axes = tuple(range(2, 2 + self.rank))
        groups, own, per = self.groups, w.shape[1], self.per_group(w.shape[0])
        swapped = math.prod(self.x_dilation) > math.prod(self.strides)
        low, high = [], []
        for k, p, d, stride, gap, dilation, before in zip(
            w.shape[2:], g.shape[2:], x.shape[2:], self.strides, self.x_dilation,
            self.w_dilation, self.low, strict=True,
        ):  # fmt: skip
            before = span(k, dilation) - 1 - before if swapped else before
            low.append(before)
            reach = span(k, dilation) - 1 - before
            high.append(reach + (span(d, gap) - span(p, stride)) * (1 if swapped else -1))
        steps = (self.strides, self.x_dilation) if swapped else (self.x_dilation, self.strides)
        op = Conv(self.w_dilation, tuple(low), tuple(high), *steps, groups)
        if not swapped:
            y = op(_channels_first(x, groups, own), permute(g, (1, 0, *axes)))
            return permute(y, (1, 0, *axes))
        y = op(_channels_first(g, groups, per), permute(x, (1, 0, *axes)))
        if groups != 1:
            y = reshape(y, (per, groups, own, *w.shape[2:]))
            y = permute(y, (1, 0, *(a for a in range(2, y.type.rank))))
            y = reshape(y, w.shape)
        return y if all(k == 1 for k in w.shape[2:]) else flip(y, axes)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        x, w = inputs
        if all(batched):  # the samples are groups
            stack = permute(x, (1, 0, *range(2, x.type.rank)))
            y = self._with_groups(size * self.groups)(
                reshape(stack, (stack.shape[0], size * x.shape[2], *x.shape[3:])),
                reshape(w, (size * w.shape[1], *w.shape[2:])),
            )
            y = reshape(y, (y.shape[0], size, w.shape[1], *y.shape[2:]))
            return permute(y, (1, 0, *range(2, y.type.rank)))
        if batched[0]:
            y = self(reshape(x, (size * x.shape[1], *x.shape[2:])), w)
            return reshape(y, (size, x.shape[1], *y.shape[1:]))
        # One x for many kernels: they are further kernels of each group.
        own = self.per_group(w.shape[1])
        kernels = reshape(w, (size, self.groups, own, *w.shape[2:]))
        kernels = permute(kernels, (1, 0, 2, *range(3, kernels.type.rank)))
        y = self(x, reshape(kernels, (self.groups * size * own, *w.shape[2:])))
        y = reshape(y, (y.shape[0], self.groups, size, own, *y.shape[2:]))
        y = permute(y, (2, 0, 1, *range(3, y.type.rank)))
        return reshape(y, (size, y.shape[1], w.shape[1], *y.shape[4:]))

    def _with_groups(self, groups: int | Dim) -> Conv:
        return Conv(self.strides, self.low, self.high, self.x_dilation, self.w_dilation, groups)


def _channels_first(x: Node, groups: int | Dim, own: int | Dim) -> Node:
    """`[N, groups * own, *S]` as `[own, groups * N, *S]`: samples are channels."""
    n, places = x.shape[0], x.shape[2:]
    axes = range(2, x.type.rank)
    if groups == 1:
        return permute(x, (1, 0, *axes))
    blocks = reshape(x, (n, groups, own, *places))
    stack = permute(blocks, (2, 1, 0, *(a + 1 for a in axes)))
    return reshape(stack, (own, groups * n, *places))


def framed(x: Any, low: Sequence[Any], high: Sequence[Any], dilation: Sequence[int]) -> Any:
    """An array with zeros between and around the elements of its last axes, or less of it."""
    lead = x.ndim - len(low)
    spans = [int(span(d, gap)) for d, gap in zip(x.shape[lead:], dilation, strict=True)]
    wide: Any = np.zeros((*x.shape[:lead], *spans), x.dtype)
    wide[(..., *(slice(None, None, gap) for gap in dilation))] = x
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    wide = np.pad(wide, [(0, 0)] * lead + widths)
    cut = [
        slice(max(-a, 0), d - max(-b, 0))
        for a, b, d in zip(low, high, wide.shape[lead:], strict=True)
    ]
    return wide[(..., *cut)]


def _products(windows: Any, kernels: Any, rank: int) -> Any:
    """Windows times kernels, added up over channels and places in a window by NumPy, which takes
    one after the other: in halves, until there are few."""
    if math.prod(kernels.shape[2:]) <= PRODUCTS.block:
        p, k = "pqrstu"[:rank], "hijklm"[:rank]
        return np.einsum(f"ngc{p}{k},goc{k}->ngo{p}", windows, kernels)
    sizes = list(kernels.shape[2:])
    axis = sizes.index(max(sizes))  # 0 for channels
    half, before = sizes[axis] // 2, axis + rank if axis else 0
    own, other = (
        _products(windows[(slice(None),) * (2 + before) + (which,)],
                  kernels[(slice(None),) * (2 + axis) + (which,)], rank)
        for which in (slice(None, half), slice(half, None))
    )  # fmt: skip
    return own + other
