"""Reading at places under PyTorch's names."""

from __future__ import annotations

from typing import Any

from retrograd.coming_from.keywords import respells
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import ShapeError
from retrograd.functions.broadcasting import as_node, normal_axis
from retrograd.functions.indexing import index_of, picked, take_along_axis
from retrograd.functions.indexing import take as take_at
from retrograd.functions.manipulation import broadcast_arrays
from retrograd.ir import Node, full
from retrograd.ops import shape as ops
from retrograd.tensor_type import Tensor


def flat(x: Node) -> Node:
    """All elements in a row."""
    return ops.reshape(x, (x.type.size,))


def part_of(x: Node, shape: tuple[Any, ...], but: int = -1) -> Node:
    """The elements from the front of each axis that a shape has room for, but of one axis all."""
    for axis, n in enumerate(shape):
        if axis != but and x.shape[axis] != n:
            x = ops.slice_axis(x, axis, 0, n)
    return x


def check_index(x: Node, index: Node, but: int, what: str) -> None:
    """An index has as many axes as what it is for, and no more elements along the others."""
    if x.type.rank != index.type.rank or any(
        isinstance(n, int) and isinstance(m, int) and m > n and axis != but
        for axis, (n, m) in enumerate(zip(x.shape, index.shape, strict=True))
    ):
        raise ShapeError(f"{what} of {x.shape} with an index of {index.shape}: no more elements")


@op_function
def gather(x: ArrayLike, /, dim: int, index: ArrayLike) -> Any:
    """`y[i, j] = x[i, index[i, j]]`, here for `dim=1`. Along the other axes the index may be
    shorter than x; unlike in `take_along_axis` nothing is broadcast.

    The shape is that of the index. `ShapeError` for an index with more elements than x along
    another axis, `IndexRangeError` for a place beyond the axis, `DTypeError` for one that is no
    integer.

    >>> import retrograd as rg
    >>> rg.gather(rg.tensor([[1, 2], [3, 4]]), 1, rg.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    x, places = as_node(x), index_of(index, "gather")
    if 0 in places.shape:
        return full(0, x.type.with_shape(places.shape))
    if x.type.rank == 0 or places.type.rank == 0:
        row = ops.reshape(x, (1,)) if x.type.rank == 0 else x
        return ops.reshape(as_node(take_at(row, flat(places))), places.shape)
    at = normal_axis(dim, x.type.rank, "gather")
    check_index(x, places, at, "gather")
    return take_along_axis(part_of(x, places.shape, at), places, axis=at)


@op_function
def index_select(x: ArrayLike, /, dim: int, index: ArrayLike) -> Any:
    """Elements at the given places along an axis: `take`.

    `[..., n, ...]` and `[k]` give `[..., k, ...]`. `ShapeError` for an index of several axes,
    `IndexRangeError` for a place beyond the axis, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.index_select(rg.tensor([[1, 2], [3, 4]]), 1, rg.tensor([1, 1])).tolist()
    [[2, 2], [4, 4]]
    """
    x, places = as_node(x), index_of(index, "index_select")
    if places.type.rank > 1:
        raise ShapeError(f"index_select takes a vector of places, not the shape {places.shape}")
    if x.type.rank == 0:
        return x
    return take_at(x, flat(places), axis=dim)


@op_function
def take_along_dim(x: ArrayLike, /, indices: ArrayLike, dim: int | None = None) -> Any:
    """`take_along_axis`; without an axis, of all elements in a row.

    The shape is that of the indices, broadcast with x along the other axes. `IndexRangeError` for a
    place beyond the axis, `ShapeError` where the numbers of axes differ.

    >>> import retrograd as rg
    >>> rg.take_along_dim(rg.tensor([[1, 2], [3, 4]]), rg.tensor([3, 0])).tolist()
    [4, 1]
    """
    x, places = as_node(x), index_of(indices, "take_along_dim")
    if dim is None:
        return take_at(flat(x), flat(places))
    return take_along_axis(x, places, axis=dim)


@respells
def masked_select(x: Any, mask: Any, /) -> Tensor:
    """The elements where a mask is true, in a row: `x[mask]` after both were broadcast.

    `[...]` to `[k]`. `ShapeError` where the shapes do not broadcast, `TraceError` while the mask is
    traced, as the size of the result is not known then: see `where` and `nonzero(size=n)`.

    >>> import retrograd as rg
    >>> rg.masked_select(rg.tensor([1, 2, 3]), rg.tensor([True, False, True])).tolist()
    [1, 3]
    """
    x, mask = broadcast_arrays(x, mask)
    return picked(x, mask)
