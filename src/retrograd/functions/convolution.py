"""Convolutions over any number of axes, with PyTorch's names for their options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograd.eager.conversion import promote
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.broadcasting import alike, as_node, integer, number, promote_to_float
from retrograd.functions.manipulation import positions
from retrograd.ir import (
    Dim,
    Node,
    TensorType,
    bool_,
    full,
    int64,
    product,
    symbolic_min,
)
from retrograd.ops import elementwise as el
from retrograd.ops.assume import guard
from retrograd.ops.conv import Conv
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand, pad, reshape
from retrograd.ops.windows import Windows, full_size, span

Option = int | Sequence[int]


def per_axis(value: Any, rank: int, what: str, least: int) -> tuple[int, ...]:
    """An option as one integer for each axis that is slid along: given as such, or as one for
    all, alone or in a list."""
    given = tuple(value) if isinstance(value, tuple | list) else (value,)
    given = given * rank if len(given) == 1 else given
    if len(given) != rank:
        raise OptionError(f"{what}: one integer, or one for each of {rank} axes, not {value!r}")
    numbers = tuple(integer(v, what) for v in given)
    if any(n < least for n in numbers):
        raise OptionError(f"{what} is at least {least}, not {value!r}")
    return numbers


@op_function
def conv(
    x: ArrayLike,
    weight: ArrayLike,
    /,
    bias: ArrayLike | None = None,
    stride: Option = 1,
    padding: Any = 0,
    dilation: Option = 1,
    groups: int = 1,
) -> Any:
    """Convolution (strictly, cross-correlation): `[N, C, *S]` with the weight
    `[O, C / groups, *K]` gives `[N, O, *P]`, over as many axes as the weight has behind its second.

    `y[n, o, p] = bias[o] + sum over c, k of weight[o, c, k] * x[n, c, p * stride + k * dilation]`,
    x surrounded by `padding` zeros; `P = (S + 2 * padding - dilation * (K - 1) - 1) // stride + 1`.
    An x without the axis N gives a result without it. With groups, channels fall into as many
    blocks, and each block of the result sees one block of x.

    Options are one integer, or one for each axis. Padding may also be a pair (before, after) for
    each axis, `"valid"` for none, or `"same"` for a result of the size of x, which needs stride 1.
    Half precision is summed in float32.

    `ShapeError` where channels, groups or sizes do not fit, `OptionError` for an option that is
    neither one integer nor one for each axis.

    >>> import retrograd as rg
    >>> rg.conv(rg.ones((1, 3, 8, 8)), rg.ones((4, 3, 3, 3)), stride=2, padding=1).shape
    (1, 4, 4, 4)
    """
    given, w, rank, alone = _operands("conv", x, weight)
    strides = per_axis(stride, rank, "conv: stride", 1)
    dilations = per_axis(dilation, rank, "conv: dilation", 1)
    low, high = _padding(padding, w.shape[2:], strides, dilations)
    count = _groups("conv", groups, w.shape[0], w)
    if given.shape[1] != w.shape[1] * count:
        raise ShapeError(
            f"conv of {given.type} with the weight {w.type} and groups={count}: x has "
            f"{given.shape[1]} channels, the weight takes {w.shape[1] * count}; x is (N, C, *S), "
            "the weight (O, C / groups, *K)"
        )
    for d, k, before, after, gap in zip(
        given.shape[2:], w.shape[2:], low, high, dilations, strict=True
    ):
        wide, room = span(k, gap), full_size(d, before, after, 1)
        if not isinstance(wide - room, Dim) and wide > room:
            raise ShapeError(
                f"conv of {given.type} with the weight {w.type}: the kernel reaches over {wide} "
                f"elements of an axis that has {room}, padding included; pad more, or make the "
                "kernel or its dilation smaller"
            )
    op = Conv(strides, low, high, (1,) * rank, dilations, count)
    return _finish("conv", op(given, w), bias, alone)


@op_function
def conv_transpose(
    x: ArrayLike,
    weight: ArrayLike,
    /,
    bias: ArrayLike | None = None,
    stride: Option = 1,
    padding: Option = 0,
    output_padding: Option = 0,
    groups: int = 1,
    dilation: Option = 1,
) -> Any:
    """The transpose of `conv`, what its gradient does to x: `[N, C, *S]` with the weight
    `[C, O / groups, *K]` gives `[N, O, *P]`.

    Each element of x adds the kernel, times itself, to the result, `stride` apart; `padding`
    elements are then cut off on both sides. `P = (S - 1) * stride - 2 * padding +
    dilation * (K - 1) + output_padding + 1`: `output_padding`, less than the stride or the
    dilation, chooses among the sizes that `conv` takes to the same.

    `ShapeError` where channels or groups do not fit, `OptionError` for an `output_padding` that is
    not less than the stride or the dilation.

    >>> import retrograd as rg
    >>> rg.conv_transpose(rg.ones((1, 4, 4, 4)), rg.ones((4, 3, 2, 2)), stride=2).shape
    (1, 3, 8, 8)
    """
    given, w, rank, alone = _operands("conv_transpose", x, weight)
    strides = per_axis(stride, rank, "conv_transpose: stride", 1)
    dilations = per_axis(dilation, rank, "conv_transpose: dilation", 1)
    pads = per_axis(padding, rank, "conv_transpose: padding", 0)
    extra = per_axis(output_padding, rank, "conv_transpose: output_padding", 0)
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        raise OptionError(
            f"conv_transpose: output_padding {output_padding!r} is less than the stride {stride!r} "
            f"or the dilation {dilation!r}"
        )
    count = _groups("conv_transpose", groups, w.shape[0], w)
    if given.shape[1] != w.shape[0]:
        raise ShapeError(
            f"conv_transpose of {given.type} with the weight {w.type}: x has {given.shape[1]} "
            f"channels, the weight takes {w.shape[0]}; x is (N, C, *S), the weight "
            "(C, O / groups, *K)"
        )
    reach = [span(k, d) - 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    low = tuple(r - p for r, p in zip(reach, pads, strict=True))
    high = tuple(a + e for a, e in zip(low, extra, strict=True))
    # The weight as that of the convolution this is the transpose of, which knows its transpose.
    ones = (1,) * rank
    forward = Conv(strides, pads, pads, ones, dilations, count)
    y = Conv(ones, low, high, strides, dilations, count)(given, forward.transposed(w))
    return _finish("conv_transpose", y, bias, alone)


def _operands(what: str, x: Any, weight: Any) -> tuple[Node, Node, int, bool]:
    """x with an axis for samples, the weight in the same dtype, the number of axes to slide along,
    and whether x had no axis for samples."""
    given, w = alike(x, weight)
    if w.dtype is bool_:
        raise DTypeError(f"{what} takes numbers, not booleans; cast them first")
    rank = w.type.rank - 2
    if rank < 1:
        raise ShapeError(
            f"{what}: a weight has an axis for the channels of the result, one for those of x, and "
            f"at least one to slide along; it is {w.type}"
        )
    if given.type.rank not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{what} of {given.type} with the weight {w.type}, which slides along {rank} axes: x "
            f"has {rank + 2} axes, (N, C, *S), or {rank + 1} without samples"
        )
    alone = given.type.rank == rank + 1
    if alone:
        given = reshape(given, (1, *given.shape))
    for t, sizes in ((given.type, given.shape[2:]), (w.type, w.shape[2:])):
        if any(d == 0 for d in sizes):
            raise ShapeError(f"{what}: {t} has no elements along an axis to slide along")
    return given, w, rank, alone


def _groups(what: str, groups: Any, channels: int | Dim, w: Node) -> int:
    count = integer(groups, f"{what}: groups")
    if count < 1:
        raise OptionError(f"{what}: groups is at least 1, not {count}")
    if channels // count * count != channels:
        raise ShapeError(
            f"{what}: the {channels} channels of the weight {w.type} do not divide into "
            f"groups={count}"
        )
    return count


def _padding(
    padding: Any, kernel: Sequence[int | Dim], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    rank = len(kernel)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise OptionError(f"conv: padding is numbers, 'same' or 'valid', not {padding!r}")
        if padding == "same" and any(s != 1 for s in strides):
            raise OptionError("conv: padding='same' needs stride 1; give the padding in numbers")
        if padding == "valid":
            return (0,) * rank, (0,) * rank
        reach = [span(k, d) - 1 for k, d in zip(kernel, dilations, strict=True)]
        low = tuple(r // 2 for r in reach)
        return low, tuple(r - a for r, a in zip(reach, low, strict=True))
    if isinstance(padding, tuple | list) and any(isinstance(p, tuple | list) for p in padding):
        if len(padding) != rank:
            raise OptionError(f"conv: padding has a pair for each of {rank} axes, not {padding!r}")
        pairs = [per_axis(p, 2, "conv: padding", 0) for p in padding]
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    both = per_axis(padding, rank, "conv: padding", 0)
    return both, both


def _finish(what: str, y: Node, bias: Any, alone: bool) -> Node:
    """Add the bias; drop the axis of samples if there was none."""
    if bias is not None:
        b = as_node(bias, y.dtype)
        if b.shape != (y.shape[1],):
            raise ShapeError(
                f"{what}: the bias {b.type} has one number for each of {y.shape[1]} channels"
            )
        dtype = promote(y.dtype, b.dtype)
        y, b = el.cast(y, dtype), el.cast(b, dtype)
        y = y + expand(b, y.shape, [i for i in range(y.type.rank) if i != 1])
    return reshape(y, y.shape[1:]) if alone else y


Sizes = tuple[int, ...]


@op_function
def max_pool(
    x: ArrayLike,
    /,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    dilation: Option = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window over the last axes: `[..., *S]` gives `[..., *P]`,
    `P = (S + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`.

    A sequence `kernel_size` says how many axes there are; an integer is the size along all behind
    the first two, of `(N, C, *S)`. The stride is by default the kernel size. Padding never wins; a
    window that holds a NaN gives NaN. With `ceil_mode` a last window that begins inside x or its
    padding counts too. The gradient goes to the first of equal maxima.

    With `return_indices` also an int64 array: where each maximum is in x, as a position in the flat
    order of the axes pooled over.

    `DTypeError` for booleans, `ShapeError` for a window that is larger than x with its padding
    and for options that are no integers.

    >>> import retrograd as rg
    >>> rg.max_pool(rg.reshape(rg.arange(16.0), (1, 1, 4, 4)), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    given = as_node(x)
    if given.dtype is bool_:
        raise DTypeError("max_pool takes numbers, not booleans; cast them first")
    rank = _axes("max_pool", given, kernel_size)
    sizes = per_axis(kernel_size, rank, "max_pool: kernel_size", 1)
    dilations = per_axis(dilation, rank, "max_pool: dilation", 1)
    spans = tuple((k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True))
    given, strides, low, high = _placed(
        "max_pool", given, spans, sizes if stride in (None, (), []) else stride, padding, ceil_mode
    )
    y = MaxPool(sizes, strides, dilations, low, high)(given)
    if not return_indices:
        return y
    at = MaxPoolIndex(sizes, strides, dilations, low, high)(given)
    return y, _flat(given, el.cast(at, int64), sizes, strides, dilations, low)


@op_function
def avg_pool(
    x: ArrayLike,
    /,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window over the last axes; windows as in `max_pool`.

    Padding counts as zeros, or not at all if `count_include_pad` is False; what a last window under
    `ceil_mode` covers beyond the padding never counts. With `divisor_override` the sum of a window
    is divided by that number instead.

    `[..., *S]` gives `[..., *P]`. `OptionError` for a divisor of 0, `ShapeError` for a
    window that is larger than x with its padding and for options that are no integers.

    >>> import retrograd as rg
    >>> rg.avg_pool(rg.reshape(rg.arange(16.0), (1, 1, 4, 4)), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    given = promote_to_float(x)
    rank = _axes("avg_pool", given, kernel_size)
    sizes = per_axis(kernel_size, rank, "avg_pool: kernel_size", 1)
    if divisor_override == 0:
        raise OptionError("avg_pool: divisor_override is not 0")
    given, strides, low, high = _placed(
        "avg_pool", given, sizes, sizes if stride in (None, (), []) else stride, padding, ceil_mode
    )
    total = _sums(given, sizes, strides, low, high)
    if divisor_override is not None:
        return total / float(divisor_override)
    whole = low == high and (count_include_pad or not any(low))
    if whole:
        return total * (1 / math.prod(sizes))
    first = given.type.rank - rank
    for i in range(rank):
        count = _counts(
            TensorType(given.dtype, (given.shape[first + i],)), sizes[i], strides[i],
            (low[i], high[i]), low[i] if count_include_pad else 0,
        )  # fmt: skip
        others = [a for a in range(total.type.rank) if a != first + i]
        total = total / expand(count, total.shape, others)
    return total


def _axes(what: str, x: Node, kernel_size: Any) -> int:
    """How many axes to pool over."""
    rank = len(kernel_size) if isinstance(kernel_size, tuple | list) else x.type.rank - 2
    if rank < 1 or rank > x.type.rank:
        raise ShapeError(
            f"{what} of {x.type} with kernel_size={kernel_size!r}: x has the axes (N, C, *S); for "
            "windows over all or other last axes give a size for each"
        )
    return rank


def _placed(
    what: str, x: Node, spans: Sizes, stride: Any, padding: Any, ceil_mode: bool
) -> tuple[Node, Sizes, Sizes, tuple[int | Dim, ...]]:
    """The input, strides, and padding in front and behind."""
    rank = len(spans)
    strides = per_axis(stride, rank, f"{what}: stride", 1)
    low = per_axis(padding, rank, f"{what}: padding", 0)
    high: list[int | Dim] = list(low)
    for i, (d, width, step, p) in enumerate(
        zip(x.shape[x.type.rank - rank :], spans, strides, low, strict=True)
    ):
        if 2 * p > width:
            raise OptionError(
                f"{what}: padding {p} is more than half of a window of {width} elements, so that "
                "windows would lie in the padding alone; pad x itself to have that"
            )
        room = d + 2 * p - width
        narrow = (
            f"{what} of {x.type}: a window of {width} elements does not fit into an axis of {d} "
            f"with padding {p}; make the window smaller or the padding larger"
        )
        for least_one, most in ((width, d + 2 * p), (1, d)):
            x = guard(x, least_one, "<=", most, narrow)
        if ceil_mode:
            # The last window begins inside x or its padding in front.
            last = symbolic_min((room + step - 1) // step, (d + p - 1) // step)
            end = last * step + width - p
            high[i] = d + p + end - symbolic_min(d + p, end) - d  # the greater one
    return x, strides, low, tuple(high)


def _sums(
    x: Node,
    sizes: Sizes,
    strides: Sizes,
    low: Sequence[int | Dim],
    high: Sequence[int | Dim],
) -> Node:
    """The sum of each window."""
    rank, lead = len(sizes), (0,) * (x.type.rank - len(sizes))
    padded = pad(x, (*lead, *low), (*lead, *high))
    windows = Windows(sizes, strides, (1,) * rank)(padded)
    return ReduceSum(tuple(range(x.type.rank, x.type.rank + rank)))(windows)


def _counts(
    axis: TensorType, size: int, stride: int, widths: Sequence[int | Dim], within: int
) -> Node:
    """How many elements of each window along an axis count: those of x, and of `within` places of
    padding on both sides."""
    low, high = widths
    inside = full(1, axis.with_shape((within + axis.shape[0] + within,)))
    return _sums(inside, (size,), (stride,), (low - within,), (high - within,))


def _flat(x: Node, at: Node, sizes: Sizes, strides: Sizes, dilations: Sizes, low: Sizes) -> Node:
    """The position in the axes pooled over, of a position in a window."""
    lead = x.type.rank - len(sizes)
    total = full(0, at.type)
    for i in range(len(sizes)):
        inner = math.prod(sizes[i + 1 :])
        own = el.floor_div(at, full(inner, at.type))
        own = el.mod(own, full(sizes[i], at.type))
        place = positions(at.shape, lead + i) * strides[i] + own * dilations[i] - low[i]
        behind = product(x.shape[lead + i + 1 :])
        total = total + place * number(behind, int64, at.shape)
    return total
