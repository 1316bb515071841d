"""Overlap-add, the transpose of sliding windows, in ops that have a loop nest of their own.

Windows that do not overlap are tiles: a rearrangement. Small windows are unrolled: the result is
the sum of what each place of the window contributes, moved by that place, which vectorises along
rows; where windows are `s` apart, places that leave the same rest when divided by `s` make every
`s`th element. Anything else is scattered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.ir import Dim, Node, Shape, TensorType, full, int64, product
from retrograd.ops.elementwise import cast
from retrograd.ops.index import ScatterAdd
from retrograd.ops.leaf import Iota, SizeOf
from retrograd.ops.numerics.summation import accumulator_of
from retrograd.ops.shape import Concat, expand, permute, reshape
from retrograd.ops.windows import Fold, span
from retrograd.passes.lowering.contraction import Materialize
from retrograd.passes.lowering.rules import lowers
from retrograd.passes.lowering.slice_sinking import sink_slice
from retrograd.passes.lowering.windows import framed, reordered, typed

ADDED = 25  # elements of the largest window that is unrolled


@lowers(Fold)
def folding(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """`fold` as a rearrangement or as a scatter."""
    op = node.prim
    assert isinstance(op, Fold)
    return folded(inputs[0], op.shape, op.strides, op.dilations, known)


def folded(
    x: Node,
    shape: Shape,
    strides: Sequence[int],
    dilations: Sequence[int],
    known: dict[Any, Node],
) -> Node:
    """The overlap-add of windows `[..., *O, *K]` into axes of the given shape."""
    rank = len(shape)
    at = x.type.rank - 2 * rank
    outs, sizes = x.shape[at : at + rank], x.shape[at + rank :]
    widths = [span(k, d) for k, d in zip(sizes, dilations, strict=True)]
    if all(isinstance(w, int) and w <= s for w, s in zip(widths, strides, strict=True)):
        return _tiled(x, shape, strides, dilations)
    if unrolls(sizes, strides):
        inner = tuple(range(at + rank, at + 2 * rank))
        parts = [sink_slice(x, inner, place, known) for place in _every(sizes)]
        return added(parts, sizes, shape, strides, dilations)
    # Rows of the result are the innermost loop: updates are ordered place by place.
    first = (*range(at), *range(at + rank, at + 2 * rank), *range(at, at + rank))
    wide = accumulator_of(x.dtype)
    index = _positions((*sizes, *outs), shape, (*dilations, *strides))
    zero = full(0, TensorType(wide, (*x.shape[:at], product(shape))))
    updates = cast(reordered(x, first), wide)
    y = typed(ScatterAdd(at), (zero, index, updates), zero.type)
    return cast(reshape(y, (*x.shape[:at], *shape)), x.dtype)


def unrolls(sizes: Shape, strides: Sequence[int]) -> bool:
    """Whether an overlap-add is best written as a sum over the places of a window."""
    size = product(sizes)
    return isinstance(size, int) and size <= ADDED and math.prod(strides) <= size


def added(
    parts: Sequence[Node],
    sizes: Shape,
    shape: Shape,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Node:
    """The sum of what each place of the windows contributes, `[..., *O]`, moved to its place in
    `[..., *shape]`. The part of place k belongs to `o * stride + k * dilation`, which is the
    element of number `rest` among the stride's at `o + k * dilation // stride`."""
    like = parts[0].type
    at = like.rank - len(shape)
    moves = [
        [divmod(i * gap, stride) for i, gap, stride in zip(place, dilations, strides, strict=True)]
        for place in _every(sizes)
    ]
    axes = zip(sizes, like.shape[at:], shape, strides, dilations, strict=True)
    lengths = tuple(
        d if stride == 1 else n + (span(k, gap) - 1) // stride for k, n, d, stride, gap in axes
    )
    found: dict[tuple[int, ...], Node] = {}
    for part, move in zip(parts, moves, strict=True):
        low = tuple(a for a, _ in move)
        high = tuple(d - n - a for d, n, a in zip(lengths, like.shape[at:], low, strict=True))
        moved = cast(framed(part, low, high, (1,) * len(shape)), accumulator_of(like.dtype))
        rest = tuple(r for _, r in move)
        found[rest] = found[rest] + moved if rest in found else moved
    nothing = full(0, TensorType(like.dtype, (*like.shape[:at], *lengths)))
    stored = {  # too much to compute again for each reader
        rest: Materialize()(cast(found[rest], like.dtype)) if rest in found else nothing
        for rest in _every(tuple(strides))
    }
    y = _interleaved(stored, strides)
    more = tuple(d - n for d, n in zip(shape, y.shape[at:], strict=True))
    return framed(y, (0,) * len(shape), more, (1,) * len(shape))


def _interleaved(parts: dict[tuple[int, ...], Node], strides: Sequence[int]) -> Node:
    """The array whose every `stride`th element along each of the last axes is of the part whose
    number they begin at."""
    if not strides:
        return parts[()]
    first, *others = strides
    rows = [
        _interleaved({rest[1:]: x for rest, x in parts.items() if rest[0] == r}, others)
        for r in range(first)
    ]
    if first == 1:
        return rows[0]
    shape = rows[0].shape
    axis = len(shape) - len(strides)
    wide = [reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :])) for x in rows]
    y = Materialize()(Concat(axis + 1)(*wide))
    return reshape(y, (*shape[:axis], shape[axis] * first, *shape[axis + 1 :]))


def _every(sizes: Shape) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(k) for k in sizes if isinstance(k, int)))


def _positions(domain: Shape, shape: Shape, steps: Sequence[int]) -> Node:
    """Where each element of `[*K, *O]` goes in the flat order of the shape."""
    total = full(0, TensorType(int64, domain))
    for axis, step in enumerate(steps):
        stride = product(shape[axis % len(shape) + 1 :]) * step
        if isinstance(stride, Dim):
            factor = expand(SizeOf(stride, int64)(), domain, tuple(range(len(domain))))
        else:
            factor = full(stride, total.type)
        own = Iota(domain, axis, int64)() * factor
        total = own if axis == 0 else total + own
    return total


def _tiled(x: Node, shape: Shape, strides: Sequence[int], dilations: Sequence[int]) -> Node:
    """Windows that do not overlap: each fills a tile of its own."""
    rank = len(shape)
    at = x.type.rank - 2 * rank
    spans = [span(k, d) for k, d in zip(x.shape[at + rank :], dilations, strict=True)]
    rest = tuple(s - w for s, w in zip(strides, spans, strict=True))
    x = framed(x, (0,) * rank, rest, dilations)
    order = [i for d in range(rank) for i in (at + d, at + rank + d)]
    x = permute(x, (*range(at), *order))
    sizes = tuple(x.shape[at + 2 * d] * x.shape[at + 2 * d + 1] for d in range(rank))
    x = reshape(x, (*x.shape[:at], *sizes))
    more = tuple(d - n for d, n in zip(shape, sizes, strict=True))
    return framed(x, (0,) * rank, more, (1,) * rank)
