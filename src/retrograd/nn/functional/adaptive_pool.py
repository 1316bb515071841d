"""Windows of adaptive sizes, p-norms of windows, and windows as columns, with PyTorch's names and
arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim
from retrograd.ir.source import located
from retrograd.nn.functional.activations import floating
from retrograd.nn.functional.conv_pool import (
    arrays_of,
    checked,
    named,
    need_sizes,
    sizes_of,
    windows_of,
)
from retrograd.ops.assume import guard

Function = Callable[..., Any]


def _adaptive_max_pool(rank: int) -> Function:
    name = f"adaptive_max_pool{rank}d"

    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        x = checked(name, input, rank)
        given = tuple(sizes_of(output_size, rank))
        x = need_sizes(name, x, given, rank)
        shape = x.shape[x.ndim - rank :]
        for n in shape:
            none = f"{name}: there is no maximum of an axis without elements, {list(shape)}"
            x = guard(x, 1, "<=", n, none)
        sizes = [n if s is None else s for s, n in zip(given, shape, strict=True)]
        return _pooled(x, shape, sizes, return_indices)

    return named(
        adaptive_max_pool,
        name,
        f"The maxima of the last {rank} axes in windows that give the sizes asked for: element i "
        "of n is the maximum of elements `floor(i S / n)` to `ceil((i + 1) S / n)` of S.\n\nWith "
        "`return_indices` also where they are, in the flat order of these axes. The gradient goes "
        "to the first of equal maxima. `[N, C, *S]` gives `[N, C, *output_size]`. `OptionError` "
        "for sizes below 1, `ShapeError` for other axes and for those without elements.",
        "2",
        rank,
    )


def _pooled(x: Tensor, shape: Any, sizes: list[Any], return_indices: bool) -> Any:
    """Every window as a row of positions in the flat axes, the last repeated where one is short."""
    rank = len(sizes)
    flat: Any = arrays_of(*shape, *sizes).zeros((1,) * (2 * rank), dtype=np.int64)
    wide: Any = 1
    for k, (n, size) in enumerate(zip(shape, sizes, strict=True)):
        xp = arrays_of(n, size)
        first, end = windows_of(n, size)
        most = n // size + 2 if xp is rg else (end - first).max()  # at least that of the longest
        at = xp.minimum(first[:, None] + xp.arange(most), end[:, None] - 1)
        axes: list[Any] = [1] * (2 * rank)
        axes[k], axes[rank + k] = size, most
        flat, wide = flat * n + at.reshape(tuple(axes)), wide * most
    windows = flat.reshape((math.prod(sizes), wide))
    lead = x.shape[: x.ndim - rank]
    values = rg.take(x.reshape((*lead, -1)), windows, axis=-1)
    best = rg.expand_dims(rg.argmax(values, axis=-1), axis=-1)
    y = rg.take_along_axis(values, best, axis=-1).reshape((*lead, *sizes))
    if not return_indices:
        return y
    where = rg.asarray(windows).reshape((*((1,) * len(lead)), *windows.shape))
    return y, rg.take_along_axis(where, best, axis=-1).reshape((*lead, *sizes))


def _lp_pool(rank: int) -> Function:
    name = f"lp_pool{rank}d"

    def lp_pool(
        input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        x = floating(checked(name, input, rank))
        sizes = sizes_of(kernel_size, rank)
        total = rg.avg_pool(x**norm_type, sizes, stride, 0, ceil_mode) * float(math.prod(sizes))
        return (rg.sign(total) * rg.relu(rg.abs(total))) ** (1 / norm_type)

    return named(
        lp_pool,
        name,
        f"`(sum x**p)**(1 / p)` of each window along the last {rank} axes, `norm_type` p. Where "
        "the sum is 0 the gradient is not finite unless p is 1.\n\n`[N, C, *S]` gives "
        "`[N, C, *P]`. `ShapeError` for a window that is larger than the input.",
        "2.0, 2",
        rank,
    )


def _max_unpool(rank: int) -> Function:
    name = f"max_unpool{rank}d"

    def max_unpool(
        input: Any,
        indices: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        x, at = checked(name, input, rank), rg.asarray(indices)
        if at.shape != x.shape:
            raise ShapeError(f"{name}: input {x.shape} and indices {at.shape} have one shape")
        kernel, pads = sizes_of(kernel_size, rank), sizes_of(padding, rank)
        steps = kernel if stride is None else sizes_of(stride, rank)
        shape = x.shape[x.ndim - rank :]
        usual = tuple(
            (n - 1) * s + k - 2 * p for n, s, k, p in zip(shape, steps, kernel, pads, strict=True)
        )
        size = usual if output_size is None else tuple(output_size)[-rank:]
        lead = x.shape[: x.ndim - rank]
        rows, cells, given = math.prod(lead), math.prod(size), math.prod(shape)
        places = rg.where(at < 0, cells, at).reshape((rows, given))  # none counts from the end
        flat = rg.zeros((rows, cells), dtype=x.dtype)
        put = rg.put_along_axis(flat, places, x.reshape((rows, given)), axis=1)
        return put.reshape((*lead, *size))

    return named(
        max_unpool,
        name,
        f"Maxima put back where `max_pool{rank}d` found them, with zeros between. Where windows "
        "overlap, the last of several maxima for one place stays, and it alone gets a gradient."
        "\n\n`[N, C, *P]` and int64 of the same shape give `[N, C, *S]`. `ShapeError` where both "
        "shapes differ, `IndexRangeError` for an index outside of the result.",
        f"rg.zeros({(1, 1, *(1,) * rank)}, dtype=rg.int64), 2",
        rank,
        1,
        2,
    )


adaptive_max_pool1d: Function = _adaptive_max_pool(1)
adaptive_max_pool2d: Function = _adaptive_max_pool(2)
adaptive_max_pool3d: Function = _adaptive_max_pool(3)
lp_pool1d: Function = _lp_pool(1)
lp_pool2d: Function = _lp_pool(2)
lp_pool3d: Function = _lp_pool(3)
max_unpool1d: Function = _max_unpool(1)
max_unpool2d: Function = _max_unpool(2)
max_unpool3d: Function = _max_unpool(3)


def _columns(
    what: str, x: Any, size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[Any, ...]:
    """The input, options for two axes, and how many windows there are along each."""
    options = [tuple(sizes_of(v, 2)) for v in (kernel_size, dilation, padding, stride)]
    if any(len(o) != 2 for o in options) or min(*options[0], *options[1], *options[3]) < 1:
        raise OptionError(
            f"{what}: sizes, dilation and stride are positive, one each or for 2 axes"
        )
    count = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, *options, strict=True)
    )
    none = f"{what}: windows of {options[0]} do not fit into {tuple(size)}"
    for n in count:
        x = guard(x, 1, "<=", n, none)
    return x, *options, count


def _starts(kernel: int, dilation: int, count: int | Dim, stride: int) -> Any:
    """Where along an axis the elements of windows are: `[kernel, count]`."""
    return np.arange(kernel)[:, None] * dilation + arrays_of(count).arange(count) * stride


@located
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows of `[N, C, H, W]` as columns: `[N, C kh kw, L]`, L the number of windows; or
    `[C, H, W]`, `[C kh kw, L]`.

    `ShapeError` for a window that is larger than the input.

    >>> import retrograd as rg
    >>> rg.nn.functional.unfold(rg.ones((1, 1, 4, 4)), 2, stride=2).shape
    (1, 4, 4)
    """
    x = checked("unfold", input, 2)
    x, kernel, dilation, padding, stride, count = _columns(
        "unfold", x, x.shape[-2:], kernel_size, dilation, padding, stride
    )
    lead = x.shape[:-2]
    x = rg.pad(x, [(0, 0)] * len(lead) + [(p, p) for p in padding])
    for axis in range(2):
        at = _starts(kernel[axis], dilation[axis], count[axis], stride[axis])
        x = rg.take(x, at, axis=len(lead) + 2 * axis)
    x = rg.swapaxes(x, -3, -2)  # [..., kh, kw, oh, ow]
    return x.reshape((*lead[:-1], lead[-1] * math.prod(kernel), math.prod(count)))


@located
def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Columns summed where they came from, the transpose of `unfold`: `[N, C kh kw, L]` to
    `[N, C, H, W]`, or without N.

    `ShapeError` where the columns do not fit `output_size`.

    >>> import retrograd as rg
    >>> rg.nn.functional.fold(rg.ones((1, 4, 4)), (4, 4), 2, stride=2).shape
    (1, 1, 4, 4)
    """
    x = rg.asarray(input)
    size = tuple(sizes_of(output_size, 2))
    x, kernel, dilation, padding, stride, count = _columns(
        "fold", x, size, kernel_size, dilation, padding, stride
    )
    cells = math.prod(kernel)
    if x.ndim not in (2, 3) or x.shape[-2] % cells or x.shape[-1] != math.prod(count):
        raise ShapeError(
            f"fold: columns [N, C * {cells}, {math.prod(count)}], or without N, not {x.shape}"
        )
    lead = (*x.shape[:-2], x.shape[-2] // cells)
    x = x.reshape((*lead, *kernel, *count))
    wide = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    flat = rg.zeros((*lead, math.prod(wide)), dtype=x.dtype)
    rows, columns = map(_starts, kernel, dilation, count, stride)
    places = rows[:, None, :, None] * wide[1] + columns[None, :, None, :]
    y = rg.scatter_add(flat, places, x, axis=len(lead)).reshape((*lead, *wide))
    (top, left), (h, w) = padding, size
    return y[..., top : top + h, left : left + w]
