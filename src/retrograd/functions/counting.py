"""How often elements occur, and elements repeated as often as asked for."""

from __future__ import annotations

import math
from typing import Any

from retrograd.coming_from.keywords import respells
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    normal_axis,
    one_axis,
    promote_to_float,
)
from retrograd.functions.searching import flat, known_size, number_of, vector
from retrograd.ir import Dim, Node, TensorType, as_shape, bool_, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import Iota
from retrograd.ops.reduce import ReduceMax, ReduceMin, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import expand, pad, reshape, slice_axis
from retrograd.ops.sort import SearchSorted
from retrograd.tensor_type import Tensor


@respells
def bincount(
    x: ArrayLike,
    /,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
) -> Tensor:
    """How often each number from 0 on occurs, int64; with `weights`, the sum of these.

    The result has `length` elements or, without it, as many as the greatest number asks for, and at
    least `minlength`. A number outside of it, or a negative one, is an `IndexRangeError`.

    x of any shape, and `weights` of the same, give `[n]`. `DTypeError` for numbers that are not
    integers, `ShapeError` for weights of another shape.

    >>> import retrograd as rg
    >>> rg.bincount([0, 2, 2]).tolist()
    [1, 0, 2]
    """
    if length is None:
        length = max(known_size(_most(x), "bincount", "length") + 1, minlength)
    return _counted(x, weights, length)


@op_function
def _most(x: ArrayLike, /) -> Any:
    x = el.cast(flat(_whole(x, "bincount")), int64)
    # -1 where there is nothing to count.
    from_none = pad(x, (1,), (0,), value=-1)
    return ReduceMax((0,))(from_none)


def _whole(x: Any, what: str) -> Node:
    node = as_node(x)
    if not node.dtype.is_integer:
        raise DTypeError(f"{what} counts integers, not {node.dtype}")
    return node


@op_function
def _counted(x: ArrayLike, weights: ArrayLike | None, length: Any, /) -> Any:
    at = el.cast(flat(_whole(x, "bincount")), int64)
    below = el.lt(at, full(0, at.type))
    at = el.select(below, el.sub(at, number_of(length, at)), at)  # out of range, not from the back
    if weights is None:
        return ScatterAdd(0)(vector(length), at, full(1, at.type))
    w = flat(as_node(weights))
    if w.shape != at.shape:
        raise ShapeError(f"bincount of {at.shape} numbers with {w.shape} weights")
    w = el.cast(w, int64) if w.dtype is bool_ else w
    return ScatterAdd(0)(full(0, w.type.with_shape((length,))), at, w)


@respells
def histogram(
    x: ArrayLike,
    /,
    bins: int | ArrayLike = 10,
    range: tuple[float, float] | None = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """How many elements fall into each bin, int64, and the edges of the bins.

    `bins` are so many of equal width over `range`, by default from the least to the greatest
    element, or ascending edges. A bin is half open, the last one closed; what is outside is not
    counted, NaN neither. With `weights` their sums; with `density` divided by the total and by the
    widths.

    x of any shape gives `[bins]` and `[bins + 1]`. `ShapeError` for a number of bins below 1 or a
    range that does not ascend.

    >>> import retrograd as rg
    >>> rg.histogram([1.0, 2.0, 2.5], bins=2, range=(0.0, 4.0))[0].tolist()
    [1, 2]
    """
    counts, edges = _histogram(x, bins, range, weights, density)
    return counts, edges


@op_function_of_several
def _histogram(
    x: ArrayLike, bins: ArrayLike, range: Any, weights: ArrayLike | None, density: bool, /
) -> tuple[Any, Any]:
    x = flat(as_node(x))
    x = promote_to_float(x)
    if isinstance(bins, int):
        edges = _edges(x, bins, range)
    else:
        edges, x = alike(bins, x)
    if edges.type.rank != 1 or edges.shape[0] == 1:
        raise ShapeError(f"histogram: edges are a vector of two or more, not {edges.type}")
    n = edges.shape[0] - 1
    at = SearchSorted(True)(edges, x)
    last = expand(reshape(slice_axis(edges, 0, n, n + 1), ()), x.shape, (0,))
    at = el.select(el.eq(x, last), number_of(n, at), at)
    outside = el.bitwise_or(el.lt(at, full(1, at.type)), el.gt(at, number_of(n, at)))
    slot = el.select(outside, number_of(n, at), at - 1)
    w = full(1, at.type) if weights is None else flat(as_node(weights))
    if w.shape != x.shape:
        raise ShapeError(f"histogram of {x.shape} elements with {w.shape} weights")
    counts = slice_axis(ScatterAdd(0)(full(0, w.type.with_shape((n + 1,))), slot, w), 0, 0, n)
    if not density:
        return counts, edges
    widths = slice_axis(edges, 0, 1, n + 1) - slice_axis(edges, 0, 0, n)
    counts = el.cast(counts, edges.dtype)
    total = expand(ReduceSum((0,))(counts), counts.shape, (0,))
    return el.div(el.div(counts, widths), total), edges


def _edges(x: Node, bins: int, range: Any) -> Node:
    """The edges of so many bins of equal width."""
    if bins < 1:
        raise ShapeError(f"histogram with {bins} bins")
    scalar = TensorType(x.dtype, ())
    if range is not None:
        low, high = map(float, range)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ShapeError(f"histogram over the range {range}, which is none")
        ends = [full(low, scalar), full(high, scalar)]
    elif x.type.size == 0:
        ends = [full(0, scalar), full(1, scalar)]
    else:
        ends = [ReduceMin((0,))(x), ReduceMax((0,))(x)]
    half = full(0.5, scalar)
    alike = el.eq(*ends)
    low_end = el.select(alike, ends[0] - half, ends[0])
    high_end = el.select(alike, ends[1] + half, ends[1])
    count = Iota((bins + 1,), 0, x.dtype)()
    a, b = (expand(end, (bins + 1,), (0,)) for end in (low_end, high_end))
    inner = el.add(a, el.mul(el.sub(b, a), count / bins))
    is_last = el.eq(count, full(bins, count.type))
    return el.select(is_last, b, inner)


# -- repetition ------------------------------------------------------------------------------------
@respells
def repeat(
    x: ArrayLike,
    repeats: int | ArrayLike,
    /,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    dim: int | None = None,
) -> Tensor:
    """Each element repeated along an axis; None flattens first. `repeats` is a number for all, or
    one for each place along the axis.

    The size of the result is the sum of `repeats`; where these are traced, `total_repeat_length`
    has to say it. Of a longer one, the last element fills the rest.

    `[..., n, ...]` gives `[..., sum(repeats), ...]`. `ShapeError` where the number of `repeats` is
    not the size of the axis or one is negative, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.repeat([1, 2], [2, 1]).tolist()
    [1, 1, 2]
    """
    axis = one_axis(axis, dim)
    if isinstance(repeats, bool | int | float | Dim):
        return _repeated(x, repeats, axis)
    size = total_repeat_length
    if size is None:
        size = known_size(_total(x, repeats, axis), "repeat", "total_repeat_length")
    return _spread(x, repeats, axis, size)


def _rows(x: Any, axis: int | None) -> tuple[Node, int]:
    x = as_node(x)
    if axis is None:
        x, axis = flat(x), 0
    return x, normal_axis(axis, x.type.rank, "repeat")


@op_function
def _repeated(x: ArrayLike, count: Any, axis: int | None, /) -> Any:
    x, at = _rows(x, axis)
    (count,) = as_shape((count,))
    wide = expand(x, (*x.shape[: at + 1], count, *x.shape[at + 1 :]), (at + 1,))
    return reshape(wide, (*x.shape[:at], x.shape[at] * count, *x.shape[at + 1 :]))


def _counts(x: Node, repeats: Any, axis: int) -> Node:
    """How often each place along an axis is repeated."""
    counts, n = el.cast(_whole(repeats, "repeat"), int64), x.shape[axis]
    if counts.type.size == 1:
        counts = expand(reshape(counts, ()), (n,), (0,))
    if counts.shape != (n,):
        raise ShapeError(f"repeat of {n} places by {counts.shape} numbers")
    return counts


@op_function
def _total(x: ArrayLike, repeats: ArrayLike, axis: int | None, /) -> Any:
    rows, at = _rows(x, axis)
    counts = _counts(rows, repeats, at)
    # A negative number would not be noticed in a sum: it makes the size negative.
    bad = ReduceSum((0,))(el.cast(el.lt(counts, full(0, counts.type)), int64))
    total = ReduceSum((0,))(counts)
    return el.select(el.gt(bad, full(0, bad.type)), full(-1, total.type), total)


@op_function
def _spread(x: ArrayLike, repeats: ArrayLike, axis: int | None, size: Any, /) -> Any:
    x, at = _rows(x, axis)
    n, counts = x.shape[at], _counts(x, repeats, at)
    (size,) = as_shape((size,))
    if n == 0:
        return x
    ends = CumSum(0)(counts)
    place = SearchSorted(True)(ends, Iota((size,), 0, int64)())
    return Gather(at)(x, el.min(place, number_of(n - 1, place)))
