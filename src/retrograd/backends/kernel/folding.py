"""Overlap-add, the transpose of sliding windows, in ops that have a loop nest of their own.

Windows that do not overlap are tiles: a rearrangement. Small windows one apart are unrolled: the
result is the sum of what each place of the window contributes, moved by that place, which
vectorises along rows. Anything else is scattered.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.backends.kernel.buffer import accumulator_of
from retrograd.backends.kernel.contraction import Store
from retrograd.backends.kernel.picking import picked
from retrograd.backends.kernel.windows import framed, reordered, typed
from retrograd.ir import Dim, Node, Shape, TensorType, full, int64, product
from retrograd.ops.elementwise import cast
from retrograd.ops.index import ScatterAdd
from retrograd.ops.leaf import Iota, SizeOf
from retrograd.ops.shape import expand, permute, reshape
from retrograd.ops.windows import Fold, span

ADDED = 25  # elements of the largest window that is unrolled


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
        parts = [picked(x, inner, place, known) for place in _every(sizes)]
        return added(parts, sizes, shape, dilations)
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
    return isinstance(size, int) and size <= ADDED and all(s == 1 for s in strides)


def added(parts: Sequence[Node], sizes: Shape, shape: Shape, dilations: Sequence[int]) -> Node:
    """The sum of what each place of the windows contributes, `[..., *O]`, moved to its place in
    `[..., *shape]`. Windows are one apart."""
    wide = accumulator_of(parts[0].dtype)
    at = parts[0].type.rank - len(shape)
    total = None
    for part, place in zip(parts, _every(sizes), strict=True):
        low = tuple(i * gap for i, gap in zip(place, dilations, strict=True))
        outs = part.shape[at:]
        high = tuple(d - n - a for d, n, a in zip(shape, outs, low, strict=True))
        moved = cast(framed(part, low, high, (1,) * len(shape)), wide)
        total = moved if total is None else total + moved
    assert total is not None
    return Store()(cast(total, parts[0].dtype))  # too much to compute again for each reader


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
