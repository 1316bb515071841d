"""Convolution and pooling as functions, with PyTorch's names and arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import OptionError, ShapeError, TraceError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, DType, provenance
from retrograd.ir.source import located
from retrograd.memory_limit import check_new
from retrograd.ops.assume import guard

Function = Callable[..., Tensor]
LARGEST = 1 << 16  # sizes up to which a fraction of them is looked at


def named(
    f: Function, name: str, doc: str, arguments: str, rank: int, given: int = 4, result: int = 2
) -> Function:
    """A function made for a number of axes, with its name and docstring. The latter ends with an
    example: ones of one sample, one channel and as many elements along each axis as are `given`,
    with the `arguments` behind them, and the shape of the result."""
    f.__name__ = f.__qualname__ = name
    f.__code__ = f.__code__.replace(co_name=name, co_qualname=name)  # for tracebacks and graphs
    x, y = (1, 1, *(given,) * rank), (1, 1, *(result,) * rank)
    call = f"rg.nn.functional.{name}(rg.ones({x}), {arguments})"
    f.__doc__ = f"{doc}\n\n>>> import retrograd as rg\n>>> {call}.shape\n{y}\n"
    return located(f)


def arrays_of(*sizes: Any) -> Any:
    """Where positions along axes are computed: by NumPy, once, if all sizes are numbers; as part of
    the program if one has a name. Both give the same, as both follow the array API standard."""
    if any(isinstance(n, Dim) for n in sizes):
        return rg
    for n in sizes:
        check_new((n,), 8, "the positions along an axis")
    return np


def values_of(x: Any) -> Any:
    """The numbers of an array, None where they will be known in a call only."""
    try:
        return rg.asarray(x).detach().numpy()
    except TraceError:
        return None


def ratio(a: int | Dim, b: int | Dim) -> Any:
    """`a / b` in double precision, 0 where b is: a number, or a scalar where a size has a name."""
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return a / b if b else 0.0
    top, bottom = (rg.asarray(n, dtype=rg.float64) for n in (a, b))
    return rg.where(bottom > 0, top / rg.maximum(bottom, 1.0), 0.0)


def divided(x: Tensor, axis: int, by: int, why: str) -> Tensor:
    """x, of whose axis the size divides by a number, and is written as a multiple of it."""
    n = x.shape[axis]
    x = guard(x, n % by, "<=", 0, why)
    if n // by * by == n:
        return x
    return x[(slice(None),) * (axis % x.ndim) + (slice(0, n // by * by),)]


def scaled(what: str, n: int | Dim, factor: float) -> int | Dim:
    """`floor(n * factor)`. For a size with a name the factor is the simplest fraction that is
    rounded to it; one for which that is not the same for all sizes that occur is refused."""
    if not isinstance(n, Dim):
        return math.floor(n * factor)
    exact = Fraction(factor).limit_denominator(1000)
    sizes = np.arange(LARGEST)
    same = np.floor(sizes * float(factor)) == sizes * exact.numerator // exact.denominator
    if float(exact) != factor or not same.all():
        raise ShapeError(
            f"{what}: {factor} times a size with a name, {n}, is no size for all its values, as "
            "products are rounded; give the new size itself, such as x.shape[-1] * "
            f"{exact.numerator} // {exact.denominator}"
        )
    return n * exact.numerator // exact.denominator


def checked(what: str, x: Any, rank: int) -> Tensor:
    """The input: samples or not, channels, and the axes to slide along."""
    given: Tensor = rg.asarray(x)
    if given.ndim not in (rank + 1, rank + 2):
        scope = provenance().scope
        raise ShapeError(
            f"{what}{f' in {scope}' if scope else ''}: the input has {rank + 2} axes, samples, "
            f"channels and {rank} to slide along, or {rank + 1} without samples; its shape is "
            f"{given.shape}"
        )
    return given


def sizes_of(value: Any, rank: int) -> Any:
    """A size for each axis, so that it is known how many there are."""
    given = tuple(value) if isinstance(value, tuple | list) else (value,)
    return given * rank if len(given) == 1 else given


def _conv(rank: int) -> Function:
    name = f"conv{rank}d"

    def conv(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x = checked(name, input, rank)
        return rg.conv(x, weight, bias, stride, padding, dilation, groups)

    return named(
        conv,
        name,
        f"Convolution along {rank} axes: input `[N, C, *S]`, weight `[O, C / groups, *K]`, bias "
        "`[O]` give `[N, O, *P]`.\n\npadding is numbers, 'same' or 'valid'; see `rg.conv`. "
        "`ShapeError` for channels, groups or sizes that do not fit.",
        f"rg.ones({(1, 1, *(3,) * rank)})",
        rank,
    )


def _conv_transpose(rank: int) -> Function:
    name = f"conv_transpose{rank}d"

    def conv_transpose(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        x = checked(name, input, rank)
        return rg.conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation)

    return named(
        conv_transpose,
        name,
        f"The transpose of `conv{rank}d`: input `[N, C, *S]`, weight `[C, O / groups, *K]`, bias "
        "`[O]` give `[N, O, *P]`; see `rg.conv_transpose`.\n\n`ShapeError` for channels, groups or "
        "sizes that do not fit, `OptionError` for an output_padding that is not below the stride.",
        f"rg.ones({(1, 1, *(3,) * rank)})",
        rank,
        2,
        4,
    )


def _max_pool(rank: int) -> Function:
    name = f"max_pool{rank}d"

    def max_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        x = checked(name, input, rank)
        sizes = sizes_of(kernel_size, rank)
        return rg.max_pool(x, sizes, stride, padding, dilation, ceil_mode, return_indices)

    return named(
        max_pool,
        name,
        f"The maximum of each window along the last {rank} axes, and with `return_indices` where "
        "it is; see `rg.max_pool`.\n\n`[N, C, *S]` gives `[N, C, *P]`. `ShapeError` for a window "
        "that is larger than the input with its padding, `DTypeError` for booleans.",
        "2",
        rank,
    )


def _avg_pool(rank: int) -> Function:
    name = f"avg_pool{rank}d"

    def avg_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        x = checked(name, input, rank)
        sizes = sizes_of(kernel_size, rank)
        return rg.avg_pool(
            x, sizes, stride, padding, ceil_mode, count_include_pad, divisor_override
        )

    return named(
        avg_pool,
        name,
        f"The mean of each window along the last {rank} axes; see `rg.avg_pool`.\n\n`[N, C, *S]` "
        "gives `[N, C, *P]`. `ShapeError` for a window that is larger than the input with its "
        "padding, `OptionError` for a divisor of 0.",
        "2",
        rank,
    )


def _adaptive_avg_pool(rank: int) -> Function:
    name = f"adaptive_avg_pool{rank}d"

    def adaptive_avg_pool(input: Any, output_size: Any) -> Tensor:
        x = checked(name, input, rank)
        sizes = tuple(sizes_of(output_size, rank))
        x = need_sizes(name, x, sizes, rank)
        for axis, size in enumerate(sizes, x.ndim - rank):
            if size is not None and size != x.shape[axis]:
                x = _averaged(x, axis, size)
        return x

    return named(
        adaptive_avg_pool,
        name,
        f"The last {rank} axes averaged to the sizes given: element i of n is the mean of elements "
        "`floor(i S / n)` to `ceil((i + 1) S / n)` of S. None keeps an axis.\n\n`[N, C, *S]` gives "
        "`[N, C, *output_size]`. `OptionError` for sizes below 1, `ShapeError` for other axes.",
        "2",
        rank,
    )


def need_sizes(what: str, x: Tensor, sizes: Sequence[Any], rank: int) -> Tensor:
    """x, which is pooled to sizes; None for one that stays."""
    if len(sizes) != rank or any(s is not None and not isinstance(s, Dim) and s < 1 for s in sizes):
        raise OptionError(
            f"{what}: output_size is at least 1 for each of {rank} axes, or None to keep one, not "
            f"{tuple(sizes)!r}"
        )
    for size in sizes:
        if isinstance(size, Dim):
            x = guard(x, 1, "<=", size, f"{what}: output_size is at least 1, not {size}")
    return x


def windows_of(length: int | Dim, count: int | Dim) -> tuple[Any, Any]:
    """Where each of `count` windows begins and ends that together cover an axis."""
    i = arrays_of(length, count).arange(count)
    return i * length // count, ((i + 1) * length + (count - 1)) // count


def _averaged(x: Tensor, axis: int, size: int | Dim) -> Tensor:
    if size == 1:
        return x.mean(axis=axis, keepdims=True)
    length = x.shape[axis]
    xp = arrays_of(length, size)
    first, end = windows_of(length, size)
    s = xp.arange(length)[None]
    share = ((s >= first[:, None]) & (s < end[:, None])).astype(xp.float64)
    matrix = rg.asarray(share / share.sum(axis=1, keepdims=True)).astype(x.dtype)
    return rg.moveaxis(rg.tensordot(x, matrix, axes=([axis], [1])), -1, axis)


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_pool, (1, 2, 3))


def filling(value: Any, dtype: DType) -> Any:
    """A number to pad an array with: a whole one is an integer for integers."""
    whole = isinstance(value, float) and value.is_integer() and not dtype.is_inexact
    return int(value) if whole else value


def continued(x: Tensor, widths: Sequence[tuple[int, int]], mode: str) -> Tensor:
    """x with its last axes continued by (before, after) elements of its own: `"reflect"` at the
    first and last element, which are not repeated, `"replicate"` by repeating these, `"circular"`
    from the other end."""
    for axis, (low, high) in enumerate(widths, x.ndim - len(widths)):
        if low == high == 0:
            continue
        n = x.shape[axis]
        most = {"reflect": n - 1, "circular": n, "replicate": None}[mode]
        if most is not None:
            wide = max(low, high)
            x = guard(
                x, wide, "<=", most,
                f"padding_mode={mode!r} continues an axis of {n} elements by at most {most}, not "
                f"by {wide}; make the padding smaller",
            )  # fmt: skip
        xp = arrays_of(n + low + high)
        at = xp.arange(low + n + high) - low
        if mode == "circular":
            at = at % n
        elif mode == "replicate":
            at = xp.clip(at, 0, n - 1)
        else:
            at = n - 1 - abs(n - 1 - abs(at))
        x = rg.take(x, at, axis=axis)
    return x


@located
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Tensor:
    """A convolution along time with time first: `[T, N, C]`, weight `[K, C, O]` and bias `[O]` give
    `[T + 2 pad - K + 1, N, O]`.

    `ShapeError` for other axes or channels.

    >>> import retrograd as rg
    >>> rg.nn.functional.conv_tbc(rg.ones((5, 2, 3)), rg.ones((3, 3, 4)), rg.ones((4,))).shape
    (3, 2, 4)
    """
    x, w = rg.asarray(input), rg.asarray(weight)
    if x.ndim != 3 or w.ndim != 3 or x.shape[2] != w.shape[1]:
        raise ShapeError(f"conv_tbc of [T, N, C] and [K, C, O], not of {x.shape} and {w.shape}")
    y = conv1d(rg.permute_dims(x, (1, 2, 0)), rg.permute_dims(w, (2, 1, 0)), bias, padding=pad)
    return rg.permute_dims(y, (2, 0, 1))
