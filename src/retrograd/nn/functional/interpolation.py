"""Resampling and rearranging of images as functions, with PyTorch's names and arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim
from retrograd.ir.source import located
from retrograd.nn.functional.activations import floating
from retrograd.nn.functional.conv_pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    arrays_of,
    continued,
    divided,
    filling,
    ratio,
    scaled,
)
from retrograd.ops.assume import guard

CUBIC = -0.75  # the free parameter of the cubic kernel (Keys 1981), as in most libraries; -1/2 with
CUBIC_ANTIALIAS = -0.5  # antialiasing
RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


@located
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`[N, C, *S]` resampled to `size`, or to `floor(S * scale_factor)`.

    Modes: "nearest" (`floor(i * scale)`), "nearest-exact", "linear", "bilinear", "bicubic",
    "trilinear", "area" (`adaptive_avg_pool`). With `align_corners` the centres of the corner
    elements coincide, else the outer edges of the arrays do; beyond the edge the last element is
    repeated. `scale_factor` is the scale itself unless `recompute_scale_factor`. With `antialias`
    (bilinear, bicubic) the kernel is stretched by the scale where the result is smaller.

    `OptionError` for an unknown mode and for options that it does not have, `ShapeError` for other
    axes.

    >>> import retrograd as rg
    >>> rg.nn.functional.interpolate(rg.tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    x = rg.asarray(input)
    rank = x.ndim - 2
    x = x if x.dtype.is_float or mode.startswith("nearest") else floating(x)
    if rank not in (1, 2, 3) or RANKS.get(mode, rank) != rank:
        raise ShapeError(f"interpolate: mode {mode!r} does not fit an input of shape {x.shape}")
    if mode not in (*RANKS, "nearest", "nearest-exact", "area"):
        known = ", ".join([*RANKS, "nearest", "nearest-exact", "area"])
        raise OptionError(f"interpolate: there is no mode {mode!r}, but {known}")
    if align_corners is not None and mode not in RANKS:
        raise OptionError(f"interpolate: align_corners has no meaning with mode {mode!r}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise OptionError(f"interpolate: antialias is for bilinear and bicubic, not {mode!r}")
    shape = x.shape[2:]
    sizes, scales = _sizes(shape, size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1]
        return pool(x, sizes)
    for axis, (n, new, scale) in enumerate(zip(shape, sizes, scales, strict=True), 2):
        if mode.startswith("nearest"):
            x = rg.take(x, _nearest(n, new, scale, mode == "nearest-exact"), axis=axis)
            continue
        place = _places(n, new, scale, bool(align_corners), mode == "bicubic" or antialias)
        if not antialias:
            x = _weighted(x, axis, *_taps(n, place, mode == "bicubic"))
        elif arrays_of(n, new) is rg:
            matrix = _stretched_all(n, place, scale, mode == "bicubic")
            y = rg.tensordot(x, matrix.astype(x.dtype), axes=([axis], [1]))
            x = rg.moveaxis(y, -1, axis)
        else:
            x = _weighted(x, axis, *_stretched(n, place, scale, mode == "bicubic"))
    return x


def _nearest(n: Any, new: Any, scale: Any, middle: bool) -> Any:
    """The elements next to new ones, or to their middles. Their positions are counted in single
    precision, lest they differ from those of other libraries."""
    xp = arrays_of(n, new)
    at = xp.arange(new).astype(xp.float64) + (0.5 if middle else 0.0)
    step = scale.astype(rg.float32) if isinstance(scale, Tensor) else np.float32(scale)
    place = (at * step.astype(xp.float64)).astype(xp.float32)
    return xp.minimum(xp.floor(place), n - 1).astype(xp.int64)


def _sizes(
    shape: Sequence[Any], size: Any, factor: Any, recompute: bool
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The new sizes, and the distance of new elements in units of old ones."""
    if (size is None) == (factor is None):
        raise OptionError(
            f"interpolate of {tuple(shape)}: give either size or scale_factor, not {size} and "
            f"{factor}"
        )
    rank = len(shape)
    given = size if factor is None else factor
    values = tuple(given) if isinstance(given, tuple | list) else (given,) * rank
    if len(values) != rank or any(not isinstance(v, Dim) and not v > 0 for v in values):
        raise OptionError(f"interpolate: a positive number for each of {rank} axes, not {given!r}")
    if factor is None:
        sizes = tuple([v if isinstance(v, Dim) else int(v) for v in values])
        return sizes, tuple(map(ratio, shape, sizes))
    sizes = tuple([scaled("interpolate", n, v) for n, v in zip(shape, values, strict=True)])
    return sizes, tuple(map(ratio, shape, sizes)) if recompute else tuple([1 / v for v in values])


def _places(n: Any, new: Any, scale: Any, corners: bool, outside: bool) -> Any:
    """Where new elements are among the old ones; before the first if they may be `outside`."""
    xp = arrays_of(n, new)
    i = xp.arange(new).astype(xp.float64)
    if corners:
        return i * ratio(n - 1, new - 1)
    place = (i + 0.5) * scale - 0.5
    return place if outside else xp.maximum(place, 0.0)


def _taps(n: Any, place: Any, cubic: bool) -> tuple[Any, Any]:
    """For each new element the old ones, `[new, taps]`, and their weights."""
    xp = rg if isinstance(place, Tensor) else np
    steps = np.arange(-1, 3) if cubic else np.arange(2)
    at = xp.floor(place).astype(xp.int64)[:, None] + steps
    kernel = _cubic if cubic else _linear
    return xp.clip(at, 0, n - 1), kernel(xp, place[:, None] - at, CUBIC)


def _stretched(n: Any, place: Any, scale: float, cubic: bool) -> tuple[Any, Any]:
    """Taps of a kernel that is as wide as the new elements are apart; those outside count not."""
    width = max(scale, 1.0)
    reach = math.ceil((2 if cubic else 1) * width) + 1
    at = np.floor(place).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    kernel = _cubic if cubic else _linear
    weights = kernel(np, (place[:, None] - at) / width, CUBIC_ANTIALIAS)
    weights = np.where((at >= 0) & (at < n), weights, 0.0)
    return np.clip(at, 0, n - 1), weights / weights.sum(1, keepdims=True)


def _stretched_all(n: Any, place: Any, scale: Any, cubic: bool) -> Any:
    """The same for sizes with names, on which it depends how many taps there are: the weights of
    all old elements, `[new, n]`."""
    kernel = _cubic if cubic else _linear
    distance = (place[:, None] - rg.arange(n)) / rg.maximum(scale, 1.0)
    weights = kernel(rg, distance, CUBIC_ANTIALIAS)
    return weights / weights.sum(axis=1, keepdims=True)


def _linear(xp: Any, d: Any, _: float) -> Any:
    return xp.maximum(1 - xp.abs(d), 0.0)


def _cubic(xp: Any, d: Any, a: float) -> Any:
    """The kernel of cubic convolution."""
    d = xp.abs(d)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = a * (((d - 5) * d + 8) * d - 4)
    return xp.where(d <= 1, near, xp.where(d < 2, far, 0.0))


def _weighted(x: Tensor, axis: int, at: Any, weights: Any) -> Tensor:
    """The sums of weighted elements along an axis, one tap after another."""
    total: Any = 0.0
    shape = (-1,) + (1,) * (x.ndim - 1 - axis)
    for k in range(at.shape[1]):
        w = weights[:, k].reshape(shape)
        if isinstance(w, Tensor) or w.any():
            total = total + rg.take(x, at[:, k], axis=axis) * rg.asarray(w).astype(x.dtype)
    return total if isinstance(total, Tensor) else rg.take(x, at[:, 0], axis=axis) * 0.0


@located
def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The former name of `interpolate`.

    `[N, C, *S]` to `[N, C, *size]`. `OptionError` unless one of `size` and `scale_factor` is given,
    and for an unknown mode.

    >>> import retrograd as rg
    >>> rg.nn.functional.upsample(rg.ones((1, 1, 2)), 4).shape
    (1, 1, 4)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@located
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "nearest".

    `[N, C, *S]` to `[N, C, *size]`. `OptionError` unless one of `size` and `scale_factor` is given.

    >>> import retrograd as rg
    >>> rg.nn.functional.upsample_nearest(rg.ones((1, 1, 2)), 4).shape
    (1, 1, 4)
    """
    return interpolate(input, size, scale_factor)


@located
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "bilinear" and aligned corners.

    `[N, C, *S]` to `[N, C, *size]`. `OptionError` unless one of `size` and `scale_factor` is given.

    >>> import retrograd as rg
    >>> rg.nn.functional.upsample_bilinear(rg.ones((1, 1, 2, 2)), (4, 4)).shape
    (1, 1, 4, 4)
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


# -- grids ---------------------------------------------------------------------------------------
@located
def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Tensor:
    """The places that `grid_sample` should read for an affine map: theta `[N, 2, 3]` and size
    `(N, C, H, W)` give `[N, H, W, 2]`; `[N, 3, 4]` and `(N, C, D, H, W)` give `[N, D, H, W, 3]`.

    `ShapeError` where theta and size do not fit.

    >>> import retrograd as rg
    >>> rg.nn.functional.affine_grid(rg.ones((1, 2, 3)), (1, 1, 4, 5)).shape
    (1, 4, 5, 2)
    """
    matrix = floating(theta)
    rank = len(size) - 2
    if rank not in (2, 3) or matrix.shape != (size[0], rank, rank + 1):
        raise ShapeError(
            f"affine_grid: theta is [N, 2, 3] for sizes (N, C, H, W), [N, 3, 4] for (N, C, D, H, "
            f"W), not {matrix.shape} for {tuple(size)}"
        )
    xp = arrays_of(*size[2:])
    axes = xp.meshgrid(*[_line(xp, n, align_corners) for n in size[2:]], indexing="ij")
    points = xp.stack([*reversed(axes), xp.ones_like(axes[0])], axis=-1)
    points = rg.asarray(points).reshape((math.prod(size[2:]), rank + 1))
    grid = points.astype(matrix.dtype) @ matrix.mT
    return grid.reshape((size[0], *size[2:], rank))


def _line(xp: Any, n: Any, corners: bool) -> Any:
    """The middles of n elements between -1 and 1, or as many points from -1 to 1; 0 for one."""
    if xp is np:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        return line if corners else line * (n - 1) / n
    whole = rg.asarray(n, dtype=rg.float64)
    i = rg.arange(n).astype(rg.float64)
    points = i * (2.0 / rg.maximum(whole - 1.0, 1.0)) - 1.0
    points = rg.where(whole > 1.0, points, 0.0)
    return points if corners else points * (whole - 1.0) / whole


@located
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The input `[N, C, H, W]` at the places of a grid `[N, *P, 2]` of (x, y) between -1 and 1, or
    `[N, C, D, H, W]` at `[N, *P, 3]` of (x, y, z): `[N, C, *P]`.

    Modes "bilinear" (in three axes too), "nearest" (no gradient in the grid), "bicubic" (two axes).
    Outside there are zeros, the nearest element ("border"), or a mirror image ("reflection").
    The gradient in the grid counts the border itself as outside.

    `ShapeError` where axes or samples do not fit, `OptionError` for an unknown mode.

    >>> import retrograd as rg
    >>> rg.nn.functional.grid_sample(rg.ones((1, 2, 3, 3)), rg.zeros((1, 4, 5, 2))).shape
    (1, 2, 4, 5)
    """
    x, places = floating(input), floating(grid)
    rank = x.ndim - 2
    if rank not in (2, 3) or places.ndim != x.ndim or places.shape[-1] != rank:
        raise ShapeError(
            f"grid_sample: [N, C, H, W] and a grid [N, H, W, 2], or an axis more each and 3, not "
            f"{x.shape} and {places.shape}"
        )
    if places.shape[0] != x.shape[0]:
        raise ShapeError(f"grid_sample: {x.shape} and {places.shape} differ in samples")
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank == 3):
        raise OptionError(
            f"grid_sample: there is no mode {mode!r} for {rank} axes, but bilinear, nearest and, "
            "for 2 axes, bicubic"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise OptionError(f"grid_sample: there is no padding_mode {padding_mode!r}")
    corners = bool(align_corners)
    shape = x.shape[2:]
    at = []
    for axis, n in enumerate(shape):
        u = places[:, None, ..., rank - 1 - axis] + 1  # for all channels
        u = u * (0.5 * rg.asarray(n - 1).astype(u.dtype)) if corners else (u * n - 1) / 2
        at.append(u if mode == "bicubic" else _inside(u, n, padding_mode, corners))
    taps = [
        [_Tap(u, w, n, padding_mode, corners, mode == "bicubic") for u, w in _grid_taps(v, mode)]
        for v, n in zip(at, shape, strict=True)
    ]
    flat = x.reshape((x.shape[0], x.shape[1], math.prod(shape)))
    first, *others = [_corner(flat, shape, chosen) for chosen in product(*taps)]
    return sum(others, first)


def _inside(u: Tensor, n: Any, mode: str, corners: bool) -> Tensor:
    """Places moved inside as the padding mode says."""
    if mode == "zeros":
        return u
    if mode == "reflection":
        low, span = (0.0, n - 1) if corners else (-0.5, n)
        if span == 0:
            return u * 0.0
        wide = span if low or not isinstance(span, Dim) else rg.maximum(rg.asarray(span), 1)
        r = rg.remainder(u - low, 2 * wide)
        moved = rg.where(r > wide, 2 * wide - r, r) + low
        u = moved if wide is span else rg.where(rg.asarray(n) > 1, moved, u * 0.0)
    return rg.clip(u, 0.0, n - 1)


def _grid_taps(u: Tensor, mode: str) -> list[tuple[Tensor, Tensor | None]]:
    """Old elements, as floats, and their weights; None for 1."""
    if mode == "nearest":
        return [(rg.round(u), None)]
    first = rg.floor(u)
    t = u - first
    if mode == "bilinear":
        return [(first, 1 - t), (first + 1, t)]
    a = CUBIC
    weights = (
        a * ((((t + 1) - 5) * (t + 1) + 8) * (t + 1) - 4),
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1,
        a * ((((2 - t) - 5) * (2 - t) + 8) * (2 - t) - 4),
    )
    return [(first + (k - 1.0), w) for k, w in enumerate(weights)]


class _Tap:
    """Elements along one axis of size n: where they are, whether inside, and their weights. Arrays
    are `[N, 1, *P]`."""

    def __init__(self, u: Tensor, weight: Tensor | None, n: Any, padding: str, corners: bool,
                 move: bool) -> None:  # fmt: skip
        u = rg.stop_gradient(u)
        if move:
            u = rg.round(_inside(u, n, padding, corners))
        self.valid = (u >= 0) & (u <= n - 1)
        self.index = rg.clip(u, 0.0, n - 1).astype(rg.int64)
        self.weight = weight


def _corner(flat: Tensor, shape: Sequence[Any], taps: Sequence[_Tap]) -> Tensor:
    """The elements at one corner of the cells, times their weights, zeros outside."""
    index, valid, weight = taps[0].index, taps[0].valid, taps[0].weight
    for n, tap in zip(shape[1:], taps[1:], strict=True):
        index, valid = index * n + tap.index, valid & tap.valid
        if weight is not None and tap.weight is not None:
            weight = weight * tap.weight
    points = index.shape[2:]
    places = index.reshape((index.shape[0], 1, math.prod(points)))
    found = rg.take_along_axis(flat, places, axis=2)
    found = found.reshape((*flat.shape[:2], *points))
    found = rg.where(valid, found, 0.0)
    return found if weight is None else found * weight


# -- rearranging ---------------------------------------------------------------------------------
@located
def pad(
    input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """The input continued: `pad` has (before, after) for the last axis, then for the one before it,
    and so on; negative numbers cut off. Modes "constant" (by `value`), "reflect", "replicate",
    "circular".

    `[..., n]` to `[..., before + n + after]`. `ShapeError` for more pairs than axes, `OptionError`
    for an unknown mode, or a value where it has no meaning.

    >>> import retrograd as rg
    >>> rg.nn.functional.pad(rg.tensor([1.0, 2.0]), (1, 2)).tolist()
    [0.0, 1.0, 2.0, 0.0, 0.0]
    """
    x = rg.asarray(input)
    widths = [int(p) for p in pad]
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise ShapeError(f"pad: (before, after) for up to {x.ndim} axes, not {tuple(pad)}")
    pairs = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)][::-1]
    added = [(max(low, 0), max(high, 0)) for low, high in pairs]
    if mode == "constant":
        y = rg.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + added, value=filling(value or 0, x.dtype))
    elif mode not in ("reflect", "replicate", "circular"):
        raise OptionError(f"pad: there is no mode {mode!r}")
    elif value is not None:
        raise OptionError(f"pad: a value is for mode 'constant', not {mode!r}")
    elif mode == "circular":  # what is cut off is not there to go round
        return continued(_cut(x, pairs), added, mode)
    else:
        y = continued(x, added, mode)
    return _cut(y, pairs)


def _cut(x: Tensor, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """x without what negative numbers of (before, after) cut off its last axes."""
    if all(a >= 0 and b >= 0 for a, b in pairs):
        return x
    sizes = x.shape[x.ndim - len(pairs) :]
    for n, (a, b) in zip(sizes, pairs, strict=True):
        many = f"pad: {(a, b)} cuts off more than there is of an axis of {n}"
        x = guard(x, -min(a, 0) - min(b, 0), "<=", n, many)
    ends = zip(sizes, pairs, strict=True)
    return x[(..., *(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in ends))]


@located
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """`[..., C r^2, H, W]` to `[..., C, H r, W r]` (Shi et al., arXiv:1609.05158).

    `ShapeError` where the channels are no multiple of `r^2`.

    >>> import retrograd as rg
    >>> rg.nn.functional.pixel_shuffle(rg.ones((1, 4, 3, 3)), 2).shape
    (1, 1, 6, 6)
    """
    x, r = rg.asarray(input), upscale_factor
    uneven = f"pixel_shuffle by {r}: the channels of {x.shape} must divide by {r * r}"
    if x.ndim < 3 or r < 1:
        raise ShapeError(uneven)
    x = divided(x, -3, r * r, uneven)
    *lead, c, h, w = x.shape
    k = len(lead)
    y = x.reshape((*lead, c // (r * r), r, r, h, w))
    y = rg.permute_dims(y, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return y.reshape((*lead, c // (r * r), h * r, w * r))


@located
def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """`[..., C, H r, W r]` to `[..., C r^2, H, W]`, the inverse of `pixel_shuffle`.

    `ShapeError` where H or W is no multiple of r.

    >>> import retrograd as rg
    >>> rg.nn.functional.pixel_unshuffle(rg.ones((1, 1, 6, 6)), 2).shape
    (1, 4, 3, 3)
    """
    x, r = rg.asarray(input), downscale_factor
    uneven = f"pixel_unshuffle by {r}: the last axes of {x.shape} must divide by {r}"
    if x.ndim < 3 or r < 1:
        raise ShapeError(uneven)
    x = divided(divided(x, -1, r, uneven), -2, r, uneven)
    *lead, c, h, w = x.shape
    k = len(lead)
    y = x.reshape((*lead, c, h // r, r, w // r, r))
    y = rg.permute_dims(y, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return y.reshape((*lead, c * r * r, h // r, w // r))


@located
def channel_shuffle(input: Any, groups: int) -> Tensor:
    """Channels, axis 1, of g groups of k exchanged: `[N, g k, ...]` read as `[N, k, g, ...]`.

    `ShapeError` where the channels are no multiple of the groups.

    >>> import retrograd as rg
    >>> rg.nn.functional.channel_shuffle(rg.tensor([[[0.0], [1.0], [2.0], [3.0]]]), 2)[
    ...     0, :, 0
    ... ].tolist()
    [0.0, 2.0, 1.0, 3.0]
    """
    x = rg.asarray(input)
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: {groups} groups of the channels of {x.shape}")
    grouped = x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    return rg.swapaxes(grouped, 1, 2).reshape(x.shape)
