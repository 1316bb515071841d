"""Running sums, products and extrema along an axis, and differences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from retrograd.eager.conversion import promote
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.broadcasting import (
    as_node,
    broadcast_to,
    integer,
    normal_axis,
    one_axis,
    promote_to_float,
)
from retrograd.functions.reductions import ValuesAndIndices, summed
from retrograd.ir import Node, as_dtype, bool_, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops import scan as ops
from retrograd.ops.index import gather_along
from retrograd.ops.leaf import Iota
from retrograd.ops.shape import Concat, reshape, slice_axis
from retrograd.tensor_type import Tensor


def _along(
    op: Callable[[int], Any],
    x: Node,
    axis: int | None,
    include_initial: bool = False,
    what: str = "",
    initial: int = 0,
) -> Node:
    """A scan along an axis; an array with one axis needs none."""
    if axis is None and x.type.rank != 1:
        raise ShapeError(f"{what} of the shape {x.shape} needs an axis")
    at = normal_axis(0 if axis is None else axis, x.type.rank, what)
    y: Node = op(at)(x)
    if not include_initial:
        return y
    shape = (*x.shape[:at], 1, *x.shape[at + 1 :])
    first = full(initial, x.type.with_shape(shape))
    return Concat(at)(first, y)


@op_function
def cumulative_sum(
    x: ArrayLike,
    /,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    *,
    dim: int | None = None,
) -> Any:
    """Running sum along an axis; an array with one axis needs no axis.

    Booleans and integers are summed in 64 bits unless a dtype is given. With `include_initial` the
    result starts with 0 and is longer by one. Along rows, blocks of sixteen elements are summed by
    halves; the totals of blocks, and along other axes all elements, are added up in twice the
    precision. So the error is at most `6 * eps` times the sum of absolute values, whatever the
    length.

    The shape of x, but for `include_initial`. `ShapeError` for an array of several axes without
    `axis`, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.cumulative_sum([1, 2, 3], include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    axis = one_axis(axis, dim)
    x = as_node(x)
    x = el.cast(x, summed(x) if dtype is None else as_dtype(dtype))
    return _along(ops.CumSum, x, axis, include_initial, "cumulative_sum")


@op_function
def cumulative_prod(
    x: ArrayLike,
    /,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    *,
    dim: int | None = None,
) -> Any:
    """Running product along an axis; an array with one axis needs no axis.

    Booleans and integers are multiplied in 64 bits unless a dtype is given. With `include_initial`
    the result starts with 1 and is longer by one. The gradient is exact where elements are zero.

    The shape of x, but for `include_initial`. `ShapeError` for an array of several axes without
    `axis`, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.cumulative_prod([1, 2, 3]).tolist()
    [1, 2, 6]
    """
    axis = one_axis(axis, dim)
    x = as_node(x)
    x = el.cast(x, summed(x) if dtype is None else as_dtype(dtype))
    return _along(ops.CumProd, x, axis, include_initial, "cumulative_prod", 1)


@op_function
def cumsum(
    x: ArrayLike, /, axis: int | None = None, dtype: Any = None, *, dim: int | None = None
) -> Any:
    """Running sum along an axis, or over the flattened x without one; see `cumulative_sum`.

    The shape of x, or `[n]`. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.cumsum([[1, 2], [3, 4]]).tolist()
    [1, 3, 6, 10]
    """
    x, axis = as_node(x), one_axis(axis, dim)
    x = reshape(x, (x.type.size,)) if axis is None else x
    return cumulative_sum(x, axis, dtype)


@op_function
def cumprod(
    x: ArrayLike, /, axis: int | None = None, dtype: Any = None, *, dim: int | None = None
) -> Any:
    """Running product along an axis, or over the flattened x without one; see `cumulative_prod`.

    The shape of x, or `[n]`. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.cumprod([[1, 2], [3, 4]]).tolist()
    [1, 2, 6, 24]
    """
    x, axis = as_node(x), one_axis(axis, dim)
    x = reshape(x, (x.type.size,)) if axis is None else x
    return cumulative_prod(x, axis, dtype)


def _ordered(x: ArrayLike, what: str) -> Node:
    node = as_node(x)
    if node.dtype is bool_:
        raise DTypeError(f"{what} compares numbers, not booleans; cast first")
    return node


def _attained(x: Node, y: Node, axis: int) -> ValuesAndIndices:
    """Running extrema, and the last places at which they were attained."""
    here = el.eq(x, y)
    if x.dtype.is_float:
        here = el.bitwise_or(here, el.bitwise_and(el.isnan(x), el.isnan(y)))
    place = Iota(x.shape, axis, int64)()
    places = ops.CumMax(axis)(el.select(here, place, full(0, place.type)))
    return ValuesAndIndices._make((gather_along(x, places, axis), places))


@overload
def cummax(x: ArrayLike, /, axis: int | None = ..., *, dim: None = ...) -> Tensor: ...
@overload
def cummax(x: ArrayLike, /, axis: None = ..., *, dim: int) -> ValuesAndIndices: ...
@op_function_of_several
def cummax(x: ArrayLike, /, axis: int | None = None, *, dim: int | None = None) -> Any:
    """Running maximum along an axis; NaN from the first NaN on. An array with one axis needs none.

    The gradient of each goes to the element where it was first attained. With PyTorch's `dim` in
    place of `axis` the result is a named tuple of `values` and `indices`, of the last element that
    attains it, to which the gradient goes.

    Shape and dtype are those of x. `DTypeError` for booleans and complex numbers, `ShapeError` for
    an array of several axes without `axis`, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.cummax([1, 3, 2, 4]).tolist()
    [1, 3, 3, 4]
    """
    x = _ordered(x, "cummax")
    y = _along(ops.CumMax, x, one_axis(axis, dim), what="cummax")
    return y if dim is None else _attained(x, y, normal_axis(dim, x.type.rank, "cummax"))


@overload
def cummin(x: ArrayLike, /, axis: int | None = ..., *, dim: None = ...) -> Tensor: ...
@overload
def cummin(x: ArrayLike, /, axis: None = ..., *, dim: int) -> ValuesAndIndices: ...
@op_function_of_several
def cummin(x: ArrayLike, /, axis: int | None = None, *, dim: int | None = None) -> Any:
    """Running minimum along an axis; NaN from the first NaN on. An array with one axis needs none.

    The gradient of each goes to the element where it was first attained. With PyTorch's `dim` in
    place of `axis` the result is a named tuple of `values` and `indices`, of the last element that
    attains it, to which the gradient goes.

    Shape and dtype are those of x. `DTypeError` for booleans and complex numbers, `ShapeError` for
    an array of several axes without `axis`, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.cummin([3, 4, 1, 2]).tolist()
    [3, 3, 1, 1]
    """
    x = _ordered(x, "cummin")
    y = _along(ops.CumMin, x, one_axis(axis, dim), what="cummin")
    return y if dim is None else _attained(x, y, normal_axis(dim, x.type.rank, "cummin"))


@op_function
def logcumsumexp(x: ArrayLike, /, axis: int | None = None, *, dim: int | None = None) -> Any:
    """`log(cumsum(exp(x)))` along an axis without overflow; -inf while all elements are.

    The shape of x; booleans and integers are taken as float32. `ShapeError` for an array of several
    axes without `axis`, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> bool(abs(rg.logcumsumexp([0.0, 0.0])[1].item() - 0.6931472) < 1e-6)
    True
    """
    axis = one_axis(axis, dim)
    return _along(ops.LogCumSumExp, promote_to_float(x), axis, what="logcumsumexp")


@op_function
def diff(
    x: ArrayLike,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
    *,
    dim: int | None = None,
) -> Any:
    """Differences of neighbours along an axis, `n` times over.

    `prepend` and `append` are joined to x along the axis first; numbers are stretched. With
    `n=0` the result is x itself.

    `[..., m]` to `[..., m - n]`. `DTypeError` for booleans, `ShapeError` for a negative n,
    `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.diff([1, 4, 9, 16]).tolist()
    [3, 5, 7]
    """
    x = as_node(x)
    if x.dtype is bool_:
        raise DTypeError("diff takes differences of numbers, not of booleans; cast first")
    at = normal_axis(one_axis(axis, dim, -1), x.type.rank, "diff")
    times = integer(n, "diff: the number of times")
    if times < 0:
        raise ShapeError(f"diff {times} times: the number of times is not negative")
    if times == 0:
        return x
    ends = [None if end is None else as_node(end, x.dtype) for end in (prepend, append)]
    parts = [
        broadcast_to(end, (*x.shape[:at], 1, *x.shape[at + 1 :]))
        if end is not None and end.type.rank == 0
        else end
        for end in ends
    ]
    joined = [p for p in (parts[0], x, parts[1]) if p is not None]
    dtype = functools.reduce(promote, [p.dtype for p in joined])
    y = Concat(at)(*[el.cast(p, dtype) for p in joined]) if len(joined) > 1 else x
    for _ in range(times):
        size = y.shape[at]
        if size == 0:
            return y
        y = slice_axis(y, at, 1, size) - slice_axis(y, at, 0, size - 1)
    return y
