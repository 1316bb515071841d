"""Operators that move elements, and those about shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import FormatError, ShapeError
from retrograd.interop.onnx.dtypes import dtype_of
from retrograd.interop.onnx.dynamic_size import UnknownSize, length_of
from retrograd.interop.onnx.narrow import from_array
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import (
    SymbolicSizes,
    array,
    as_tensor,
    from_sizes,
    ints,
    known,
    known_sizes,
    number,
    sizes,
)  # fmt: skip
from retrograd.ir import product


@rule("Constant")
def constant(call: NodeCall) -> Any:
    """Tensors stand in `value`; the rest are numbers and lists of them."""
    for name, found in call.attributes.items():
        match name:
            case "value":
                return from_array(found)
            case "value_float" | "value_floats":
                return rg.asarray(np.asarray(found, np.float32))
            case "value_int" | "value_ints":
                return rg.asarray(np.asarray(found, np.int64))
    raise rg.BackendError(f"Constant with {', '.join(call.attributes) or 'nothing'}")


@rule("Shape", sizes=True, narrow=True)
def shape(call: NodeCall, x: Any) -> Any:
    whole = x.shape
    return from_sizes(np.asarray(whole[slice(call.get("start", 0), call.get("end", None))], object))


@rule("Size", narrow=True)
def size(_call: NodeCall, x: Any) -> Any:
    return from_sizes(np.asarray(product(x.shape), object))


@rule("Reshape", sizes=True, moves=True)
def reshape(call: NodeCall, x: Any, shape: Any) -> Any:
    wanted = list(sizes(shape, "the shape of Reshape"))
    if isinstance(x, SymbolicSizes):
        return from_sizes(x.array.reshape(wanted))
    if not call.get("allowzero", 0):
        wanted = [x.shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    return rg.reshape(x, tuple(wanted))


@rule("Flatten", moves=True)
def flatten(call: NodeCall, x: Any) -> Any:
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return rg.reshape(x, (product(x.shape[:axis]), product(x.shape[axis:])))


@rule("Transpose", moves=True)
def transpose(call: NodeCall, x: Any) -> Any:
    return rg.permute_dims(x, tuple(call.get("perm", range(x.ndim)[::-1])))


@rule("Squeeze", sizes=True, moves=True)
def squeeze(_call: NodeCall, x: Any, axes: Any = None) -> Any:
    if isinstance(x, SymbolicSizes):
        return from_sizes(x.array.reshape([d for d in x.shape if d != 1]))
    if axes is None:
        return rg.squeeze(x, tuple(i for i, d in enumerate(x.shape) if d == 1))
    return rg.squeeze(x, ints(axes, "the axes of Squeeze"))


@rule("Unsqueeze", sizes=True, moves=True)
def unsqueeze(_call: NodeCall, x: Any, axes: Any) -> Any:
    where = ints(axes, "the axes of Unsqueeze")
    if isinstance(x, SymbolicSizes):
        return from_sizes(np.expand_dims(x.array, where))
    rank = x.ndim + len(where)
    wanted = {axis + rank if axis < 0 else axis for axis in where}
    if len(wanted) != len(where):
        raise ShapeError(f"Unsqueeze with the axes {where}, of which two are one")
    if not all(0 <= axis < rank for axis in wanted):
        raise ShapeError(f"Unsqueeze with the axes {where}, of a result of {rank} axes")
    rest = iter(x.shape)
    return rg.reshape(x, tuple(1 if i in wanted else next(rest) for i in range(rank)))


@rule("Concat", sizes=True, moves=True)
def concat(call: NodeCall, *values: Any) -> Any:
    if any(isinstance(x, SymbolicSizes) for x in values):
        parts = [known_sizes(x) for x in values]
        if all(part is not None for part in parts):
            return from_sizes(np.concatenate(parts, call.get("axis")))
    return rg.concat([as_tensor(x) for x in values], axis=call.get("axis"))


@rule("Split", sizes=True, moves=True)
def split(call: NodeCall, x: Any, parts: Any = None) -> Any:
    """By sizes, or into as many equal parts as there are outputs; the last may be smaller."""
    axis = call.get("axis", 0)
    whole = x.shape[axis]
    if parts is None:
        count = call.get("num_outputs", len(call.outputs))
        if count != len(call.outputs):
            raise FormatError(f"Split into {count} parts with {len(call.outputs)} outputs")
        if isinstance(whole, int):
            one = -(-whole // count)
            lengths: Sequence[Any] = [min(one, whole - i * one) for i in range(count)]
        else:
            lengths = [whole // count] * count
    else:
        lengths = sizes(parts, "the sizes of Split")
    if isinstance(x, SymbolicSizes):
        ends = np.cumsum(np.asarray(lengths, np.int64))[:-1]
        return tuple(map(from_sizes, np.split(x.array, ends, axis)))
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    cut = (slice(None),) * (axis + x.ndim if axis < 0 else axis)
    return tuple(x[(*cut, slice(a, b))] for a, b in itertools.pairwise(starts))


@rule("Slice", sizes=True, moves=True)
def slice_(
    _call: NodeCall, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> Any:
    first, last = sizes(starts, "the starts of Slice"), sizes(ends, "the ends of Slice")
    rank = len(x.shape)
    where = range(len(first)) if axes is None else ints(axes, "the axes of Slice")
    by = [1] * len(first) if steps is None else ints(steps, "the steps of Slice")
    index: list[Any] = [slice(None)] * rank
    for a, b, axis, step in zip(first, last, where, by, strict=True):
        index[axis] = _range(a, b, step, x.shape[axis])
    if isinstance(x, SymbolicSizes):
        return from_sizes(x.array[tuple(index)])
    return x[tuple(index)]


def _range(start: Any, end: Any, step: int, length: Any) -> slice:
    """What Python calls it: an end far beyond is no end."""
    far = 2**31 - 1
    if step > 0:
        return slice(start, None if isinstance(end, int) and end >= far else end, step)
    if isinstance(start, int) and start >= far:
        start = None
    if isinstance(end, int) and (end <= -far or (isinstance(length, int) and end < -length)):
        end = None
    return slice(start, end, step)


@rule("Expand", sizes=True, moves=True)
def expand(_call: NodeCall, x: Any, shape: Any) -> Any:
    """Sizes of 1 are stretched on either side."""
    wanted = sizes(shape, "the shape of Expand")
    x = as_tensor(x)
    rank = max(len(wanted), x.ndim)
    mine, theirs = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - len(wanted)) + wanted
    return rg.broadcast_to(x, tuple(b if a == 1 else a for a, b in zip(mine, theirs, strict=True)))


@rule("Tile", sizes=True, moves=True)
def tile(_call: NodeCall, x: Any, repeats: Any) -> Any:
    return rg.tile(as_tensor(x), sizes(repeats, "the repeats of Tile"))


@rule("ConstantOfShape", sizes=True)
def constant_of_shape(call: NodeCall, shape: Any) -> Any:
    value = np.asarray(call.get("value", np.zeros(1, np.float32)))
    wanted = sizes(shape, "the shape of ConstantOfShape")
    return rg.full(wanted, value.reshape(()).item(), dtype=rg.asarray(value).dtype)


@rule("Range", sizes=True)
def range_(_call: NodeCall, start: Any, limit: Any, delta: Any) -> Any:
    ends = [known_sizes(x) for x in (start, limit, delta)]
    if any(isinstance(x, SymbolicSizes) for x in (start, limit)) and None not in ends:
        a, b, step = (x.item() for x in ends)
        return a + step * rg.arange(-((a - b) // step))
    dtype = as_tensor(start).dtype
    if None in ends:
        first, last, by = (rg.reshape(as_tensor(x), ()) for x in (start, limit, delta))
        count = last
        if ends[0] != 0 or ends[2] != 1:
            count = rg.astype(rg.ceil((last - first) / by), rg.int64)

        def outputs(size: Any) -> Any:
            return (rg.arange(size) * by + first).astype(dtype)

        return length_of(rg.astype(count, rg.int64), outputs, "the length of Range")
    a, b, step = (number(x, "the ends of Range") for x in (start, limit, delta))
    return (rg.arange(max(math.ceil((b - a) / step), 0)) * step + a).astype(dtype)


@rule("EyeLike")
def eye_like(call: NodeCall, x: Any) -> Any:
    number_ = call.get("dtype", None)
    dtype = x.dtype if number_ is None else dtype_of(number_, "the result of EyeLike")
    rows, columns = rg.arange(x.shape[0]), rg.arange(x.shape[1])
    return (columns[None, :] - rows[:, None] == call.get("k", 0)).astype(dtype)


@rule("Trilu")
def trilu(call: NodeCall, x: Any, k: Any = None) -> Any:
    diagonal = 0 if k is None else number(k, "the diagonal of Trilu")
    return (rg.triu if call.get("upper", 1) else rg.tril)(x, diagonal)


@rule("Pad")
def pad(call: NodeCall, x: Any, pads: Any, value: Any = None, axes: Any = None) -> Any:
    """Widths below 0 take elements away."""
    widths = ints(pads, "the widths of Pad")
    where = range(x.ndim) if axes is None else ints(axes, "the axes of Pad")
    both = [(0, 0)] * x.ndim
    for i, axis in enumerate(where):
        both[axis] = (widths[i], widths[i + len(where)])
    cut = tuple(slice(max(-a, 0), d - max(-b, 0)) for (a, b), d in zip(both, x.shape, strict=True))
    more = [(max(a, 0), max(b, 0)) for a, b in both]
    mode = call.get("mode", "constant")
    x = x[cut] if any(a < 0 or b < 0 for a, b in both) else x
    if mode == "constant":
        fill = 0 if value is None else value
        return rg.pad(x, more, value=fill)
    return rg.pad(x, more, mode=mode)


@rule("DepthToSpace")
def depth_to_space(call: NodeCall, x: Any) -> Any:
    b, (n, c, h, w) = call.get("blocksize"), x.shape
    if call.get("mode", "DCR") == "DCR":
        parts = rg.permute_dims(rg.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = rg.permute_dims(rg.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return rg.reshape(parts, (n, c // (b * b), h * b, w * b))


@rule("SpaceToDepth")
def space_to_depth(call: NodeCall, x: Any) -> Any:
    b, (n, c, h, w) = call.get("blocksize"), x.shape
    parts = rg.reshape(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return rg.reshape(rg.permute_dims(parts, order), (n, c * b * b, h // b, w // b))


@rule("ReverseSequence")
def reverse_sequence(call: NodeCall, x: Any, lengths: Any) -> Any:
    """The first `lengths[b]` elements along the time axis, turned around, for each b."""
    time, batch = call.get("time_axis", 0), call.get("batch_axis", 1)
    steps = rg.arange(x.shape[time])[:, None]
    turned = rg.where(steps < lengths[None, :], lengths[None, :] - 1 - steps, steps)
    if time > batch:
        turned = turned.T
    turned = rg.reshape(turned, (*turned.shape, *(1,) * (x.ndim - 2)))
    return rg.take_along_axis(x, rg.broadcast_to(turned, x.shape), axis=time)


@rule("Compress")
def compress(call: NodeCall, x: Any, condition: Any) -> Any:
    axis = call.get("axis", None)
    x = rg.reshape(x, (-1,)) if axis is None else x

    def outputs(size: Any) -> Any:
        return rg.take(x, rg.nonzero(condition, size=size)[0], axis=axis or 0)

    return _of_those(condition, outputs, "the number of elements that Compress keeps")


@rule("NonZero")
def nonzero(_call: NodeCall, x: Any) -> Any:
    x = rg.reshape(x, (1,)) if x.ndim == 0 else x
    return _of_those(
        x,
        lambda size: rg.stack(rg.nonzero(x, size=size)),
        "the number of elements not 0 of NonZero",
    )


def _of_those(x: Any, outputs: Any, what: str) -> Any:
    """What is made from as many elements as are not zero."""
    if (found := known(x)) is not None:
        return outputs(int(np.count_nonzero(found)))
    raise UnknownSize(what, rg.count_nonzero(x), outputs)


@rule("Unique")
def unique(call: NodeCall, x: Any) -> Any:
    """In order, or as they come first."""
    found, axis = array(x, "the input of Unique"), call.get("axis", None)
    _, first, inverse, counts = np.unique(found, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not call.get("sorted", 1):
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, inverse, counts = first[order], rank[inverse], counts[order]
    values = rg.take(rg.reshape(x, (-1,)) if axis is None else x, first, axis=axis or 0)
    return (values, *(rg.asarray(y.astype(np.int64)) for y in (first, inverse, counts)))


@rule("CenterCropPad")
def center_crop_pad(call: NodeCall, x: Any, shape: Any) -> Any:
    wanted = ints(shape, "the shape of CenterCropPad")
    for axis, length in zip(call.get("axes", range(x.ndim)), wanted, strict=True):
        here = x.shape[axis]
        if length < here:
            start = (here - length) // 2
            index = [slice(None)] * x.ndim
            index[axis] = slice(start, start + length)
            x = x[tuple(index)]
        elif length > here:
            before = (length - here) // 2
            widths = [(0, 0)] * x.ndim
            widths[axis] = (before, length - here - before)
            x = rg.pad(x, widths)
    return x
