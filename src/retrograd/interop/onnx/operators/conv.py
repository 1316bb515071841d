"""Convolutions and pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd.errors import BackendError, ShapeError
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import ints
from retrograd.nn import functional as F


class Window(NamedTuple):
    """How a kernel moves over the axes behind batch and channels."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @property
    def reach(self) -> list[int]:
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]


def _window(call: NodeCall, x: Any, kernel: Sequence[int]) -> Window:
    rank = len(kernel)
    strides = tuple(call.get("strides", (1,) * rank))
    dilations = tuple(call.get("dilations", (1,) * rank))
    flat = tuple(call.get("pads", (0,) * (2 * rank)))
    pads = tuple(zip(flat[:rank], flat[rank:], strict=True))
    window = Window(tuple(kernel), strides, dilations, pads)
    for size, reach, pad in zip(x.shape[2:], window.reach, pads, strict=True):
        if isinstance(size, int) and reach > size + sum(pad) and not call.get("auto_pad", ""):
            raise ShapeError(f"{call.operator} of a window of {reach} over {size} elements")
    mode = call.get("auto_pad", "NOTSET")
    if mode == "VALID":
        return window._replace(pads=((0, 0),) * rank)
    if mode.startswith("SAME"):
        found = []
        for size, stride, reach in zip(x.shape[2:], strides, window.reach, strict=True):
            if not isinstance(size, int) and stride != 1:
                raise BackendError(
                    f"{call.operator} with auto_pad={mode} and stride {stride} pads by a size that "
                    f"is not known ({size}); load the model with that size"
                )
            over = reach - 1 if stride == 1 else max(
                (-(-size // stride) - 1) * stride + reach - size, 0
            )  # fmt: skip
            found.append((over // 2, over - over // 2))
        pads = tuple(p if mode == "SAME_UPPER" else p[::-1] for p in found)
        return window._replace(pads=pads)
    return window


def _padded(x: Any, pads: Sequence[tuple[int, int]], value: Any = 0) -> Any:
    if not any(a or b for a, b in pads):
        return x
    return rg.pad(x, ((0, 0), (0, 0), *pads), value=value)


def _even(pads: Sequence[tuple[int, int]]) -> bool:
    return all(a == b for a, b in pads)


@rule("Conv")
def conv(call: NodeCall, x: Any, weight: Any, bias: Any = None) -> Any:
    window = _window(call, x, weight.shape[2:])
    padding: Any = tuple(a for a, _ in window.pads)
    if not _even(window.pads):
        x, padding = _padded(x, window.pads), 0
    return rg.conv(
        x, weight, bias, stride=window.strides, padding=padding, dilation=window.dilations,
        groups=call.get("group", 1),
    )  # fmt: skip


@rule("ConvTranspose")
def conv_transpose(call: NodeCall, x: Any, weight: Any, bias: Any = None) -> Any:
    """The whole result is computed, and cut by the pads, which may differ at both ends."""
    window = _window(call, x, weight.shape[2:]) if "auto_pad" not in call.attributes else None
    rank = weight.ndim - 2
    strides = tuple(call.get("strides", (1,) * rank))
    dilations = tuple(call.get("dilations", (1,) * rank))
    extra = tuple(call.get("output_padding", (0,) * rank))
    reach = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    sizes = list(zip(x.shape[2:], strides, reach, extra, strict=True))
    full = [s * (n - 1) + r + e for n, s, r, e in sizes]
    mode, shape = call.get("auto_pad", "NOTSET"), call.get("output_shape", None)
    if shape is not None or mode.startswith("SAME"):
        wanted = shape or [n * s for n, s, _, _ in sizes]
        over = [a - b for a, b in zip(full, wanted, strict=True)]
        low = [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in over]
        pads = [(a, t - a) for a, t in zip(low, over, strict=True)]
    else:
        pads = list(window.pads) if window else [(0, 0)] * rank
    # Room for what is beyond the last position that an element of x reaches.
    y = rg.conv_transpose(
        x, weight, None, stride=strides, dilation=dilations, groups=call.get("group", 1)
    )
    room = [(0, max(e, 0) + max(-b, 0)) for (_, b), e in zip(pads, extra, strict=True)]
    y = _padded(y, room)
    cut = tuple(slice(max(a, 0), f - b) for (a, b), f in zip(pads, full, strict=True))
    y = y[(slice(None), slice(None), *cut)]
    return y if bias is None else y + rg.reshape(bias, (1, -1, *(1,) * rank))


def _ceil_pads(call: NodeCall, x: Any, window: Window) -> tuple[tuple[int, int], ...]:
    """The pads with what `ceil_mode` adds behind, for windows that begin in x or its first pad."""
    if not call.get("ceil_mode", 0):
        return window.pads
    found = []
    for size, stride, reach, (a, b) in zip(
        x.shape[2:], window.strides, window.reach, window.pads, strict=True
    ):
        count = -(-(size + a + b - reach) // stride) + 1
        if (count - 1) * stride >= size + a:
            count -= 1
        found.append((a, max((count - 1) * stride + reach - size - a, b)))
    return tuple(found)


def _windows(x: Any, window: Window, pads: Any, value: Any) -> list[Any]:
    """For each place of the kernel, what stands there in all windows."""
    x = _padded(x, pads, value)
    places = []
    for at in itertools.product(*map(range, window.kernel)):
        cut = []
        for i, k in enumerate(at):
            start = k * window.dilations[i]
            count = (x.shape[2 + i] - window.reach[i]) // window.strides[i]
            cut.append(slice(start, start + count * window.strides[i] + 1, window.strides[i]))
        places.append(x[(slice(None), slice(None), *cut)])
    return places


@rule("MaxPool")
def max_pool(call: NodeCall, x: Any) -> Any:
    """Also the indices of the maxima in the whole tensor, counted by rows or by columns."""
    window = _window(call, x, call.get("kernel_shape"))
    pads = _ceil_pads(call, x, window)
    least = -float("inf") if x.dtype.is_float else rg.iinfo(x.dtype).min
    if not call.wants(1):
        if x.dtype.is_float and len(window.kernel) <= 3:
            whole = _padded(x, pads, least)
            return rg.max_pool(
                whole, window.kernel, stride=window.strides, dilation=window.dilations
            )
        return _largest(_windows(x, window, pads, least))
    places = rg.stack(_windows(x, window, pads, least))
    best = rg.argmax(places, axis=0, keepdims=True)
    order = "F" if call.get("storage_order", 0) else "C"
    number = np.arange(math.prod(x.shape)).reshape(x.shape)
    if order == "F":
        inner = math.prod(x.shape[2:])
        plane = np.arange(inner).reshape(x.shape[2:], order="F")
        number = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * plane.ndim) * inner
        number = number + plane
    where = rg.stack(_windows(rg.asarray(number), window, pads, -1))
    y = rg.take_along_axis(places, best, axis=0)[0]
    return y, rg.take_along_axis(where, best, axis=0)[0]


def _largest(parts: list[Any]) -> Any:
    y = parts[0]
    for part in parts[1:]:
        y = rg.maximum(y, part)
    return y


def _total(x: Any, window: Window, pads: Any) -> Any:
    """The sums of windows."""
    if any(d != 1 for d in window.dilations) or len(window.kernel) > 3:
        return sum(_windows(x, window, pads, 0))
    whole = _padded(x, pads)
    return rg.avg_pool(whole, window.kernel, stride=window.strides) * math.prod(window.kernel)


@rule("AveragePool")
def average_pool(call: NodeCall, x: Any) -> Any:
    """Zeros around x count with `count_include_pad`; what `ceil_mode` adds behind never does."""
    window = _window(call, x, call.get("kernel_shape"))
    pads = _ceil_pads(call, x, window)
    total = _total(x, window, pads)
    size = math.prod(window.kernel)
    if pads == window.pads and (call.get("count_include_pad", 0) or not any(map(any, pads))):
        return total / size
    ones = rg.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    rest = pads
    if call.get("count_include_pad", 0):
        ones = _padded(ones, window.pads, 1)
        rest = tuple((0, b - d) for (_, b), (_, d) in zip(pads, window.pads, strict=True))
    return total / _total(ones, window, rest)


@rule("LpPool")
def lp_pool(call: NodeCall, x: Any) -> Any:
    window = _window(call, x, call.get("kernel_shape"))
    p = call.get("p", 2)
    return _root(_total(rg.abs(x) ** p, window, _ceil_pads(call, x, window)), p)


def _root(total: Any, p: int) -> Any:
    return rg.sqrt(total) if p == 2 else total ** (1 / p)


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(call: NodeCall, x: Any) -> Any:
    axes = tuple(range(2, x.ndim))
    if call.operator == "GlobalAveragePool":
        return rg.mean(x, axis=axes, keepdims=True)
    if call.operator == "GlobalMaxPool":
        return rg.max(x, axis=axes, keepdims=True)
    p = call.get("p", 2)
    return _root(rg.sum(rg.abs(x) ** p, axis=axes, keepdims=True), p)


@rule("MaxUnpool")
def max_unpool(call: NodeCall, x: Any, indices: Any, shape: Any = None) -> Any:
    """Elements put back at their indices in the whole of the natural size, in a larger one where
    `output_shape` says so."""
    window = _window(call, x, call.get("kernel_shape"))
    natural = [
        (n - 1) * s - a - b + k
        for n, s, (a, b), k in zip(
            x.shape[2:], window.strides, window.pads, window.kernel, strict=True
        )
    ]
    whole = (*x.shape[:2], *natural)
    flat = rg.zeros((math.prod(whole),), dtype=x.dtype)
    flat = flat.at[rg.reshape(indices, (-1,))].set(rg.reshape(x, (-1,)))
    y = rg.reshape(flat, whole)
    if shape is None:
        return y
    wanted = ints(shape, "the shape of MaxUnpool")
    return rg.pad(y, [(0, a - b) for a, b in zip(wanted, whole, strict=True)])


@rule("Col2Im")
def col2im(call: NodeCall, x: Any, image: Any, block: Any) -> Any:
    """The sum of blocks at their places."""
    size, kernel = ints(image, "the shape of Col2Im"), ints(block, "the blocks of Col2Im")
    window = _window(call, rg.zeros((1, 1, *size)), kernel)
    n, rows = x.shape[0], x.shape[1]
    channels = rows // math.prod(kernel)
    padded = [d + a + b for d, (a, b) in zip(size, window.pads, strict=True)]
    counts = [
        (d - r) // s + 1 for d, r, s in zip(padded, window.reach, window.strides, strict=True)
    ]
    parts = rg.reshape(x, (n, channels, *kernel, *counts))
    whole = rg.zeros((n, channels, *padded), dtype=x.dtype)
    for at in itertools.product(*map(range, kernel)):
        place = zip(at, window.dilations, counts, window.strides, strict=True)
        cut = tuple(slice(k * d, k * d + (c - 1) * s + 1, s) for k, d, c, s in place)
        both = (slice(None), slice(None))
        whole = whole.at[(*both, *cut)].add(parts[(*both, *at)])
    cut = tuple(slice(a, d - b) for d, (a, b) in zip(padded, window.pads, strict=True))
    return whole[(slice(None), slice(None), *cut)]


@rule("DeformConv")
def deform_conv(
    call: NodeCall, x: Any, weight: Any, offset: Any, bias: Any = None, mask: Any = None
) -> Any:
    """Each place of the kernel reads x at its own offset, between elements (bilinear), and 0
    beyond; then a product of matrices. Dai et al., "Deformable Convolutional Networks", 2017."""
    kh, kw = weight.shape[2:]
    window = _window(call, x, (kh, kw))
    groups, parts = call.get("group", 1), call.get("offset_group", 1)
    n, channels, height, width = x.shape
    size = [
        (d + a + b - r) // s + 1
        for d, (a, b), r, s in zip(
            x.shape[2:], window.pads, window.reach, window.strides, strict=True
        )
    ]
    oh, ow = size
    shift = rg.reshape(offset, (n, parts, kh * kw, 2, oh, ow))
    rows = _grid(window, 0, oh)[:, None, :, None] + np.zeros((1, kw, 1, 1))
    columns = _grid(window, 1, ow)[None, :, None, :] + np.zeros((kh, 1, 1, 1))
    rows = rg.asarray((rows + np.zeros((1, 1, 1, ow))).reshape(kh * kw, oh, ow), dtype=x.dtype)
    columns = rg.asarray(
        (columns + np.zeros((1, 1, oh, 1))).reshape(kh * kw, oh, ow), dtype=x.dtype
    )
    at_y = rows + shift[:, :, :, 0]
    at_x = columns + shift[:, :, :, 1]
    grouped = rg.reshape(x, (n, parts, channels // parts, height, width))
    found = _bilinear(grouped, at_y, at_x)  # n, parts, channels, places, oh, ow
    if mask is not None:
        found *= rg.reshape(mask, (n, parts, 1, kh * kw, oh, ow))
    found = rg.reshape(found, (n, groups, channels // groups * kh * kw, oh * ow))
    kernel = rg.reshape(weight, (groups, weight.shape[0] // groups, -1))
    y = rg.reshape(rg.matmul(kernel[None], found), (n, weight.shape[0], oh, ow))
    return y if bias is None else y + rg.reshape(bias, (1, -1, 1, 1))


def _grid(window: Window, axis: int, count: int) -> Any:
    places = np.arange(window.kernel[axis]) * window.dilations[axis]
    starts = np.arange(count) * window.strides[axis] - window.pads[axis][0]
    return (places[:, None] + starts[None, :]).astype(np.float64)


def _bilinear(x: Any, at_y: Any, at_x: Any) -> Any:
    """x [n, g, c, h, w] at places [n, g, k, oh, ow]: [n, g, c, k, oh, ow]; 0 outside."""
    n, g, c, h, w = x.shape
    low_y, low_x = rg.floor(at_y), rg.floor(at_x)
    flat = rg.reshape(x, (n, g, c, h * w))
    total: Any = 0
    for dy, dx in itertools.product((0, 1), (0, 1)):
        iy, ix = low_y + dy, low_x + dx
        weight = (1 - rg.abs(at_y - iy)) * (1 - rg.abs(at_x - ix))
        inside = (iy >= 0) & (iy < h) & (ix >= 0) & (ix < w)
        place = rg.clip(iy, 0, h - 1) * w + rg.clip(ix, 0, w - 1)
        place = rg.reshape(place.astype(rg.int64), (n, g, 1, -1))
        read = rg.take_along_axis(flat, rg.broadcast_to(place, (n, g, c, place.shape[-1])), axis=3)
        read = rg.reshape(read, (n, g, c, *at_y.shape[2:]))
        total += read * rg.where(inside, weight, 0)[:, :, None]
    return total


@rule("GridSample")
def grid_sample(call: NodeCall, x: Any, grid: Any) -> Any:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(call.get("mode", "linear"))
    return F.grid_sample(
        x, grid, mode=mode or call.get("mode"), padding_mode=call.get("padding_mode", "zeros"),
        align_corners=bool(call.get("align_corners", 0)),
    )  # fmt: skip
