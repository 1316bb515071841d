"""Reductions and statistics that PyTorch has beside the array API standard's."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NamedTuple

from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import ShapeError
from retrograd.functions import elementwise as functions
from retrograd.functions import reductions, scans, sorting
from retrograd.functions.broadcasting import as_node, integer, normal_axis, promote_to_float
from retrograd.functions.linalg import norms
from retrograd.functions.reductions import ValuesAndIndices
from retrograd.ir import full, int64
from retrograd.ops import elementwise as el
from retrograd.ops import shape as ops
from retrograd.ops.index import gather_along
from retrograd.ops.leaf import Iota
from retrograd.ops.reduce import ArgMax
from retrograd.ops.scan import CumMax
from retrograd.tensor_type import Tensor

Dims = int | Sequence[int] | None


class MinMax(NamedTuple):
    """What `aminmax` returns."""

    min: Tensor
    max: Tensor


@op_function
def amax(x: ArrayLike, /, dim: Dims = None, keepdim: bool = False) -> Any:
    """The largest elements over axes, all by default: `max(x, axis=dim)`. Ties share the gradient.

    The shape is that of x without the axes, or with size 1 there under `keepdim`. `AxisError` for
    an axis that x does not have, `ShapeError` over no elements.

    >>> import retrograd as rg
    >>> rg.amax(rg.tensor([[1, 2], [3, 0]]), 1).tolist()
    [2, 3]
    """
    axis, keep = reductions.reduced(None, dim, False, keepdim)
    return reductions.max(as_node(x), axis, keepdims=keep)


@op_function
def amin(x: ArrayLike, /, dim: Dims = None, keepdim: bool = False) -> Any:
    """The smallest elements over axes, all by default: `min(x, axis=dim)`. Ties share the gradient.

    The shape is that of x without the axes, or with size 1 there under `keepdim`. `AxisError` for
    an axis that x does not have, `ShapeError` over no elements.

    >>> import retrograd as rg
    >>> rg.amin(rg.tensor([[1, 2], [3, 0]]), 1).tolist()
    [1, 0]
    """
    axis, keep = reductions.reduced(None, dim, False, keepdim)
    return reductions.min(as_node(x), axis, keepdims=keep)


@op_function_of_several
def aminmax(x: ArrayLike, /, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The smallest and the largest elements along an axis, or of all, as a named tuple.

    The shapes are that of x without the axis, or with size 1 there under `keepdim`. `ShapeError`
    over no elements, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.aminmax(rg.tensor([3, 1, 2])).max.item()
    3
    """
    x = as_node(x)
    return MinMax(amin(x, dim, keepdim), amax(x, dim, keepdim))


@op_function_of_several
def std_mean(
    x: ArrayLike,
    /,
    dim: Dims | EllipsisType = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: int | float | None = None,
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over axes, all by default; the correction is 1 unless said.

    Both have the shape of x without the axes, or with size 1 there under `keepdim`. `AxisError` for
    an axis that x does not have.

    >>> import retrograd as rg
    >>> [part.item() for part in rg.std_mean(rg.tensor([1.0, 2.0, 3.0]))]
    [1.0, 2.0]
    """
    return _with_mean(reductions.std, x, dim, unbiased, keepdim, correction)


@op_function_of_several
def var_mean(
    x: ArrayLike,
    /,
    dim: Dims | EllipsisType = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: int | float | None = None,
) -> tuple[Tensor, Tensor]:
    """Variance and mean over axes, all by default; the correction is 1 unless said.

    Both have the shape of x without the axes, or with size 1 there under `keepdim`. `AxisError` for
    an axis that x does not have.

    >>> import retrograd as rg
    >>> [part.item() for part in rg.var_mean(rg.tensor([1.0, 2.0, 3.0]))]
    [1.0, 2.0]
    """
    return _with_mean(reductions.var, x, dim, unbiased, keepdim, correction)


def _with_mean(
    f: Any, x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> tuple[Tensor, Tensor]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    x = as_node(x)
    spread = f(x, correction=correction, dim=dim, keepdim=keepdim)
    return spread, reductions.mean(x, dim=dim, keepdim=keepdim)


@op_function_of_several
def kthvalue(x: ArrayLike, /, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The k-th smallest elements along an axis, counted from 1, and their places, as a named tuple.

    The shapes are that of x without the axis, or with size 1 there under `keepdim`. `ShapeError`
    for a k beyond the size, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.kthvalue(rg.tensor([3.0, 1.0, 2.0]), 2).values.item()
    2.0
    """
    x, count = as_node(x), integer(k, "kthvalue: k")
    at = normal_axis(dim, x.type.rank, "kthvalue")
    n = x.shape[at]
    if count < 1 or (isinstance(n, int) and count > n):
        raise ShapeError(f"kthvalue: the {count}-th of {n} elements; k counts from 1")
    places = as_node(sorting.argsort(x, at))
    return sorting.chosen(x, ops.slice_axis(places, at, count - 1, count), at, keepdim)


@op_function_of_several
def mode(x: ArrayLike, /, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent elements along an axis, of several the least, and the last of their places,
    as a named tuple.

    The shapes are that of x without the axis, or with size 1 there under `keepdim`. `ShapeError`
    over no elements, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.mode(rg.tensor([3, 1, 3, 2])).values.item()
    3
    """
    x = as_node(x)
    at = normal_axis(dim, x.type.rank, "mode")
    if x.shape[at] == 0:
        raise ShapeError(f"mode over no elements of the shape {x.shape}")
    order = as_node(sorting.argsort(x, at))
    ranked = gather_along(x, order, at)
    place = Iota(x.shape, at, int64)()
    before = ops.Concat(at)(
        ops.slice_axis(ranked, at, 0, 1), ops.slice_axis(ranked, at, 0, x.shape[at] - 1)
    )
    fresh = el.bitwise_or(el.ne(ranked, before), el.eq(place, full(0, place.type)))
    first = CumMax(at)(el.select(fresh, place, full(0, place.type)))  # where this value begins
    longest = ArgMax(at)(place - first)
    shape = tuple(1 if i == at else n for i, n in enumerate(x.shape))
    return sorting.chosen(x, gather_along(order, ops.reshape(longest, shape), at), at, keepdim)


@op_function
def msort(x: ArrayLike, /) -> Any:
    """The elements along the first axis in order: `sort(x, axis=0)`.

    Shape and dtype stay. `DTypeError` for complex numbers, `AxisError` for an array without axes.

    >>> import retrograd as rg
    >>> rg.msort(rg.tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    return sorting.sort(as_node(x), axis=0)


@op_function
def renorm(x: ArrayLike, /, p: int | float, dim: int, maxnorm: float) -> Any:
    """x with each slice along an axis scaled so that its p-norm is at most `maxnorm`.

    The shape stays. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.renorm(rg.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 1.0).tolist()
    [[0.6, 0.8], [0.0, 1.0]]
    """
    x = as_node(x)
    at = normal_axis(dim, x.type.rank, "renorm")
    rest = tuple(i for i in range(x.type.rank) if i != at)
    size = norms.vector_norm(x, ord=p, axis=rest, keepdims=True)
    limit = functions.divide(maxnorm, size + 1e-7)
    return functions.multiply(x, functions.where(functions.greater(size, maxnorm), limit, 1.0))


@op_function
def cumulative_trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, /, *, dx: float = 1, dim: int = -1
) -> Any:
    """Running integrals along an axis by the trapezoidal rule, at places x or in steps of `dx`.

    `[..., n]` to `[..., n - 1]`. `AxisError` for an axis that y does not have.

    >>> import retrograd as rg
    >>> rg.cumulative_trapezoid(rg.tensor([1.0, 2.0, 4.0])).tolist()
    [1.5, 4.5]
    """
    y = promote_to_float(y)
    at = normal_axis(dim, y.type.rank, "cumulative_trapezoid")
    n = y.shape[at]
    if n == 0:  # nothing runs
        return y
    mean = (ops.slice_axis(y, at, 1, n) + ops.slice_axis(y, at, 0, n - 1)) * 0.5
    if x is None:
        return scans.cumulative_sum(mean * dx, at)
    places = as_node(x)
    along = 0 if places.type.rank == 1 else at
    widths = as_node(scans.diff(places, 1, along))
    if places.type.rank == 1:
        size = tuple(n - 1 if i == at else 1 for i in range(y.type.rank))
        widths = ops.reshape(widths, size)
    return scans.cumulative_sum(functions.multiply(mean, widths), at)


@op_function
def bucketize(
    x: ArrayLike, boundaries: ArrayLike, /, *, out_int32: bool = False, right: bool = False
) -> Any:
    """The place of each element among ascending boundaries: `searchsorted(boundaries, x)`.

    The shape of x, int64 or int32. `ShapeError` for boundaries that are no vector.

    >>> import retrograd as rg
    >>> rg.bucketize(rg.tensor([0.5, 2.0]), rg.tensor([1.0, 2.0])).tolist()
    [0, 1]
    """
    row = as_node(boundaries)
    if row.type.rank != 1:
        raise ShapeError(f"bucketize takes a vector of boundaries, not the shape {row.shape}")
    found = sorting.searchsorted(row, as_node(x), side="right" if right else "left")
    return functions.astype(found, "int32") if out_int32 else found
