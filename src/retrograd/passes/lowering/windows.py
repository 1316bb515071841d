"""Sliding windows, overlap-add and pooling in ops that have a loop nest of their own.

A window of few elements is unrolled: each of its places is a strided slice, and what is done with
them is elementwise, so that it fuses and vectorises along the rows of the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.ir import Dim, Node, Op, Shape, TensorType, Trait, bool_, full, product, provenance
from retrograd.ops.elementwise import bitwise_and, bitwise_not, bitwise_or, cast, eq, ne, select
from retrograd.ops.elementwise import max as maximum
from retrograd.ops.index import Scatter
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.numerics.summation import accumulator_of
from retrograd.ops.pool import MaxPool, MaxPoolIndex, Pooling, least
from retrograd.ops.reduce import ArgMax, ReduceMax, ReduceSum
from retrograd.ops.shape import Pad, Permute, Slice, expand, permute, reshape
from retrograd.ops.windows import Windows, count, full_size, span
from retrograd.passes.lowering.contraction import Materialize
from retrograd.passes.lowering.rules import lowers

UNROLLED = 36  # elements of the largest window that is unrolled


def typed(op: Op, inputs: Sequence[Node], type: TensorType) -> Node:
    """A node of a type that is known to be right, in terms of sizes that inference cannot see."""
    return Node(op, tuple(inputs), type, *provenance())


def kept(x: Node, known: dict[Any, Node]) -> Node:
    """x in memory, stored once for all that ask; permutations of it stay views."""
    if isinstance(x.prim, Permute):
        return permute(kept(x.inputs[0], known), x.attrs["perm"])
    if Trait.INPUT in x.prim.traits or isinstance(x.prim, Materialize | DotGeneral | Scatter):
        return x
    found = known.get(("kept", x))
    if found is None:
        found = known["kept", x] = Materialize()(x)
    return found


def reordered(x: Node, perm: Sequence[int]) -> Node:
    """A permutation of x, one only where x is one already."""
    if isinstance(x.prim, Permute):
        return permute(x.inputs[0], tuple(x.attrs["perm"][p] for p in perm))
    return permute(x, perm)


def framed(x: Node, low: Shape, high: Shape, dilation: Sequence[int], value: Any = 0) -> Node:
    """x with `value` between and around the elements of its last axes; x itself where there is
    nothing to do. Widths that are known to be negative cut off; others may turn out negative."""
    lead = (0,) * (x.type.rank - len(low))
    gaps = tuple(d - 1 for d in dilation)
    more = [tuple(w if isinstance(w, Dim) else max(w, 0) for w in ws) for ws in (low, high)]
    less = [tuple(0 if isinstance(w, Dim) else max(-w, 0) for w in ws) for ws in (low, high)]
    start = len(lead)
    if any(isinstance(w, Dim) or w for w in (*more[0], *more[1], *gaps)):
        sizes = [full_size(*a) for a in zip(x.shape[start:], *more, dilation, strict=True)]
        frame = Pad((*lead, *more[0]), (*lead, *more[1]), (*lead, *gaps))
        fill = full(value, TensorType(x.dtype, ()))
        x = typed(frame, (x, fill), x.type.with_shape((*x.shape[:start], *sizes)))
    if any((*less[0], *less[1])):
        ends = [d - b for d, b in zip(x.shape[start:], less[1], strict=True)]
        sizes = [e - a for e, a in zip(ends, less[0], strict=True)]
        op = Slice((*lead, *less[0]), (*x.shape[:start], *ends), (1,) * x.type.rank)
        x = typed(op, (x,), x.type.with_shape((*x.shape[:start], *sizes)))
    return x


def whole(shape: Shape, sizes: Shape, strides: Sequence[int]) -> bool:
    """Whether windows of these sizes are the axes themselves: windows of one element next to each
    other, or one window that covers everything."""
    each = all(k == 1 and s == 1 for k, s in zip(sizes, strides, strict=True))
    return each or tuple(sizes) == tuple(shape)


def windows_over(x: Node, sizes: Shape, strides: Sequence[int], dilations: Sequence[int]) -> Node:
    """The windows over the last axes of x; a reshape where that is all there is to it."""
    at = x.type.rank - len(sizes)
    axes = x.shape[at:]
    outs = tuple(
        count(d, span(k, gap), stride)
        for d, k, stride, gap in zip(axes, sizes, strides, dilations, strict=True)
    )
    shape = (*x.shape[:at], *outs, *sizes)
    if whole(axes, sizes, strides) and all(
        gap == 1 or k == 1 for k, gap in zip(sizes, dilations, strict=True)
    ):
        return reshape(x, shape)
    op = Windows(tuple(sizes), tuple(strides), tuple(dilations))
    return typed(op, (x,), x.type.with_shape(shape))


@lowers(Windows)
def sliding(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """`windows` over something in memory."""
    op = node.prim
    assert isinstance(op, Windows)
    (x,) = inputs
    y = windows_over(x, op.sizes, op.strides, op.dilations)
    return y.with_inputs((kept(x, known),)) if y.prim == op else y


def places(
    x: Node, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int], outs: Shape
) -> Iterator[Node]:
    """For each place in the window, in row-major order, what all windows have there."""
    lead = x.type.rank - len(sizes)
    for place in itertools.product(*(range(k) for k in sizes)):
        starts = [i * gap for i, gap in zip(place, dilations, strict=True)]
        stops = [a + (n - 1) * s + 1 for a, n, s in zip(starts, outs, strides, strict=True)]
        op = Slice((*(0,) * lead, *starts), (*x.shape[:lead], *stops), (*(1,) * lead, *strides))
        yield typed(op, (x,), x.type.with_shape((*x.shape[:lead], *outs)))


@lowers(ReduceSum)
def sums(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """The sum of each of the windows that go in, if they are small."""
    (x,) = inputs
    if isinstance(x.prim, Windows):
        op = x.prim
        assert isinstance(op, Windows)
        rank = len(op.sizes)
        inner = tuple(range(x.type.rank - rank, x.type.rank))
        if node.attrs["axes"] == inner and _small(op.sizes):
            outs = x.shape[x.type.rank - 2 * rank : x.type.rank - rank]
            wide = accumulator_of(x.dtype)
            parts = places(x.inputs[0], op.sizes, op.strides, op.dilations, outs)  # type: ignore[arg-type]
            total = cast(next(parts), wide)
            for part in parts:
                total = total + cast(part, wide)
            return cast(total, x.dtype)
    return node if x is node.inputs[0] else node.with_inputs(inputs)


def _small(sizes: Shape) -> bool:
    size = product(sizes)
    return isinstance(size, int) and size <= UNROLLED


# -- maxima --------------------------------------------------------------------------------------
def _frame(op: Pooling, x: Node, value: Any) -> Node:
    """x with its padding, in memory if it has any: what is read many times without conditions."""
    y = framed(x, op.low, op.high, (1,) * op.rank, value)
    return y if y is x else Materialize()(y)


@lowers(MaxPool)
def max_pool(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """The maximum of each window."""
    op = node.prim
    assert isinstance(op, MaxPool)
    (x,) = inputs
    x = _frame(op, x, least(x.dtype))
    if not _small(op.sizes):
        y = windows_over(kept(x, known), op.sizes, op.strides, op.dilations)
        return ReduceMax(tuple(range(y.type.rank - op.rank, y.type.rank)))(y)
    parts = places(x, op.sizes, op.strides, op.dilations, node.shape[node.type.rank - op.rank :])
    top = next(parts)
    for part in parts:
        top = maximum(top, part)
    return top


@lowers(MaxPoolIndex)
def max_pool_index(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Where the maximum of each window is: the first of equal ones inside of x."""
    op = node.prim
    assert isinstance(op, MaxPoolIndex)
    (x,) = inputs
    at = x.type.rank - op.rank
    ones = full(True, TensorType(bool_, x.shape[at:]))
    inside = _frame(op, ones, False)
    padded = _frame(op, x, least(x.dtype))
    if not _small(op.sizes):
        return _position(op, kept(padded, known), None if inside is ones else inside, node.type)
    outs = node.shape[at:]
    values = places(padded, op.sizes, op.strides, op.dilations, outs)
    valid: Iterator[Node | None] = itertools.repeat(None)
    if inside is not ones:
        spread = (expand(v, node.shape, tuple(range(at)))
                  for v in places(inside, op.sizes, op.strides, op.dilations, outs))  # fmt: skip
        valid = spread
    best, found, index = next(values), next(valid), full(0, node.type)
    for k, (value, here) in enumerate(zip(values, valid, strict=False), 1):
        better: Node = value > best
        if x.dtype.is_float:
            better = bitwise_or(better, bitwise_and(ne(value, value), eq(best, best)))
        if here is not None and found is not None:
            better = bitwise_and(here, bitwise_or(better, bitwise_not(found)))
            found = bitwise_or(found, here)
        best = select(better, value, best)
        index = select(better, full(k, node.type), index)
    return Materialize()(index)  # a gradient reads it once for each place in the window


def _position(op: MaxPoolIndex, x: Node, inside: Node | None, type: TensorType) -> Node:
    """The position in a large window, which is searched."""

    def flat(y: Node) -> Node:
        windows = windows_over(y, op.sizes, op.strides, op.dilations)
        lead = windows.shape[: windows.type.rank - op.rank]
        return reshape(windows, (*lead, math.prod(op.sizes)))

    values = flat(x)
    last = values.type.rank - 1
    if inside is None:
        return cast(ArgMax(last)(values), type.dtype)
    top = expand(ReduceMax((last,))(values), values.shape, (last,))
    hits = bitwise_or(eq(values, top), ne(values, values))
    mask = flat(inside)
    mask = expand(mask, values.shape, tuple(range(values.type.rank - mask.type.rank)))
    return cast(ArgMax(last)(bitwise_and(hits, mask)), type.dtype)
