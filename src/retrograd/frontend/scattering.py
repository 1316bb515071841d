"""Scatters: arrays with updates put, added or multiplied in at given positions."""

from __future__ import annotations

from typing import Any

from retrograd.errors import OptionError, ShapeError
from retrograd.frontend.broadcasting import as_node, broadcast_shapes, broadcast_to, normal_axis
from retrograd.frontend.elementwise import ArrayLike
from retrograd.frontend.function import function
from retrograd.frontend.indexing import index_of, of_dtype
from retrograd.frontend.updates import SCATTERS
from retrograd.ir import Node
from retrograd.ops.shape import inverse, permute


def _scattered(mode: str, x: Any, indices: Any, updates: Any, axis: int, what: str) -> Node:
    x, index = as_node(x), index_of(indices, what)
    at = normal_axis(axis, x.type.rank, what)
    shape = x.shape[:at] + index.shape + x.shape[at + 1 :]
    update = broadcast_to(of_dtype(updates, x, what), shape)
    result: Node = SCATTERS[mode](at)(x, index, update)
    return result


@function
def scatter_add(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x with updates added at the given positions along an axis; positions may repeat.

    `updates` has the shape of x with the axis replaced by the axes of `indices`. The order of
    addition is fixed, for every number of threads: each place takes its updates in their order, in
    blocks of sixteen whose totals are added up in twice the precision. So of any number of updates
    the error is that of a block, at most `17 * eps` times the sum of absolute values; half
    precision is added up in float32 and rounded once.

    >>> import retrograd as rg
    >>> rg.scatter_add([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 9.0]
    """
    return _scattered("add", x, indices, updates, axis, "scatter_add")


@function
def scatter_set(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x with elements replaced at the given positions along an axis, as `scatter_add` has them; the
    last update stays where positions repeat, and gets the gradient.

    >>> import retrograd as rg
    >>> rg.scatter_set([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 4.0]
    """
    return _scattered("set", x, indices, updates, axis, "scatter_set")


@function
def scatter_mul(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x multiplied by updates at the given positions along an axis, as `scatter_add` has them. The
    gradient is exact where updates are zero.

    >>> import retrograd as rg
    >>> rg.scatter_mul([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 24.0]
    """
    return _scattered("multiply", x, indices, updates, axis, "scatter_mul")


@function
def scatter_min(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x where elements at the given positions are at most the updates, as `scatter_add` has them;
    equal ones share the gradient. NaN if one is NaN.

    >>> import retrograd as rg
    >>> rg.scatter_min([1.0, 9.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 3.0]
    """
    return _scattered("min", x, indices, updates, axis, "scatter_min")


@function
def scatter_max(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x where elements at the given positions are at least the updates, as `scatter_add` has them;
    equal ones share the gradient. NaN if one is NaN.

    >>> import retrograd as rg
    >>> rg.scatter_max([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 4.0]
    """
    return _scattered("max", x, indices, updates, axis, "scatter_max")


@function
def put_along_axis(
    x: ArrayLike, indices: ArrayLike, values: ArrayLike, /, axis: int = -1, mode: str = "set"
) -> Any:
    """A copy of x with `y[i, j, ...]` at `indices[i, j, ...]` replaced by `values[i, j, ...]`, here
    for the axis 1: the transpose of `take_along_axis`.

    Other axes run together; those of indices and values broadcast. With the modes "add",
    "multiply", "min" and "max" values meet what is there. Positions may repeat; values take their
    turn in order.

    >>> import retrograd as rg
    >>> rg.put_along_axis([[1, 2], [3, 4]], [[1], [0]], 9).tolist()
    [[1, 9], [9, 4]]
    """
    if mode not in SCATTERS:
        raise OptionError(f"put_along_axis: mode is one of {', '.join(SCATTERS)}, not {mode!r}")
    x, index = as_node(x), index_of(indices, "put_along_axis")
    rank = x.type.rank
    if index.type.rank != rank:
        raise ShapeError(f"put_along_axis into {x.shape} by indices {index.shape}: ranks differ")
    at = normal_axis(axis, rank, "put_along_axis")
    order = (*(i for i in range(rank) if i != at), at)
    shape = tuple(index.shape[i] if i == at else x.shape[i] for i in range(rank))
    if broadcast_shapes(index.shape, shape) != shape:
        raise ShapeError(f"put_along_axis into {x.shape} by indices {index.shape}: other axes")
    index = broadcast_to(index, shape)
    update = broadcast_to(of_dtype(values, x, "put_along_axis"), shape)
    moved = [permute(n, order) for n in (x, index, update)]
    return permute(SCATTERS[mode](rank - 1, rank - 1)(*moved), inverse(order))
