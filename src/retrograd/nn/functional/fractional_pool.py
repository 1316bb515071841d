"""Fractional max pooling: windows at random positions (Graham, arXiv:1412.6071)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir.source import located
from retrograd.nn import init
from retrograd.nn.functional.conv_pool import arrays_of, ratio, scaled
from retrograd.ops.assume import guard


def _tuple(value: Any, rank: int, what: str) -> tuple[Any, ...]:
    many = (value,) * rank if isinstance(value, int | float) else tuple(value)
    if len(many) != rank:
        raise OptionError(f"{what} is one number or {rank} of them, not {value!r}")
    return many


def _starts(samples: Tensor, size: Any, window: int, count: Any) -> Tensor:
    """Where the windows of each channel begin (B. Graham, "Fractional max-pooling", 2014):
    `[N, C]` to `[N, C, count]`. The last one ends with the axis."""
    if count == 1:
        return rg.full((*samples.shape, 1), size - window, dtype=rg.int64)
    step = ratio(size - window, count - 1)
    u = rg.expand_dims(samples, axis=-1)
    i = arrays_of(count).arange(count - 1)
    places = rg.floor((i + u) * step) - rg.floor(u * step)
    last = rg.full((*samples.shape, 1), size - window, dtype=rg.int64)
    return rg.concat([places.astype(rg.int64), last], axis=-1)


def _fractional(
    input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool,
    samples: Any, generator: Generator | None, rank: int,
) -> Any:  # fmt: skip
    what = f"fractional_max_pool{rank}d"
    x = rg.asarray(input)
    alone = x.ndim == rank + 1
    x = rg.expand_dims(x, axis=0) if alone else x
    if x.ndim != rank + 2:
        raise ShapeError(f"{what} takes [N, C, ...] or [C, ...] with {rank} more axes: {x.shape}")
    sizes = x.shape[2:]
    windows = _tuple(kernel_size, rank, "kernel_size")
    if (output_size is None) == (output_ratio is None):
        raise OptionError(f"{what} takes either an output_size or an output_ratio")
    if output_size is None:
        ratios = _tuple(output_ratio, rank, "output_ratio")
        if not all(0 < r < 1 for r in ratios):
            raise OptionError(f"{what}: an output_ratio is between 0 and 1, not {output_ratio}")
        counts = [scaled(what, n, r) for n, r in zip(sizes, ratios, strict=True)]
    else:
        counts = list(_tuple(output_size, rank, "output_size"))
    for n, k, c in zip(sizes, windows, counts, strict=True):
        none = f"{what}: windows {windows} do not fit {counts} times into {list(sizes)}"
        for least, most in ((1, c), (1, k), (c + k - 1, n)):
            x = guard(x, least, "<=", most, none)
    if samples is None:
        drawn = (generator or init.default_generator()).uniform((*x.shape[:2], rank))
        samples = drawn
    u = rg.asarray(samples).astype(rg.float64)
    if u.shape != (*x.shape[:2], rank):
        raise ShapeError(f"{what}: samples are [N, C, {rank}], not {u.shape}")
    flat: Any = rg.zeros((1,) * (2 + 2 * rank), dtype=rg.int64)
    for axis in range(rank):
        # PyTorch's samples begin with the last axis, but for three axes.
        own = u[..., rank - 1 - axis if rank == 2 else axis]
        starts = _starts(own, sizes[axis], windows[axis], counts[axis])
        places = rg.expand_dims(starts, axis=-1) + np.arange(windows[axis])
        own_shape: list[Any] = [*x.shape[:2], *[1] * (2 * rank)]
        own_shape[2 + axis], own_shape[2 + rank + axis] = counts[axis], windows[axis]
        flat = flat * sizes[axis] + places.reshape(tuple(own_shape))
    flat = rg.broadcast_to(flat, (*x.shape[:2], *counts, *windows))
    flat = flat.reshape((*x.shape[:2], math.prod(counts), math.prod(windows)))
    rows = x.reshape((*x.shape[:2], math.prod(sizes)))
    places = flat.reshape((*x.shape[:2], math.prod(counts) * math.prod(windows)))
    found = rg.take_along_axis(rows, places, axis=-1).reshape(flat.shape)
    best = rg.expand_dims(rg.argmax(found, axis=-1), axis=-1)
    shape = (*x.shape[:2], *counts)[int(alone) :]
    y = rg.take_along_axis(found, best, axis=-1).reshape(shape)
    if not return_indices:
        return y
    return y, rg.take_along_axis(flat, best, axis=-1).reshape(shape)


@located
def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
    generator: Generator | None = None,
) -> Any:
    """The maxima of windows that begin at random steps (Graham, arXiv:1412.6071), of `[N, C, H, W]`
    or `[C, H, W]`: `output_size` of them along each axis, or `output_ratio` times its size. The
    numbers, `[N, C, 2]` between 0 and 1, are drawn from the generator unless given. With
    `return_indices` also where the maxima are, in the flattened plane.

    `OptionError` unless one of `output_size` and `output_ratio` is given, `ShapeError` for windows
    that do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.fractional_max_pool2d(rg.ones((1, 1, 6, 6)), 2, 3).shape
    (1, 1, 3, 3)
    """
    return _fractional(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples, generator, 2
    )


@located
def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
    generator: Generator | None = None,
) -> Any:
    """`fractional_max_pool2d` of `[N, C, D, H, W]` or `[C, D, H, W]`.

    `OptionError` unless one of `output_size` and `output_ratio` is given, `ShapeError` for windows
    that do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.fractional_max_pool3d(rg.ones((1, 1, 6, 6, 6)), 2, 3).shape
    (1, 1, 3, 3, 3)
    """
    return _fractional(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples, generator, 3
    )
