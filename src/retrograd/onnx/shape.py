"""Ops that move elements, leaves, and what sets of elements are read by: windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograd.ir import Dim, Node, Shape, int64
from retrograd.onnx.writer import CHOSEN, PADDED, OnnxWriter, rule
from retrograd.ops.assume import Assume
from retrograd.ops.identity import Alias, Item, StopGradient
from retrograd.ops.leaf import Constant, Iota, SizeOf
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.ops.shape import (
    Concat,
    Expand,
    Flip,
    Pad,
    Permute,
    Reshape,
    Slice,
    SliceSet,
    gaps,
)
from retrograd.ops.windows import Windows

LAST = np.iinfo(np.int64).min  # where a slice that goes backwards ends


@rule(StopGradient, Alias, RegionIn, RegionOut, Keep, After, Assume)
def same(w: OnnxWriter, node: Node, names: list[str]) -> str:
    return names[0]


@rule(Item)
def item(w: OnnxWriter, node: Node, names: list[str]) -> str:
    results = w.values[node.inputs[0]]
    return results[node.attrs["index"]]


@rule(Constant)
def constant(w: OnnxWriter, node: Node, names: list[str]) -> str:
    value, shape = node.attrs["value"], node.shape
    w.code(node.dtype)
    if value.shape == shape:
        return w.constant(value)
    return str(w.emit("Expand", w.constant(value), w.shape(shape)))


@rule(Iota)
def iota(w: OnnxWriter, node: Node, names: list[str]) -> str:
    shape, axis = node.shape, node.attrs["axis"]
    counter = w.cast(w.counter(shape[axis]), int64, node.dtype)
    return expanded(w, counter, shape, [i for i in range(len(shape)) if i != axis])


@rule(SizeOf)
def size_of(w: OnnxWriter, node: Node, names: list[str]) -> str:
    return w.cast(w.scalar(node.attrs["size"]), int64, node.dtype)


def expanded(w: OnnxWriter, x: str, shape: Shape, axes: Sequence[int]) -> str:
    """Repeated along new axes."""
    if axes:
        x = w.emit("Unsqueeze", x, w.ints(axes))
    return str(w.emit("Expand", x, w.shape(shape)))


@rule(Expand)
def expand(w: OnnxWriter, node: Node, names: list[str]) -> str:
    return expanded(w, names[0], node.shape, node.attrs["axes"])


@rule(Reshape)
def reshape(w: OnnxWriter, node: Node, names: list[str]) -> str:
    return w.reshape(names[0], node.shape)


@rule(Permute)
def permute(w: OnnxWriter, node: Node, names: list[str]) -> str:
    return w.transpose(names[0], node.attrs["perm"])


@rule(Slice)
def slice_(w: OnnxWriter, node: Node, names: list[str]) -> str:
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    stops = [a + n * s for a, n, s in zip(starts, node.shape, steps, strict=True)]
    whole = zip(starts, stops, steps, node.inputs[0].shape, strict=True)
    axes = [i for i, (a, b, s, d) in enumerate(whole) if (a, b, s) != (0, d, 1)]
    if not axes:
        return names[0]
    picked = [[v[i] for i in axes] for v in (starts, stops, steps)]
    return w.slice(names[0], tuple(picked[0]), tuple(picked[1]), axes, picked[2])


@rule(Flip)
def flip(w: OnnxWriter, node: Node, names: list[str]) -> str:
    axes = node.attrs["axes"]
    if not axes:
        return names[0]
    return w.slice(names[0], (-1,) * len(axes), (LAST,) * len(axes), axes, [-1] * len(axes))


@rule(Concat)
def concat(w: OnnxWriter, node: Node, names: list[str]) -> str:
    return str(w.emit("Concat", *names, axis=node.attrs["axis"]))


@rule(Pad)
def pad(w: OnnxWriter, node: Node, names: list[str]) -> str:
    a, shape = node.attrs, node.inputs[0].shape
    dtype = node.dtype
    via = PADDED.get(dtype, dtype)
    x, value = (w.cast(name, dtype, via) for name in names)
    return w.cast(framed(w, x, value, shape, a["low"], a["high"], a["interior"]), via, dtype)


@rule(SliceSet)
def slice_set(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """What is there, and the value where a frame around it is not."""
    (x, value), a = node.inputs, node.attrs
    places = zip(x.shape, a["starts"], value.shape, a["steps"], strict=True)
    high = tuple(d - lo - n - gaps(n) * (s - 1) for d, lo, n, s in places)
    around = value.shape, a["starts"], high, tuple(s - 1 for s in a["steps"])
    inside = w.emit("Expand", w.constant(np.True_), w.shape(value.shape))
    inside = framed(w, inside, w.constant(np.False_), *around)
    via = CHOSEN.get(node.dtype, node.dtype)
    under, above = (w.cast(name, node.dtype, via) for name in names)
    zero = w.constant(np.zeros((), via.dtype))
    y = w.emit("Where", inside, framed(w, above, zero, *around), under)
    return w.cast(y, via, node.dtype)


def framed(
    w: OnnxWriter,
    x: str,
    value: str,
    shape: Shape,
    low: Shape,
    high: Shape,
    interior: Sequence[int],
) -> str:
    """With so many copies of a scalar around, and between, the elements along each axis; negative
    numbers around take elements away."""
    sizes = list(shape)
    for axis, gap in enumerate(interior):
        if gap:
            x, sizes[axis] = _spread(w, x, value, sizes, axis, gap)
    more = [_positive(lo) for lo in low], [_positive(hi) for hi in high]
    if any(n != 0 for n in (*more[0], *more[1])):
        x = w.emit("Pad", x, w.shape((*more[0], *more[1])), value)
    less = [(i, lo, hi) for i, (lo, hi) in enumerate(zip(low, high, strict=True))
            if _positive(lo) != lo or _positive(hi) != hi]  # fmt: skip
    if not less:
        return x
    starts = tuple(_positive(-lo) for _, lo, _ in less)
    stops = tuple(starts[k] + sizes[i] + lo + hi for k, (i, lo, hi) in enumerate(less))
    return w.slice(x, starts, stops, [i for i, *_ in less], [1] * len(less))


def _positive(n: Dim | int) -> Dim | int:
    """`max(n, 0)`, for sizes too, which are taken to be no less than zero."""
    return n if isinstance(n, Dim) else max(n, 0)


def _spread(
    w: OnnxWriter, x: str, value: str, sizes: Sequence[Dim | int], axis: int, gap: int
) -> tuple[str, Dim | int]:
    """Copies of a scalar between the elements of an axis: a new axis behind it is padded, and the
    copies behind the last element are cut off."""
    n, rank = sizes[axis], len(sizes)
    x = w.emit("Unsqueeze", x, w.ints([axis + 1]))
    x = w.emit(
        "Pad", x, w.ints([0] * (rank + 1) + [gap * (i == axis + 1) for i in range(rank + 1)]), value
    )
    x = w.reshape(x, (*sizes[:axis], n * (gap + 1), *sizes[axis + 1 :]))
    full = n - (2 * n) // (n + 1) if isinstance(n, Dim) else max(n - 1, 0)  # gaps between elements
    size = n + full * gap
    return w.slice(x, (0,), (size,), [axis], [1]), size


@rule(Windows)
def windows(w: OnnxWriter, node: Node, names: list[str]) -> str:
    a, x = node.attrs, node.inputs[0]
    lead = x.type.rank - len(a["sizes"])
    return windows_of(w, names[0], node.shape[lead:], a["strides"], a["dilations"], lead)


def windows_of(
    w: OnnxWriter, x: str, sizes: Shape, strides: Sequence[int], dilations: Sequence[int], lead: int
) -> str:
    """Windows over the axes from `lead` on; `sizes` are how many there are, then how large."""
    rank = len(strides)
    for i in range(rank):  # [..., O, K] take the place of axis i, from the last one on
        axis = rank - 1 - i
        at = places(w, sizes[axis], sizes[rank + axis], strides[axis], dilations[axis])
        x = w.emit("Gather", x, at, axis=lead + axis)
    pairs = [lead + 2 * i for i in range(rank)], [lead + 2 * i + 1 for i in range(rank)]
    return w.transpose(x, [*range(lead), *pairs[0], *pairs[1]])


def places(w: OnnxWriter, count: Dim | int, size: Dim | int, stride: int, dilation: int) -> str:
    """`o * stride + k * dilation` as a matrix: what each window along an axis reads."""
    outer = w.emit("Mul", w.counter(count), w.constant(np.int64(stride)))
    inner = w.emit("Mul", w.counter(size), w.constant(np.int64(dilation)))
    return str(w.emit("Add", w.emit("Unsqueeze", outer, w.ints([1])), inner))
