"""Pooling over windows, with PyTorch's names for its options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.frontend.assuming import assume
from retrograd.frontend.broadcasting import as_node, floating, number
from retrograd.frontend.convolution import Option, per_axis
from retrograd.frontend.elementwise import ArrayLike
from retrograd.frontend.function import function
from retrograd.frontend.manipulation import positions
from retrograd.ir import Dim, Node, TensorType, bool_, full, int64, least, product
from retrograd.ops import elementwise as el
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand, pad
from retrograd.ops.windows import Windows

Sizes = tuple[int, ...]


@function
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


@function
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

    >>> import retrograd as rg
    >>> rg.avg_pool(rg.reshape(rg.arange(16.0), (1, 1, 4, 4)), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    given = floating(x)
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
            x = assume(x, least_one, "<=", most, narrow)
        if ceil_mode:
            # The last window begins inside x or its padding in front.
            last = least((room + step - 1) // step, (d + p - 1) // step)
            end = last * step + width - p
            high[i] = d + p + end - least(d + p, end) - d  # the greater one
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
