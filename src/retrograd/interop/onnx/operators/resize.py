"""Images of another size, and windows read from them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import BackendError, FormatError
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import array, number


@rule("Resize", "Upsample")
def resize(call: NodeCall, x: Any, *rest: Any) -> Any:
    """One product with a matrix of weights for each axis that changes: the rows of the matrix say
    from which elements, with which weights, an element of the result is put together."""
    roi, scales, lengths = _inputs(call, rest)
    axes = [a % x.ndim for a in call.get("axes", range(x.ndim))]
    plans = _plans(call, x, axes, scales, lengths, roi)
    outside: Any = None
    for axis, (length, scale, ends) in zip(axes, plans, strict=True):
        if not isinstance(x.shape[axis], int):
            if length is x.shape[axis] or (scale == 1.0 and length is None):
                continue
            x = rg.moveaxis(_read(call, rg.moveaxis(x, axis, -1), scale), -1, axis)
            continue
        weights, beyond = _weights(call, x.shape[axis], length, scale, ends)
        if beyond.any():
            shape = [1] * x.ndim
            shape[axis] = length
            here = beyond.reshape(shape)
            outside = here if outside is None else outside | here
        if weights.shape[0] == weights.shape[1] and (weights == np.eye(len(weights))).all():
            continue
        moved = rg.moveaxis(x, axis, -1)
        moved = _selected(moved, weights) if _is_selection(weights) else _mixed(moved, weights)
        x = rg.moveaxis(moved, -1, axis)
    if outside is not None:
        x = rg.where(rg.asarray(outside), call.get("extrapolation_value", 0.0), x)
    return x


def _inputs(call: NodeCall, rest: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Region, scales and lengths, where there are any."""
    if call.operator == "Upsample":
        return None, array(rest[0], "the scales of Upsample"), None
    roi, scales, lengths = (*rest, None, None, None)[:3]
    roi = None if roi is None else array(roi, "the region of Resize")
    scales = None if scales is None else array(scales, "the scales of Resize")
    lengths = None if lengths is None else array(lengths, "the sizes of Resize")
    return roi, scales if scales is not None and scales.size else None, lengths


def _plans(call: NodeCall, x: Any, axes: list[int], scales: Any, lengths: Any, roi: Any) -> Any:
    """For each axis the length of the result, the scale, and the ends of the region."""
    old = [x.shape[a] for a in axes]
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    if scales is not None:
        factors = [float(s) for s in scales]
    elif lengths is None:
        raise FormatError(f"{call.operator} has neither scales nor sizes")
    else:
        factors = [int(n) / o for n, o in zip(lengths, old, strict=True)]
        if policy != "stretch":
            one = min(factors) if policy == "not_larger" else max(factors)
            factors = [one] * len(factors)
    crop = call.get("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    plans = []
    for i, (o, f) in enumerate(zip(old, factors, strict=True)):
        ends = (float(roi[i]), float(roi[i + len(axes)])) if crop else (0.0, 1.0)
        if lengths is not None and policy == "stretch":
            length: Any = int(lengths[i])
        elif lengths is not None:
            length = math.floor(o * f + 0.5)
        elif not isinstance(o, int):
            length = None
        else:
            length = math.floor(o * (ends[1] - ends[0]) * f) if crop else math.floor(o * f)
        plans.append((length, f, ends))
    return plans


def _places(call: NodeCall, old: int, new: int, scale: float, ends: tuple[float, float]) -> Any:
    """Where in x the elements of the result lie."""
    mode = call.get("coordinate_transformation_mode", "half_pixel")
    if call.operator == "Upsample":
        mode = "asymmetric"
    at = np.arange(new, dtype=np.float64)
    match mode:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjusted = new / (scale * old)
            middle = old / 2
            return middle * (1 - adjusted) + (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if new > 1 else np.zeros(new)
        case "align_corners":  # by the size before it is rounded
            return at * (old - 1) / (old * scale - 1) if old * scale != 1 else np.zeros(new)
        case "asymmetric":
            return at / scale
        case "tf_crop_and_resize":
            first, last = ends
            if new == 1:
                return np.full(1, 0.5 * (first + last) * (old - 1))
            return first * (old - 1) + at * (last - first) * (old - 1) / (new - 1)
    raise BackendError(f"{call.operator} with coordinate_transformation_mode={mode!r}")


def _weights(
    call: NodeCall, old: int, new: int, scale: float, ends: tuple[float, float]
) -> tuple[Any, Any]:
    """The matrix [new, old], and which places lie outside of a region."""
    at = _places(call, old, new, scale, ends)
    mode = call.get("mode", "nearest")
    is_crop = call.get("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    beyond = (at < 0) | (at > old - 1) if is_crop else np.zeros(new, bool)
    weights = np.zeros((new, old))
    if mode == "nearest":
        chosen = np.clip(_nearest(call, at), 0, old - 1).astype(int)
        weights[np.arange(new), chosen] = 1
        return weights, beyond
    shrink = min(scale, 1.0) if call.get("antialias", 0) else 1.0
    radius = (1 if mode == "linear" else 2) / shrink
    kernel = _hat if mode == "linear" else _cubic(call.get("cubic_coeff_a", -0.75))
    first = np.floor(at - radius).astype(int)
    for k in range(2 * math.ceil(radius) + 2):
        places = first + k
        share = kernel((at - places) * shrink)
        inside = (places >= 0) & (places < old)
        if call.get("exclude_outside", 0):
            share = np.where(inside, share, 0)
        np.add.at(weights, (np.arange(new), np.clip(places, 0, old - 1)), share)
    return weights / weights.sum(1, keepdims=True), beyond


def _read(call: NodeCall, x: Any, scale: float) -> Any:
    """The last axis, of a size with a name, scaled: what is near each place is read, with weights,
    as there is no matrix of them."""
    old, share = x.shape[-1], Fraction(scale).limit_denominator(1 << 10)
    new = old * share.numerator // share.denominator
    if (
        share <= 0 or abs(float(share) - scale) > 1e-7 * scale
    ):  # in single precision, as ONNX has it
        raise BackendError(f"{call.operator} of an axis of the size {old} by {scale}")
    at = _named_places(call, rg.arange(new).astype(rg.float64), old, new, scale)
    mode, last = call.get("mode", "nearest"), rg.asarray(old, dtype=rg.int64) - 1
    if mode == "nearest":
        places = rg.astype(_nearest(call, at), rg.int64)
        return rg.take(x, rg.clip(places, 0, last), axis=-1)
    shrink = min(scale, 1.0) if call.get("antialias", 0) else 1.0
    radius = (1 if mode == "linear" else 2) / shrink
    kernel = _hat if mode == "linear" else _cubic(call.get("cubic_coeff_a", -0.75))
    first, total, sums = rg.floor(at - radius), rg.zeros_like(at), 0
    dtype = x.dtype if x.dtype.is_float else rg.float32
    for k in range(2 * math.ceil(radius) + 2):
        places = first + k
        weight = kernel((at - places) * shrink)
        if call.get("exclude_outside", 0):
            weight = rg.where((places >= 0) & (places <= last), weight, 0.0)
        near = rg.take(x, rg.clip(rg.astype(places, rg.int64), 0, last), axis=-1)
        total, sums = total + weight, sums + near.astype(rg.float64) * weight
    y = (sums / total).astype(dtype)
    return y if y.dtype is x.dtype else rg.round(y).astype(x.dtype)


def _named_places(call: NodeCall, at: Any, old: Any, new: Any, scale: float) -> Any:
    """Where in x the elements of the result lie, for sizes with names."""
    mode = call.get("coordinate_transformation_mode", "half_pixel")
    count, before = (rg.asarray(n, dtype=rg.int64).astype(rg.float64) for n in (new, old))
    match "asymmetric" if call.operator == "Upsample" else mode:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return rg.where(count > 1, (at + 0.5) / scale - 0.5, 0.0)
        case "align_corners":
            ends = before * scale - 1
            return rg.where(ends != 0, at * (before - 1) / rg.where(ends != 0, ends, 1.0), 0.0)
        case "asymmetric":
            return at / scale
    raise BackendError(
        f"{call.operator} with coordinate_transformation_mode={mode!r} of an axis of the size "
        f"{old}, which has no value yet"
    )


def _hat(d: Any) -> Any:
    return np.maximum(1 - np.abs(d), 0)


def _cubic(a: float) -> Any:
    """Keys, "Cubic convolution interpolation for digital image processing", 1981."""

    def kernel(d: Any) -> Any:
        d = np.abs(d)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    return kernel


def _nearest(call: NodeCall, at: Any) -> Any:
    mode = (
        "floor" if call.operator == "Upsample" else call.get("nearest_mode", "round_prefer_floor")
    )
    match mode:
        case "round_prefer_floor":
            return np.ceil(at - 0.5)
        case "round_prefer_ceil":
            return np.floor(at + 0.5)
        case "floor":
            return np.floor(at)
        case "ceil":
            return np.ceil(at)
    raise BackendError(f"{call.operator} with nearest_mode={mode!r}")


def _is_selection(weights: Any) -> bool:
    return bool(((weights == 0) | (weights == 1)).all() and (weights.sum(1) == 1).all())


def _selected(x: Any, weights: Any) -> Any:
    return rg.take(x, rg.asarray(weights.argmax(1)), axis=-1)


def _mixed(x: Any, weights: Any) -> Any:
    dtype = x.dtype if x.dtype.is_float else rg.float32
    y = rg.matmul(x.astype(dtype), rg.asarray(weights.T, dtype=dtype))
    return y if y.dtype is x.dtype else rg.round(y).astype(x.dtype)


@rule("RoiAlign")
def roi_align(call: NodeCall, x: Any, rois: Any, batch: Any) -> Any:
    """Means (or maxima) of elements read between pixels of each region. He et al., "Mask R-CNN",
    2017."""
    high, wide = call.get("output_height", 1), call.get("output_width", 1)
    scale, ratio = call.get("spatial_scale", 1.0), call.get("sampling_ratio", 0)
    half = call.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    boxes = array(rois, "the regions of RoiAlign").astype(np.float64) * scale - (0.5 if half else 0)
    owners = array(batch, "the batch indices of RoiAlign")
    h, w = x.shape[2:]
    found = []
    for (x1, y1, x2, y2), owner in zip(boxes, owners, strict=True):
        tall, broad = y2 - y1, x2 - x1
        if not half:
            tall, broad = max(tall, 1.0), max(broad, 1.0)
        ny = ratio or math.ceil(tall / high)
        nx = ratio or math.ceil(broad / wide)
        rows = _reads(y1 + (np.arange(high * ny) + 0.5) * tall / (high * ny), h)
        columns = _reads(x1 + (np.arange(wide * nx) + 0.5) * broad / (wide * nx), w)
        if call.get("mode", "avg") == "avg":
            rows = rows.reshape(high, ny, h).mean(1)
            columns = columns.reshape(wide, nx, w).mean(1)
            y = (
                rg.asarray(rows, dtype=x.dtype)
                @ x[int(owner)]
                @ rg.asarray(columns.T, dtype=x.dtype)
            )
        else:
            y = _largest_product(x[int(owner)], rows, columns, (high, ny, wide, nx))
        found.append(y)
    return rg.stack(found) if found else rg.zeros((0, x.shape[1], high, wide), dtype=x.dtype)


def _reads(at: Any, size: int) -> Any:
    """Weights of the two neighbours of each place; none for places more than 1 outside."""
    weights = np.zeros((len(at), size))
    inside = (at >= -1) & (at <= size)
    at = np.clip(at, 0, size - 1)
    low = np.minimum(np.floor(at).astype(int), size - 1)
    high = np.minimum(low + 1, size - 1)
    np.add.at(weights, (np.arange(len(at)), low), np.where(inside, 1 - (at - low), 0))
    np.add.at(weights, (np.arange(len(at)), high), np.where(inside, at - low, 0))
    return weights


def _largest_product(x: Any, rows: Any, columns: Any, parts: tuple[int, int, int, int]) -> Any:
    """ONNX takes the largest of the four weighted neighbours of a sample, not of their sum."""
    high, ny, wide, nx = parts
    best: Any = None
    for a in _neighbours(rows):
        for b in _neighbours(columns):
            y = rg.asarray(a, dtype=x.dtype) @ x @ rg.asarray(b.T, dtype=x.dtype)
            best = y if best is None else rg.maximum(best, y)
    best = rg.reshape(best, (x.shape[0], high, ny, wide, nx))
    return rg.max(best, axis=(2, 4))


def _neighbours(weights: Any) -> list[Any]:
    """The weights of the lower and of the upper neighbour, one matrix each."""
    lower = np.zeros_like(weights)
    first = (weights != 0).argmax(1)
    at = np.arange(len(weights))
    lower[at, first] = weights[at, first]
    return [lower, weights - lower]


@rule("NonMaxSuppression")
def non_max_suppression(
    call: NodeCall,
    boxes: Any,
    scores: Any,
    most: Any = None,
    overlap: Any = None,
    least: Any = None,
) -> Any:
    """Boxes by falling score, those left out that overlap one before by more than a share."""
    b = array(boxes, "the boxes of NonMaxSuppression").astype(np.float64)
    s = array(scores, "the scores of NonMaxSuppression")
    count = 0 if most is None else number(most, "the count of NonMaxSuppression")
    share = 0.0 if overlap is None else number(overlap, "the overlap of NonMaxSuppression")
    floor = None if least is None else number(least, "the least score of NonMaxSuppression")
    if call.get("center_point_box", 0):
        x, y, w, h = np.moveaxis(b, -1, 0)
        b = np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    low, high = np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:])
    found = []
    for batch in range(s.shape[0]):
        for kind in range(s.shape[1]):
            order = np.argsort(-s[batch, kind], kind="stable")
            if floor is not None:
                order = order[s[batch, kind][order] > floor]
            kept: list[int] = []
            for i in order:
                if len(kept) == count:
                    break
                if all(_overlap(low[batch], high[batch], i, j) <= share for j in kept):
                    kept.append(int(i))
            found += [(batch, kind, i) for i in kept]
    return rg.asarray(np.asarray(found, np.int64).reshape(-1, 3))


def _overlap(low: Any, high: Any, i: int, j: int) -> float:
    """The area in common, as a share of the area of both."""
    sides = np.maximum(np.minimum(high[i], high[j]) - np.maximum(low[i], low[j]), 0)
    common = sides.prod()
    area = (high[i] - low[i]).prod() + (high[j] - low[j]).prod() - common
    return float(common / area) if area > 0 else 0.0
