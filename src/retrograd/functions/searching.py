"""Where elements are, which are distinct, how often they occur.

The size of such a result depends on the values. Without `size` it is computed first, which takes
values that are known; inside of `jit` and other transforms `size` has to be given.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, overload

from retrograd.coming_from.keywords import respells
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ShapeError, TraceError
from retrograd.functions.broadcasting import alike, as_node, integer
from retrograd.functions.manipulation import stacked
from retrograd.functions.reductions import count_nonzero
from retrograd.ir import Dim, Node, TensorType, bool_, full, int64, product
from retrograd.ops import elementwise as el
from retrograd.ops.complex import imag, real
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import Iota, SizeOf
from retrograd.ops.reduce import ReduceAny, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.scatter import ScatterSet
from retrograd.ops.shape import expand, pad, reshape, slice_axis
from retrograd.ops.sort import SearchSorted, Sort, positions
from retrograd.tensor_type import Tensor


def known_size(x: Any, what: str, argument: str = "size") -> int:
    """A computed size as a number."""
    message = (
        f"the size of the result of {what} depends on values, which are not known while a function "
        f"is traced; give {argument}="
    )
    if not isinstance(x, LazyTensor):
        raise TraceError(message)
    try:
        return int(x.value())
    except TraceError:
        raise TraceError(message) from None


def vector(n: int | Dim, value: int = 0) -> Node:
    """`n` times the same number, as int64."""
    return full(value, TensorType(int64, (n,)))


def number_of(n: int | Dim, like: Node) -> Node:
    """A size, everywhere."""
    return expand(SizeOf(n, int64)(), like.shape, tuple(range(like.type.rank)))


def flat(x: Node) -> Node:
    """The elements as a vector, in row-major order."""
    return reshape(x, (x.type.size,))


def _selected(mask: Node, size: int | Dim) -> tuple[Node, Node]:
    """The positions of the first `size` true elements of a vector, and which of them exist; those
    that do not are 0."""
    (n,) = mask.shape
    number = CumSum(0)(el.cast(mask, int64))
    slot = el.select(mask, number - 1, vector(n, -1))
    # One place more than asked for takes what is not wanted.
    inside = el.bitwise_and(el.ge(slot, vector(n)), el.lt(slot, number_of(size, slot)))
    slot = el.select(inside, slot, number_of(size, slot))
    found = ScatterSet(0)(vector(size + 1), slot, Iota((n,), 0, int64)())
    total = expand(ReduceSum((0,))(el.cast(mask, int64)), (size,), (0,))
    exists = el.lt(Iota((size,), 0, int64)(), total)
    return el.keep_if(exists, slice_axis(found, 0, 0, size)), exists


# -- positions -------------------------------------------------------------------------------------
@overload
def nonzero(
    x: ArrayLike, /, *, size: int | None = None, fill_value: int = 0, as_tuple: Literal[True] = True
) -> tuple[Tensor, ...]: ...
@overload
def nonzero(
    x: ArrayLike, /, *, size: int | None = None, fill_value: int = 0, as_tuple: bool
) -> Any: ...
@respells
def nonzero(
    x: ArrayLike, /, *, size: int | None = None, fill_value: int = 0, as_tuple: bool = True
) -> Any:
    """The positions of the elements that are not zero, in row-major order: a vector for each axis.

    With `size`, so many: the first, and `fill_value` in place of those that do not exist. An array
    without axes is a `ShapeError`.

    Without `size` in a traced function it is a `TraceError`.

    Each vector has the shape `[n]`, int64. With `as_tuple=False`, PyTorch's default, they are one
    array `[n, ndim]`: `argwhere`.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.nonzero([[0, 1], [1, 0]])]
    [[0, 1], [1, 0]]
    """
    if not as_tuple:
        return argwhere(x, size=size, fill_value=fill_value)
    if size is None:
        size = known_size(count_nonzero(x), "nonzero")
    return tuple(_nonzero(x, size, fill_value))


@op_function_of_several
def _nonzero(x: ArrayLike, size: int, fill_value: int, /) -> list[Any]:
    x = as_node(x)
    if x.type.rank == 0:
        raise ShapeError("nonzero lists positions, and an array without axes has none")
    return _positions(x, size, fill_value)


def _positions(x: Node, size: int, fill_value: int) -> list[Node]:
    """The positions of the first elements that are not zero, along each axis."""
    at, exists = _selected(flat(el.cast(x, bool_)), size)
    found = []
    for axis, d in enumerate(x.shape):
        rest = product(x.shape[axis + 1 :])
        own = el.mod(el.floor_div(at, number_of(rest, at)), number_of(d, at))
        found.append(el.select(exists, own, full(fill_value, own.type)))
    return found


@respells
def argwhere(x: ArrayLike, /, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    """The positions of the elements that are not zero, a row for each; see `nonzero`.

    `[n, ndim]`, int64, for n such elements, also where ndim is 0. Without `size` in a traced
    function it is a `TraceError`.

    >>> import retrograd as rg
    >>> rg.argwhere([[0, 1], [1, 0]]).tolist()
    [[0, 1], [1, 0]]
    """
    if size is None:
        size = known_size(count_nonzero(x), "argwhere")
    return _argwhere(x, size, fill_value)


@op_function
def _argwhere(x: ArrayLike, size: int, fill_value: int, /) -> Any:
    node = as_node(x)
    if node.type.rank == 0:
        return full(0, TensorType(int64, (size, 0)))
    return stacked(_positions(node, size, fill_value), -1)


@op_function
def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Any:
    """Whether each element of x1 occurs in x2; with `invert`, whether it does not. NaN does not.

    The result is boolean, of the shape of x1. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.isin([1, 2, 3], [2, 5]).tolist()
    [False, True, False]
    """
    x, others = alike(x1, x2)
    if x.dtype.is_complex:  # without an order
        rank, row = x.type.rank, flat(others)
        wide = (*x.shape, row.shape[0])
        found = el.eq(expand(x, wide, (rank,)), expand(row, wide, range(rank)))
        found = ReduceAny((rank,))(found)
        return el.bitwise_not(found) if invert else found
    others = Sort(0)(flat(others))
    at = SearchSorted()(others, x)
    # One element more, so that there is one to be read behind the last.
    near = Gather(0)(pad(others, (0,), (1,)), at)
    found = el.bitwise_and(el.eq(near, x), el.lt(at, number_of(others.shape[0], at)))
    return el.bitwise_not(found) if invert else found


# -- distinct elements -----------------------------------------------------------------------------
class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def _ascending(row: Node) -> Node:
    """An order in which equal elements are neighbours; of complex numbers by the real parts, and
    where these are equal by the imaginary ones; NaN in one of both comes last."""
    if not row.dtype.is_complex or row.shape[0] == 0:
        return positions(real(row) if row.dtype.is_complex else row, 0)
    x, y = real(row), imag(row)
    first = el.select(el.isnan(y), full(math.nan, x.type), x)
    by_height = positions(y, 0)
    return Gather(0)(by_height, positions(Gather(0)(first, by_height), 0))


@op_function_of_several
def _groups(x: ArrayLike, /) -> tuple[Any, Any, Any]:
    """The order of the flattened elements, which of them begin a group of equal ones, and the
    number of groups."""
    row = flat(as_node(x))
    order = _ascending(row)
    rows = Gather(0)(row, order)
    (n,) = rows.shape
    first = el.ne(slice_axis(rows, 0, 1, n), slice_axis(rows, 0, 0, n - 1)) if n != 0 else None
    begins = full(True, TensorType(bool_, (n,)))
    if first is not None:
        begins = pad(first, (1,), (0,), value=True)
    return order, begins, ReduceSum((0,))(el.cast(begins, int64))


@op_function_of_several
def _unique(x: ArrayLike, order: ArrayLike, begins: ArrayLike, size: int, /) -> tuple[Any, ...]:
    x, order, begins = as_node(x), as_node(order), as_node(begins)
    row = flat(x)
    (n,) = row.shape
    at, exists = _selected(begins, size)
    indices = Gather(0)(order, at) if n != 0 else at
    values = Gather(0)(row, indices) if n != 0 else full(0, row.type.with_shape((size,)))
    number = CumSum(0)(el.cast(begins, int64)) - 1
    inverse = reshape(ScatterSet(0)(vector(n), order, number), x.shape)
    slot = el.select(el.lt(number, number_of(size, number)), number, number_of(size, number))
    counts = ScatterAdd(0)(vector(size + 1), slot, vector(n, 1))
    return values, el.keep_if(exists, indices), inverse, slice_axis(counts, 0, 0, size)


def unique_all(x: ArrayLike, /, *, size: int | None = None) -> UniqueAll:
    """The distinct elements in ascending order, where each occurs first in the flattened x, which
    of them each element of x is, and how often each occurs; positions and counts are int64.

    Every NaN is distinct from the others; 0.0 and -0.0 are equal. Complex numbers are ordered by
    their real parts, then by the imaginary ones. With `size`, so many: where there
    are fewer, the first is repeated, with a count of 0.

    x of any shape; the inverse has it, the others are vectors `[n]`. Without `size` in a traced
    function it is a `TraceError`.

    >>> import retrograd as rg
    >>> rg.unique_all([3, 1, 3]).counts.tolist()
    [1, 2]
    """
    order, begins, count = _groups(x)
    size = known_size(count, "unique") if size is None else integer(size, "unique: the size")
    return UniqueAll(*_unique(x, order, begins, size))


def unique_counts(x: ArrayLike, /, *, size: int | None = None) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs; see `unique_all`.

    Two vectors `[n]`, for x of any shape. Without `size` in a traced function it is a `TraceError`.

    >>> import retrograd as rg
    >>> rg.unique_counts([3, 1, 3]).values.tolist()
    [1, 3]
    """
    found = unique_all(x, size=size)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: ArrayLike, /, *, size: int | None = None) -> UniqueInverse:
    """The distinct elements in ascending order, and which of them each element of x is; see
    `unique_all`.

    A vector `[n]`, and int64 in the shape of x. Without `size` in a traced function it is a
    `TraceError`.

    >>> import retrograd as rg
    >>> rg.unique_inverse([3, 1, 3]).inverse_indices.tolist()
    [1, 0, 1]
    """
    found = unique_all(x, size=size)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: ArrayLike, /, *, size: int | None = None) -> Tensor:
    """The distinct elements in ascending order; see `unique_all`.

    A vector `[n]`, for x of any shape. Without `size` in a traced function it is a `TraceError`.

    >>> import retrograd as rg
    >>> rg.unique_values([3, 1, 3]).tolist()
    [1, 3]
    """
    return unique_all(x, size=size).values
