"""Sorting, and what follows from it: the greatest, the median, quantiles, places in sorted rows."""

from __future__ import annotations

from typing import Any, NamedTuple, overload

from retrograd.coming_from.keywords import respells
from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    integer,
    normal_axes,
    normal_axis,
    one_axis,
    promote_to_float,
)
from retrograd.functions.reductions import ValuesAndIndices
from retrograd.ir import Dim, Node, TensorType, float64, full, int32, int64, product
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather, gather_along
from retrograd.ops.leaf import SizeOf, constant
from retrograd.ops.shape import Flip, expand, permute, reshape, slice_axis
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.tensor_type import Tensor

Axis = int | tuple[int, ...] | None
# How quantiles lie between elements (Hyndman and Fan, 1996): by the shares (alpha, beta) of a place
# that count before the first and behind the last; by steps; or by the n - 1 gaps of n elements.
SMOOTH = {
    "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
STEPS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")
METHODS = ("linear", "lower", "higher", "nearest", "midpoint", *STEPS, *SMOOTH)


@overload
def sort(
    x: ArrayLike, /, axis: int = ..., descending: bool = ..., *, stable: bool = ..., dim: None = ...
) -> Tensor: ...
@overload
def sort(
    x: ArrayLike, /, axis: int = ..., descending: bool = ..., *, stable: bool = ..., dim: int
) -> ValuesAndIndices: ...
@op_function_of_several
def sort(
    x: ArrayLike,
    /,
    axis: int = -1,
    descending: bool = False,
    *,
    stable: bool = True,
    dim: int | None = None,
) -> Any:
    """The elements along an axis in order, NaN at the end.

    Equal elements always keep their order, so `stable` changes nothing; 0.0 and -0.0 are equal. The
    gradient of an element goes to where it came from. With PyTorch's `dim` in place of `axis` the
    result is a named tuple of `values` and `indices`.

    Shape and dtype are those of x. `AxisError` for an axis that x does not have, `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.sort([3, 1, 2], descending=True).tolist()
    [3, 2, 1]
    """
    x = as_node(x)
    at = normal_axis(one_axis(axis, dim, -1), x.type.rank, "sort")
    if dim is None:
        return Sort(at, bool(descending))(x)
    places = ArgSort(at, bool(descending))(x)
    return ValuesAndIndices._make((gather_along(x, places, at), places))


@op_function
def argsort(
    x: ArrayLike,
    /,
    axis: int = -1,
    descending: bool = False,
    *,
    stable: bool = True,
    dim: int | None = None,
) -> Any:
    """The positions, int64, that sort x along an axis; see `sort` for the order.

    The shape is that of x; there is no gradient. `AxisError` for an axis that x does not have,
    `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.argsort([3, 1, 2]).tolist()
    [1, 2, 0]
    """
    axis = one_axis(axis, dim, -1)
    x = as_node(x)
    return ArgSort(normal_axis(axis, x.type.rank, "argsort"), bool(descending))(x)


class TopK(NamedTuple):
    """What `topk` returns."""

    values: Tensor
    indices: Tensor


@respells
def topk(
    x: ArrayLike,
    k: int | Dim,
    /,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    dim: int | None = None,
) -> TopK:
    """The `k` largest elements along an axis, or the smallest, and their positions.

    They are sorted, whatever `sorted` says; of equal ones the first come first. NaN counts as less
    than everything, or more with `largest=False`: it is taken last.

    `[..., n, ...]` gives two arrays `[..., k, ...]`: values in the dtype of x, and int64. k may be
    a size with a name.
    `ShapeError` for more than n, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.topk([1.0, 3.0, 2.0], 2).indices.tolist()
    [1, 2]
    """
    return TopK(*_topk(x, k, one_axis(axis, dim, -1), largest))


@op_function_of_several
def _topk(x: ArrayLike, k: int | Dim, axis: int, largest: bool, /) -> tuple[Any, Any]:
    x = as_node(x)
    at = normal_axis(axis, x.type.rank, "topk")
    count = k if isinstance(k, Dim) else integer(k, "topk: the number of elements")
    n = x.shape[at]
    if not isinstance(count, Dim) and (count < 0 or (not isinstance(n, Dim) and count > n)):
        raise ShapeError(f"topk of {count} elements along axis {at} of the shape {x.shape}")
    positions = ArgSort(at, bool(largest), count)(x)
    return gather_along(x, positions, at), positions


@op_function
def searchsorted(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    side: str = "left",
    sorter: ArrayLike | None = None,
    right: bool = False,
    out_int32: bool = False,
) -> Any:
    """For each value of x2 the position, int64, where it could be inserted in the sorted x1.

    `x1[i-1] < v <= x1[i]` for the side "left", the default, `x1[i-1] <= v < x1[i]` for "right", or
    with `right=True`. `sorter` are the
    positions that sort x1, if it is not sorted. Where x1 has several axes, its last one is searched
    along, and the others are those of x2.

    The result has the shape of x2. `OptionError` for another side, `ShapeError` where the axes in
    front differ or x1 has none.

    >>> import retrograd as rg
    >>> rg.searchsorted([1.0, 2.0, 3.0], [2.0, 9.0]).tolist()
    [1, 3]
    """
    side = "right" if right else side
    if side not in ("left", "right"):
        raise OptionError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    row, values = alike(x1, x2)
    if row.type.rank == 0:
        raise ShapeError("searchsorted looks along an axis, and x1 has none")
    if sorter is not None:
        row = gather_along(row, as_node(sorter), row.type.rank - 1)
    found = SearchSorted(side == "right", row.type.rank - 1)(row, values)
    return el.cast(found, int32) if out_int32 else found


@op_function
def digitize(x: ArrayLike, bins: ArrayLike, /, right: bool = False) -> Any:
    """The number of the bin, int64, that each element falls into; `bins` ascend or descend.

    Bin i is `bins[i-1] <= v < bins[i]` or, with `right`, `bins[i-1] < v <= bins[i]`; where bins
    descend, `bins[i] <= v < bins[i-1]` or, with `right`, `bins[i] < v <= bins[i-1]`.

    The result has the shape of x. `ShapeError` for bins that are no vector.

    >>> import retrograd as rg
    >>> rg.digitize([0.5, 1.0, 7.0], [0.0, 1.0, 2.0]).tolist()
    [1, 2, 3]
    """
    edges, side = as_node(bins), "left" if right else "right"
    if edges.type.rank != 1:
        raise ShapeError(f"digitize: bins are a vector, not {edges.type}")
    n = edges.shape[0]
    if isinstance(n, int) and n < 2:
        return searchsorted(edges, as_node(x), side=side)
    first, last = slice_axis(edges, 0, 0, 1), slice_axis(edges, 0, n - 1, n)
    down = reshape(first > last, ())
    both = expand(down, edges.shape, (0,))
    found = as_node(searchsorted(el.select(both, Flip((0,))(edges), edges), as_node(x), side=side))
    turned = el.sub(expand(SizeOf(n, int64)(), found.shape, range(found.type.rank)), found)
    return el.select(expand(down, found.shape, range(found.type.rank)), turned, found)


# -- quantiles -------------------------------------------------------------------------------------
@op_function
def quantile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
    interpolation: str | None = None,
) -> Any:
    """The values below which a share `q` of the elements along the given axes lies.

    `q` is between 0 and 1, a number or an array whose axes come first in the result. Place
    `q * (n - 1)` of the sorted elements is between two of them, where it is not a whole number:
    `method` is "linear" (interpolation), "lower", "higher", "nearest" (to the even place at half)
    or "midpoint"; the other definitions of Hyndman and Fan have NumPy's names, "inverted_cdf" to
    "normal_unbiased". NaN where an element is NaN, or q is outside of its range. Differentiable in
    x and, if it is continuous in it, in q. `OptionError` for numbers q out of range.

    The shape is that of q, then that of x without the axes. `ShapeError` over no elements,
    `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.quantile([1.0, 2.0, 3.0, 4.0], 0.5).item()
    2.5
    """
    axis, keepdims = one_axis(axis, dim), keepdims or keepdim
    method = interpolation or method
    if method not in METHODS:
        raise OptionError(f"quantile: method is one of {', '.join(METHODS)}, not {method!r}")
    x = promote_to_float(x)
    q = _shares(q)
    axes = normal_axes(axis, x.type.rank, "quantile")
    kept = [i for i in range(x.type.rank) if i not in axes]
    n = product(x.shape[i] for i in axes)
    if n == 0:
        raise ShapeError(f"quantile over no elements of the shape {x.shape}")
    moved = permute(x, (*kept, *axes))
    rows = Sort(len(kept))(reshape(moved, (*moved.shape[: len(kept)], n)))
    y = _between(rows, q, n, method)
    if not keepdims:
        return y
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
    return reshape(y, (*q.shape, *shape))


def _shares(q: Any) -> Node:
    """Shares in float64, in which places are computed; numbers must be from 0 to 1."""
    if isinstance(q, Node):
        return el.cast(q, float64)
    values = as_array(q, float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise OptionError(f"quantile: q is between 0 and 1, not {q!r:.80}")
    return constant(values)


def _between(rows: Node, q: Node, n: int | Dim, method: str) -> Node:
    """Values at places of sorted rows, places in front."""
    valid = el.bitwise_and(el.ge(q, full(0, q.type)), el.le(q, full(1, q.type)))
    last = el.cast(expand(SizeOf(n - 1, int64)(), q.shape, tuple(range(q.type.rank))), q.dtype)
    low, high, part = places_between(el.drop_if(el.bitwise_not(valid), q), last, method)
    axis = rows.type.rank - 1
    a = _at(rows, low, axis)
    if part is not None:
        a = _mixed(a, _at(rows, high, axis), _stretched(el.cast(part, a.dtype), a))
    end = _at(rows, last, axis)
    bad = el.bitwise_or(el.isnan(end), el.bitwise_not(_stretched(valid, a)))
    return el.select(bad, full(float("nan"), a.type), a)


def places_between(share: Node, last: Node, method: str) -> tuple[Node, Node, Node | None]:
    """The places of sorted elements, the last of which is `last`, that a quantile is between, and
    how far it is from the first of both to the second; None where it is the first."""
    place = el.mul(share, last)
    one, zero = full(1, place.type), full(0, place.type)
    if method in SMOOTH or method in STEPS:
        return _by_definition(share, el.add(last, one), method)
    low, high = el.floor(place), el.ceil(place)
    if method == "nearest":
        return el.round(place), high, None
    if method in ("lower", "higher"):
        return low if method == "lower" else high, high, None
    if method == "midpoint":
        return low, high, el.cast(el.ne(low, high), low.dtype) * 0.5
    # A whole place has a neighbour too: the slope in the share is that towards it.
    low = el.min(low, el.max(el.sub(last, one), zero))
    return low, el.min(el.add(low, one), last), el.sub(place, low)


def _by_definition(share: Node, count: Node, method: str) -> tuple[Node, Node, Node]:
    """`places_between` by another definition than that of the gaps."""
    one, zero = full(1, share.type), full(0, share.type)
    place = el.sub(el.mul(share, count), one)
    if method in SMOOTH:
        alpha, beta = SMOOTH[method]
        place = el.sub(el.mul(share, count) + (share * (1 - alpha - beta) + alpha), one)
    if method == "closest_observation":
        place = place - 0.5
    low = el.floor(place)
    part = el.sub(place, low)
    whole = el.eq(part, zero)
    if method == "inverted_cdf":
        part = el.select(whole, zero, one)
    elif method == "averaged_inverted_cdf":
        part = el.select(whole, full(0.5, part.type), one)
    elif method == "closest_observation":
        odd = el.ne(el.mod(low, full(2, low.type)), zero)
        part = el.select(el.bitwise_and(whole, odd), zero, one)
    within = [el.max(el.min(p, el.sub(count, one)), zero) for p in (low, el.add(low, one))]
    return within[0], within[1], part


def _at(rows: Node, place: Node, axis: int) -> Node:
    y = Gather(axis)(rows, el.cast(place, int64))
    return permute(y, (*range(axis, y.type.rank), *range(axis)))


def _stretched(x: Node, like: Node) -> Node:
    """A value for each place, for all rows."""
    return expand(x, like.shape, tuple(range(x.type.rank, like.type.rank)))


def _mixed(a: Node, b: Node, part: Node) -> Node:
    """`a + part * (b - a)`, from the nearer end; a share of exactly 0 takes nothing of an infinite
    difference."""
    same = el.bitwise_and(el.eq(a, b), el.isinf(a))
    step = el.drop_if(same, el.sub(b, a))
    rest = el.sub(full(1, part.type), part)
    up = el.add(a, el.zmul(part, step))
    down = el.sub(b, el.zmul(rest, step))
    return el.select(el.lt(part, full(0.5, part.type)), up, down)


@op_function
def percentile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """`quantile` for shares in percent, from 0 to 100.

    Shapes and errors are those of `quantile`: `OptionError` for numbers out of range, `ShapeError`
    over no elements.

    >>> import retrograd as rg
    >>> rg.percentile([1.0, 2.0, 3.0], 50).item()
    2.0
    """
    if isinstance(q, Node):
        q = el.div(el.cast(q, float64), full(100, TensorType(float64, q.shape)))
    else:
        q = as_array(q, float64) / 100
    return quantile(as_node(x), q, axis, method=method, keepdims=keepdims)


@overload
def median(
    x: ArrayLike, /, axis: Axis = ..., keepdims: bool = ..., *, dim: None = ..., keepdim: bool = ...
) -> Tensor: ...
@overload
def median(
    x: ArrayLike, /, axis: None = ..., keepdims: bool = ..., *, dim: int, keepdim: bool = ...
) -> ValuesAndIndices: ...
@op_function_of_several
def median(
    x: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dim: int | None = None,
    keepdim: bool = False,
) -> Any:
    """The middle of the elements along the given axes; of an even number, the mean of both.

    NaN where an element is NaN. With PyTorch's `dim` in place of `axis` it is, as in PyTorch, a
    named tuple of `values` and `indices`, and of an even number the lower of both.

    The shape is that of x without the axes, or with size 1 there under `keepdims`. `ShapeError`
    over no elements, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.median([3.0, 1.0, 2.0]).item()
    2.0
    """
    if dim is not None:
        return lower_median(as_node(x), one_axis(axis, dim), keepdims or keepdim)
    keepdims = keepdims or keepdim
    return quantile(as_node(x), 0.5, axis, keepdims=keepdims)


def lower_median(x: Node, axis: int, keepdims: bool) -> ValuesAndIndices:
    """The lower of the elements in the middle along an axis, or a NaN, and its place."""
    at = normal_axis(axis, x.type.rank, "median")
    places, n = ArgSort(at)(x), x.shape[at]
    if n == 0:
        raise ShapeError(f"median over no elements of the shape {x.shape}")
    place = slice_axis(places, at, (n - 1) // 2, (n - 1) // 2 + 1)
    if x.dtype.is_float:  # NaN is sorted to the end
        last = slice_axis(places, at, n - 1, n)
        place = el.select(el.isnan(gather_along(x, last, at)), last, place)
    return chosen(x, place, at, keepdims)


def chosen(x: Node, places: Node, axis: int, keepdims: bool) -> ValuesAndIndices:
    """The elements at one place of each row along an axis, and these places."""
    values = gather_along(x, places, axis)
    if keepdims:
        return ValuesAndIndices._make((values, places))
    shape = tuple(n for i, n in enumerate(x.shape) if i != axis)
    return ValuesAndIndices._make((reshape(values, shape), reshape(places, shape)))
