"""Indexing by data, sorting and searching, and random bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograd.ir import (
    DType,
    Node,
    Shape,
    bool_,
    float32,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from retrograd.onnx.elementwise import OnnxNumbers, nan
from retrograd.onnx.shape import expanded, places
from retrograd.onnx.writer import OnnxWriter, rule
from retrograd.ops.index import Gather, RavelIndex, ScatterAdd
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.ops.windows import Fold


def _front(w: OnnxWriter, x: str, rank: int, shared: int, axis: int) -> str:
    """With the axis moved behind the shared ones."""
    rest = [i for i in range(shared, rank) if i != axis]
    return w.transpose(x, [*range(shared), axis, *rest])


@rule(Gather)
def gather(w: OnnxWriter, node: Node, names: list[str]) -> str:
    x, index = node.inputs
    axis, shared = node.attrs["axis"], node.attrs["shared"]
    at = w.cast(names[1], index.dtype, int64)
    if shared == 0:
        return str(w.emit("Gather", names[0], at, axis=axis))
    own = index.type.rank - shared
    moved = _front(w, names[0], x.type.rank, shared, axis)
    at = w.emit("Unsqueeze", at, w.ints([index.type.rank]))
    y = w.emit("GatherND", moved, at, batch_dims=shared)
    # What was read stands behind the shared axes; it belongs where the axis was.
    before = axis - shared
    behind = shared + own
    perm = [*range(shared), *range(behind, behind + before), *range(shared, behind)]
    perm += range(behind + before, node.type.rank)
    return w.transpose(y, perm)


@rule(RavelIndex)
def ravel_index(w: OnnxWriter, node: Node, names: list[str]) -> str:
    place: OnnxNumbers | None = None
    for name, x, size in zip(names, node.inputs, node.attrs["sizes"], strict=True):
        n = OnnxNumbers(w, w.emit("Squeeze", w.size(size)), int64)
        at = OnnxNumbers(w, name, x.dtype).cast(int64)
        at = at.below(0).where(at + n, at)
        place = at if place is None else place * n + at
    assert place is not None
    return place.name


@rule(ScatterAdd, ScatterSet, ScatterMul, ScatterMax, ScatterMin)
def scatter(w: OnnxWriter, node: Node, names: list[str]) -> str:
    combine = node.prim.combine  # type: ignore[attr-defined]
    kind = "none" if combine is None else combine.name
    x, index, _ = node.inputs
    axis, shared = node.attrs["axis"], node.attrs["shared"]
    dtype, wide = node.dtype, float32 if node.dtype.is_half else node.dtype
    at = w.cast(names[1], index.dtype, int64)
    y = scattered(
        w, kind, w.cast(names[0], dtype, wide), at,
        w.cast(names[2], dtype, wide), x.shape, index.shape, axis, shared,
    )  # fmt: skip
    return w.cast(y, wide, dtype)


def scattered(
    w: OnnxWriter, reduction: str, x: str, at: str, updates: str,
    shape: Shape, index: Shape, axis: int, shared: int,
) -> str:  # fmt: skip
    """Updates that meet what is there: `ScatterND` along the first axes."""
    rank, own = len(shape), len(index) - shared
    moved = _front(w, x, rank, shared, axis)
    if shared:
        grid = [
            expanded(w, w.counter(index[i]), index, [j for j in range(len(index)) if j != i])
            for i in range(shared)
        ]
        parts = [w.emit("Unsqueeze", p, w.ints([len(index)])) for p in (*grid, at)]
        at = w.emit("Concat", *parts, axis=-1)
    else:
        at = w.emit("Unsqueeze", at, w.ints([len(index)]))
    total = rank - 1 + own
    rest = [i for i in range(shared, total) if not axis <= i < axis + own]
    updates = w.transpose(updates, [*range(shared), *range(axis, axis + own), *rest])
    y = w.emit("ScatterND", moved, at, updates, reduction=reduction)
    back = [i for i in range(shared, rank) if i != axis]
    perm = [*range(shared), axis, *back]
    return w.transpose(y, [perm.index(i) for i in range(rank)])


@rule(Fold)
def fold(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """Axis by axis: windows of one axis are added up where they lie."""
    p, x = node.attrs, node.inputs[0]
    rank = len(p["shape"])
    lead = x.type.rank - 2 * rank
    dtype, wide = node.dtype, float32 if node.dtype.is_half else node.dtype
    value = w.cast(names[0], dtype, wide)
    pairs = [axis for i in range(rank) for axis in (lead + i, lead + rank + i)]
    value = w.transpose(value, [*range(lead), *pairs])
    sizes = list(x.shape[:lead]) + [x.shape[a] for a in pairs]
    zero = w.constant(np.zeros((), wide.dtype))
    for i in range(rank):
        axis = lead + i
        outs, size = sizes[axis], sizes[axis + 1]
        new = (*sizes[:axis], p["shape"][i], *sizes[axis + 2 :])
        at = places(w, outs, size, p["strides"][i], p["dilations"][i])
        start = w.emit("Expand", zero, w.shape(new))
        value = scattered(w, "add", start, at, value, new, (outs, size), axis, 0)
        sizes = list(new)
    return w.cast(value, wide, dtype)


def _along(x: OnnxNumbers, at: OnnxNumbers, axis: int, rank: int) -> OnnxNumbers:
    """The elements at given places of each row: the axis is moved to the end and back."""
    w = x.w
    perm = [*[i for i in range(rank) if i != axis], axis]
    back = [perm.index(i) for i in range(rank)]
    places = w.emit("Unsqueeze", w.transpose(at.name, perm), w.ints([rank]))
    y = w.emit("GatherND", w.transpose(x.name, perm), places, batch_dims=rank - 1)
    return OnnxNumbers(w, w.transpose(y, back), x.dtype)


def _order(w: OnnxWriter, x: OnnxNumbers, axis: int, size: str, largest: bool) -> OnnxNumbers:
    """The places of the elements in order; equal ones keep theirs."""
    _, at = w.emit("TopK", x.name, size, axis=axis, largest=int(largest), sorted=1, outputs=2)
    return OnnxNumbers(w, at, int64)


_SORTED = {bool_: uint8, uint16: int32, uint32: int64}  # engines sort few unsigned numbers


def sorted_places(
    w: OnnxWriter, x: OnnxNumbers, axis: int, rank: int, size: str, descending: bool
) -> OnnxNumbers:
    """As `sort` has it: NaN at the end in both directions, which a second pass brings there."""
    x = x.cast(_SORTED.get(x.dtype, float32 if x.dtype.is_half else x.dtype))
    if x.dtype is uint64:  # the bits of an int64, of which the first one is turned
        x = x.cast(int64).of("BitwiseXor", np.iinfo(np.int64).min)
    if x.dtype.kind == "float":
        spoiled = nan(x)
        first = _order(w, spoiled.where(0, x), axis, size, descending)
        flags = _along(spoiled.cast(int32), first, axis, rank)
        return _along(first, _order(w, flags, axis, size, False), axis, rank)
    return _order(w, x, axis, size, descending)


@rule(Sort, ArgSort)
def sort(w: OnnxWriter, node: Node, names: list[str]) -> str:
    x, axis = node.inputs[0], node.attrs["axis"]
    value = OnnxNumbers(w, names[0], x.dtype)
    size, rank = w.size(x.shape[axis]), x.type.rank
    at = sorted_places(w, value, axis, rank, size, node.attrs["descending"])
    if not isinstance(node.prim, ArgSort):
        return _along(value, at, axis, rank).name
    count = node.attrs["count"]
    return at.name if count == -1 else w.slice(at.name, (0,), (count,), [axis], [1])


@rule(SearchSorted)
def searchsorted(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """By counting, which asks every element."""
    row, values = node.inputs
    shared, own = node.attrs["shared"], values.type.rank - node.attrs["shared"]
    dtype: DType = row.dtype
    a, b = (OnnxNumbers(w, n, dtype) for n in names)
    if dtype is bool_:
        a, b = a.cast(uint8), b.cast(uint8)
    if dtype.is_half:
        a, b = a.cast(float32), b.cast(float32)
    axes: Sequence[int] = range(shared, shared + own)
    if own:
        a = OnnxNumbers(w, w.emit("Unsqueeze", a.name, w.ints(axes)), a.dtype)
    b = OnnxNumbers(w, w.emit("Unsqueeze", b.name, w.ints([values.type.rank])), b.dtype)
    before = ~b.below(a) if node.attrs["right"] else a.below(b)
    if dtype.is_float:
        last = nan(b) if node.attrs["right"] else nan(b) & ~nan(a)
        before = (before & ~nan(a) & ~nan(b)) | last
    return str(w.emit("ReduceSum", before.cast(int64).name, w.ints([-1]), keepdims=0))


@rule(RandomBits)
def random_bits(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """Threefry-2x32-20 in int64, of which the low 32 bits count: few engines add uint32."""
    shape: Shape = node.attrs["shape"]
    key, lead = node.inputs[0], node.inputs[0].type.rank - 1
    mask = 2**32 - 1
    keys = OnnxNumbers(w, w.cast(names[0], uint32, int64), int64)
    behind = w.ints(range(lead, lead + len(shape)))

    def half(i: int) -> OnnxNumbers:
        k = keys.of("Gather", np.int64(i), axis=lead)
        return OnnxNumbers(w, w.emit("Unsqueeze", k.name, behind), int64) if shape else k

    def low(x: OnnxNumbers) -> OnnxNumbers:
        return x.of("BitwiseAnd", mask)

    k0, k1 = half(0), half(1)
    ks = (k0, k1, k0.of("BitwiseXor", k1).of("BitwiseXor", 0x1BD11BDA))
    size = w.constant(np.int64(1))
    for d in shape:
        size = w.emit("Mul", size, w.scalar(d))
    zero, one = w.constant(np.int64(0)), w.constant(np.int64(1))
    count = OnnxNumbers(w, w.reshape(w.emit("Range", zero, size, one), shape), int64)
    x0, x1 = low(low(count) + k0), low(count.of("Div", 2**32) + k1)
    for i in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            x0 = low(x0 + x1)
            turned = low(x1 * 2**r) + x1.of("Div", 2 ** (32 - r))
            x1 = turned.of("BitwiseXor", x0)
        x0 = low(x0 + ks[(i + 1) % 3])
        x1 = low(x1 + ks[(i + 2) % 3] + (i + 1))
    wide = w.emit("Expand", x0.name, w.shape((*key.shape[:-1], *shape)))
    return w.cast(wide, int64, uint32)
