"""Rearranging: turning, joining, splitting, inserting, deleting, padding by what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ArgumentError, AxisError, IndexRangeError, OptionError, ShapeError
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    broadcast_shapes,
    broadcast_to,
    integer,
    normal_axis,
    one_axis,
    rounded,
)
from retrograd.functions.creation import asarray
from retrograd.functions.indexing import take
from retrograd.functions.linalg.determinants import diag
from retrograd.functions.linalg.tensor_equations import vander as ascending
from retrograd.functions.manipulation import concat, flip, moveaxis, swapaxes, unstack
from retrograd.functions.reductions import any as any_of
from retrograd.functions.searching import flat
from retrograd.ir import Dim, Node, as_shape, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather
from retrograd.ops.leaf import constant
from retrograd.ops.shape import Concat, reshape, slice_axis
from retrograd.tensor_type import Tensor


@op_function
def ravel(x: ArrayLike, /, order: str = "C") -> Any:
    """The elements as a vector: row by row ("C"), or column by column ("F").

    The result has the shape `[n]`. `OptionError` for another order.

    >>> import retrograd as rg
    >>> rg.ravel([[1, 2], [3, 4]], order="F").tolist()
    [1, 3, 2, 4]
    """
    x = as_node(x)
    if order not in ("C", "F", "A", "K"):
        raise OptionError(f"ravel: order is 'C' or 'F', not {order!r}")
    if order == "F":
        x = moveaxis(x, tuple(range(x.type.rank)), tuple(range(x.type.rank))[::-1])
    return flat(x)


@op_function
def rot90(
    x: ArrayLike,
    /,
    k: int = 1,
    axes: Sequence[int] = (0, 1),
    *,
    dims: Sequence[int] | None = None,
) -> Any:
    """x turned by k quarters in the plane of two axes, from the first towards the second.

    In the shape the sizes of both axes change places where k is odd. `ShapeError` for axes that are
    not two different ones, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    x, axes = as_node(x), one_axis(axes, dims, (0, 1))
    if len(tuple(axes)) != 2:
        raise ShapeError(f"rot90 turns in the plane of two axes, not of {tuple(axes)}")
    i, j = (normal_axis(a, x.type.rank, "rot90") for a in axes)
    if i == j:
        raise ShapeError(f"rot90 turns in the plane of two axes, and {tuple(axes)} are one")
    turns = integer(k, "rot90: the number of turns") % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (i, j))
    return swapaxes(flip(x, j), i, j) if turns == 1 else flip(swapaxes(x, i, j), j)


@op_function
def fliplr(x: ArrayLike, /) -> Any:
    """The order of the columns (axis 1) reversed.

    Shape and dtype stay. `AxisError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    return flip(as_node(x), 1)


@op_function
def flipud(x: ArrayLike, /) -> Any:
    """The order of the rows (axis 0) reversed.

    Shape and dtype stay. `AxisError` for an array without axes.

    >>> import retrograd as rg
    >>> rg.flipud([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """
    return flip(as_node(x), 0)


@op_function
def rollaxis(x: ArrayLike, axis: int, start: int = 0) -> Any:
    """The axis moved back until it lies before `start`; `rg.moveaxis` is easier to read.

    The sizes change places with the axes. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.rollaxis(rg.ones((3, 4, 5)), 2).shape
    (5, 3, 4)
    """
    x = as_node(x)
    n = x.type.rank
    at = normal_axis(axis, n, "rollaxis")
    to = integer(start, "rollaxis: the start")
    if not -n <= to <= n:
        raise AxisError(f"rollaxis: start {start} of an array with {n} axes is {-n} to {n}")
    to = to + n if to < 0 else to
    return moveaxis(x, at, to - 1 if at < to else to)


@op_function
def diagflat(v: ArrayLike, k: int = 0) -> Any:
    """A square matrix with the flattened v as its k-th diagonal, zero elsewhere.

    n elements of any shape give `[n + |k|, n + |k|]`. `ShapeError` for a k that is no integer.

    >>> import retrograd as rg
    >>> rg.diagflat([[1, 2]]).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(flat(as_node(v)), k)


# -- joining and splitting -------------------------------------------------------------------------
def _raised(x: Node, rank: int) -> Node:
    return reshape(x, (1,) * (rank - x.type.rank) + x.shape) if x.type.rank < rank else x


def _thick(x: Node) -> Node:
    """An array of three axes, as `dstack` and `atleast_3d` have it."""
    if x.type.rank > 2:
        return x
    return reshape(x, (*((1,) * (2 - x.type.rank) if x.type.rank < 2 else ()), *x.shape, 1))


def _each(arrays: Sequence[Any], change: Callable[[Node], Node]) -> Any:
    found = [change(as_node(x)) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@op_function
def atleast_1d(*arrays: ArrayLike) -> Any:
    """Each array with one axis at least; a tuple of several.

    Shapes `[]` become `[1]`. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.atleast_1d(3.0).shape
    (1,)
    """
    return _each(arrays, lambda x: _raised(x, 1))


@op_function
def atleast_2d(*arrays: ArrayLike) -> Any:
    """Each array with two axes at least, the new ones in front; a tuple of several.

    Shapes `[n]` become `[1, n]`. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.atleast_2d([3.0, 4.0]).shape
    (1, 2)
    """
    return _each(arrays, lambda x: _raised(x, 2))


@op_function
def atleast_3d(*arrays: ArrayLike) -> Any:
    """Each array with three axes at least; a tuple of several.

    Shapes `[n]` become `[1, n, 1]`, `[m, n]` become `[m, n, 1]`. `DTypeError` for what is no array
    of numbers.

    >>> import retrograd as rg
    >>> rg.atleast_3d([3.0, 4.0]).shape
    (1, 2, 1)
    """
    return _each(arrays, _thick)


def _nodes(what: str, arrays: Any) -> list[Node]:
    if isinstance(arrays, Node):
        arrays = unstack(arrays)
    if not len(arrays):
        raise ShapeError(f"{what} needs at least one array")
    return alike(*arrays)


@op_function
def vstack(tup: Sequence[ArrayLike]) -> Any:
    """Arrays joined along axis 0; vectors `[n]` are rows `[1, n]`.

    `[m, n]` and `[k, n]` to `[m + k, n]`. `ShapeError` where the other sizes differ, or there is no
    array.

    >>> import retrograd as rg
    >>> rg.vstack([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return Concat(0)(*(_raised(x, 2) for x in _nodes("vstack", tup)))


@op_function
def hstack(tup: Sequence[ArrayLike]) -> Any:
    """Arrays joined along axis 1, vectors along their only one.

    `[m, n]` and `[m, k]` to `[m, n + k]`. `ShapeError` where the other sizes differ, or there is no
    array.

    >>> import retrograd as rg
    >>> rg.hstack([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    nodes = [_raised(x, 1) for x in _nodes("hstack", tup)]
    return Concat(0 if nodes[0].type.rank == 1 else 1)(*nodes)


@op_function
def dstack(tup: Sequence[ArrayLike]) -> Any:
    """Arrays joined along axis 2; `[n]` counts as `[1, n, 1]`, `[m, n]` as `[m, n, 1]`.

    `ShapeError` where the other sizes differ, or there is no array.

    >>> import retrograd as rg
    >>> rg.dstack([[1, 2], [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return Concat(2)(*(_thick(x) for x in _nodes("dstack", tup)))


@op_function
def column_stack(tup: Sequence[ArrayLike]) -> Any:
    """Vectors `[n]` as columns, and matrices, side by side.

    k vectors give `[n, k]`. `ShapeError` where the sizes differ, or there is no array.

    >>> import retrograd as rg
    >>> rg.column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    nodes = _nodes("column_stack", tup)
    return Concat(1)(*(reshape(x, (*x.shape, 1)[-2:] if x.type.rank else (1, 1))
                       if x.type.rank < 2 else x for x in nodes))  # fmt: skip


def block(arrays: Any) -> Tensor:
    """Nested lists of arrays put together: the innermost along the last axis, those around them
    along the one before, and so on. Arrays get axes of size 1 in front as needed.

    Shapes are those of `concat`. The depth of all lists is the same, or it is an `ArgumentError`;
    `ShapeError` for sizes that do not fit.

    >>> import retrograd as rg
    >>> rg.block([[rg.ones((1, 1)), rg.zeros((1, 2))], [rg.zeros((1, 3))]]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    depth = _depth(arrays)
    leaves: list[Any] = []
    _leaves(arrays, leaves)
    rank = max(
        [depth, *(len(x.shape) if isinstance(x, LazyTensor) else np.ndim(x) for x in leaves)]
    )
    return _joined(arrays, depth, rank)


def _depth(x: Any) -> int:
    if not isinstance(x, list):
        return 0
    if not x:
        raise ArgumentError("block: a list is empty")
    depths = {_depth(y) for y in x}
    if len(depths) > 1:
        raise ArgumentError("block: lists are nested to different depths; each level is one axis")
    return 1 + depths.pop()


def _leaves(x: Any, found: list[Any]) -> None:
    if isinstance(x, list):
        for y in x:
            _leaves(y, found)
    else:
        found.append(x)


def _joined(x: Any, depth: int, rank: int) -> Any:
    if depth == 0:
        return _at_least(x, rank)
    return concat([_joined(y, depth - 1, rank) for y in x], axis=-depth)


@op_function
def _at_least(x: ArrayLike, rank: int, /) -> Any:
    return _raised(as_node(x), rank)


@op_function_of_several
def array_split(x: ArrayLike, indices_or_sections: Any, axis: int = 0) -> tuple[Node, ...]:
    """Parts along an axis, as a tuple: so many, the first ones larger by one where they do not
    divide, or those that end at the given indices. (`rg.split` takes the sizes of parts.)

    Parts have the shape of x but for their size. `ShapeError` for less than one part, `AxisError`
    for an axis that x does not have.

    >>> import retrograd as rg
    >>> [y.tolist() for y in rg.array_split([1, 2, 3, 4, 5], 2)]
    [[1, 2, 3], [4, 5]]
    """
    x = as_node(x)
    return _parts(x, indices_or_sections, normal_axis(axis, x.type.rank, "array_split"))


def _parts(x: Node, wanted: Any, axis: int) -> tuple[Node, ...]:
    n = x.shape[axis]
    if isinstance(n, Dim):
        raise ShapeError(f"array_split along axis {axis} of {x.shape}, whose size is symbolic")
    given = as_array(wanted) if not isinstance(wanted, int) else wanted
    if isinstance(given, np.ndarray) and given.ndim:
        ends = [slice(int(i)).indices(n)[1] for i in given] + [n]
        starts = [0, *ends[:-1]]
    else:
        count = integer(as_array(wanted).item(), "array_split: the number of parts")
        if count < 1:
            raise ShapeError(f"array_split into {count} parts")
        size, more = divmod(n, count)
        ends = np.cumsum([size + 1] * more + [size] * (count - more)).tolist()
        starts = [0, *ends[:-1]]
    return tuple(slice_axis(x, axis, a, max(a, b)) for a, b in zip(starts, ends, strict=True))


def _even_parts(what: str, x: Any, wanted: Any, axis: int, rank: int) -> tuple[Node, ...]:
    node = as_node(x)
    if node.type.rank < rank:
        raise ShapeError(f"{what} takes an array of {rank} axes or more, not {node.type}")
    n = node.shape[axis]
    if isinstance(wanted, int) and (wanted < 1 or (isinstance(n, int) and n % wanted)):
        raise ShapeError(f"{what} of {n} elements into {wanted} equal parts; see rg.array_split")
    return _parts(node, wanted, axis)


@op_function_of_several
def hsplit(x: ArrayLike, indices_or_sections: Any) -> tuple[Node, ...]:
    """Parts along axis 1, or of a vector along its only one, as a tuple: so many equal ones, or
    those that end at the given indices.

    `ShapeError` where the shape does not divide.

    >>> import retrograd as rg
    >>> [y.tolist() for y in rg.hsplit([[1, 2], [3, 4]], 2)]
    [[[1], [3]], [[2], [4]]]
    """
    x = as_node(x)
    return _even_parts("hsplit", x, indices_or_sections, 1 if x.type.rank > 1 else 0, 1)


@op_function_of_several
def vsplit(x: ArrayLike, indices_or_sections: Any) -> tuple[Node, ...]:
    """Parts along axis 0 of a matrix or more, as a tuple: so many equal ones, or those that end at
    the given indices.

    `ShapeError` where the shape does not divide.

    >>> import retrograd as rg
    >>> [y.tolist() for y in rg.vsplit([[1, 2], [3, 4]], 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return _even_parts("vsplit", x, indices_or_sections, 0, 2)


@op_function_of_several
def dsplit(x: ArrayLike, indices_or_sections: Any) -> tuple[Node, ...]:
    """Parts along axis 2, as a tuple: so many equal ones, or those that end at the given indices.

    `ShapeError` where the shape does not divide, or there are less than three axes.

    >>> import retrograd as rg
    >>> [y.shape for y in rg.dsplit(rg.ones((2, 2, 4)), [1])]
    [(2, 2, 1), (2, 2, 3)]
    """
    return _even_parts("dsplit", x, indices_or_sections, 2, 3)


# -- inserting and deleting ------------------------------------------------------------------------
@op_function
def append(x: ArrayLike, values: ArrayLike, axis: int | None = None) -> Any:
    """The values joined to the end of x along an axis; None flattens both first.

    The dtypes are promoted; the shape grows along the axis. `ShapeError` where the other sizes
    differ, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.append([1, 2], [[3], [4]]).tolist()
    [1, 2, 3, 4]
    """
    a, b = alike(x, values)
    if axis is None:
        return Concat(0)(flat(a), flat(b))
    if a.type.rank != b.type.rank:
        raise ShapeError(f"append of {b.type} to {a.type} along axis {axis}: the axes differ")
    return Concat(normal_axis(axis, a.type.rank, "append"))(a, b)


def _row_of(x: Any, axis: int | None, what: str) -> tuple[Node, int, int]:
    """An array flattened unless an axis is given, the axis and its size."""
    node = as_node(x)
    if axis is None:
        node, axis = flat(node), 0
    at = normal_axis(axis, node.type.rank, what)
    n = node.shape[at]
    if isinstance(n, Dim):
        raise ShapeError(f"{what} along axis {at} of {node.shape}, whose size is symbolic")
    return node, at, n


def _places(obj: Any, what: str) -> Any:
    """Positions as NumPy takes them; they decide on shapes, so that they are known."""
    if isinstance(obj, slice | int) and not isinstance(obj, bool):
        return obj
    found = as_array(obj) if np.size(obj) or hasattr(obj, "dtype") else np.zeros(0, np.int64)
    if found.dtype.kind not in "iub":
        raise IndexRangeError(f"{what}: positions are integers, a slice or a mask, not {obj!r:.60}")
    return found


def _indexed(what: str, change: Callable[[], Any]) -> Any:
    try:
        return change()
    except (IndexError, ValueError) as error:
        raise IndexRangeError(f"{what}: {error}") from None


def delete(x: ArrayLike, obj: Any, axis: int | None = None) -> Tensor:
    """x without the elements at the given positions along an axis; None flattens first. `obj` is a
    position, a slice, a list of positions, or a mask.

    `[..., n, ...]` to `[..., n - k, ...]`; the gradient of what is deleted is 0. `IndexRangeError`
    for a position outside, `TraceError` for positions that are traced.

    >>> import retrograd as rg
    >>> rg.delete([10, 20, 30], 1).tolist()
    [10, 30]
    """
    return _delete(x, _places(obj, "delete"), axis)


@op_function
def _delete(x: ArrayLike, obj: Any, axis: int | None, /) -> Any:
    x, at, n = _row_of(x, axis, "delete")
    kept = _indexed("delete", lambda: np.delete(np.arange(n), obj))
    return Gather(at)(x, constant(kept.astype(np.int64)))


def insert(x: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Tensor:
    """x with the values inserted before the given positions along an axis; None flattens first.
    `obj` is a position, a slice, a list of positions, or a mask.

    `[..., n, ...]` to `[..., n + k, ...]`, the values broadcast to `[..., k, ...]` and in the dtype
    of x. `IndexRangeError` for a position outside, `TraceError` for positions that are traced.

    >>> import retrograd as rg
    >>> rg.insert([10, 20], 1, 15).tolist()
    [10, 15, 20]
    """
    return _insert(x, _places(obj, "insert"), values, axis)


@op_function
def _insert(x: ArrayLike, obj: Any, values: ArrayLike, axis: int | None, /) -> Any:
    x, at, n = _row_of(x, axis, "insert")
    new = rounded(as_node(values, x.dtype), x.dtype)
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    elif isinstance(obj, np.ndarray) and obj.dtype == bool:
        obj = np.flatnonzero(obj)
    new = _raised(new, x.type.rank)
    if np.ndim(obj) == 0:  # the values are a block that goes in front of one place
        new = as_node(moveaxis(new, 0, at))
        count = integer(new.shape[at], "insert: the number of values")
    else:
        count = int(np.size(obj))
    shape = (*x.shape[:at], count, *x.shape[at + 1 :])
    if broadcast_shapes(new.shape, shape) != shape:
        raise ShapeError(f"insert: values of the shape {new.shape} do not broadcast to {shape}")
    places = np.full(count, obj) if np.ndim(obj) == 0 else np.ravel(obj)
    order = _indexed("insert", lambda: np.insert(np.arange(n), places, n + np.arange(count)))
    return Gather(at)(Concat(at)(x, broadcast_to(new, shape)), constant(order.astype(np.int64)))


@op_function
def resize(x: ArrayLike, new_shape: Any) -> Any:
    """The elements of x in another shape: repeated from the start where there are too few, cut off
    where there are too many. (`rg.reshape` keeps their number.)

    An x without elements gives zeros. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> rg.resize([1, 2, 3], (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    row: Any = flat(as_node(x))
    shape: Any = as_shape(new_shape)
    if any(isinstance(d, Dim) for d in (*shape, *row.shape)):
        raise ShapeError(
            f"resize of {row.type} to {shape}: sizes are known numbers, and one is symbolic"
        )
    if row.shape[0] == 0:
        return full(0, row.type.with_shape(shape))
    places = np.resize(np.arange(row.shape[0]), shape)
    return Gather(0)(row, constant(places.astype(np.int64)))


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Tensor:
    """x without the zeros at the front ("f"), the back ("b") or both along each axis.

    The shape follows from values: `TraceError` in a traced function. `OptionError` for
    another `trim`.

    >>> import retrograd as rg
    >>> rg.trim_zeros([0, 0, 1, 2, 0]).tolist()
    [1, 2]
    """
    where = trim.lower()
    if where not in ("f", "b", "fb", "bf"):
        raise OptionError(f"trim_zeros: trim is 'f', 'b' or 'fb', not {trim!r}")
    x: Any = asarray(filt)
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    for at in [normal_axis(int(a), x.ndim, "trim_zeros") for a in axes]:
        others = tuple(i for i in range(x.ndim) if i != at)
        some = np.flatnonzero(any_of(x, axis=others).value() if others else x.value() != 0)
        n = x.shape[at]
        first = (some[0] if len(some) else n) if "f" in where else 0
        last = (some[-1] + 1 if len(some) else first) if "b" in where else n
        x = x[(slice(None),) * at + (slice(int(first), int(last)),)]
    return x


@op_function
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix of a vector: its powers as columns, the highest first unless
    `increasing`; N of them, as many as elements by default.

    `[n]` to `[n, N]`, integers as int64. `ShapeError` for anything but a vector.

    >>> import retrograd as rg
    >>> rg.vander([2.0, 3.0], 3).tolist()
    [[4.0, 2.0, 1.0], [9.0, 3.0, 1.0]]
    """
    x = as_node(x)
    if x.type.rank != 1:
        raise ShapeError(f"vander takes a vector, not {x.type}; stacks of them: rg.linalg.vander")
    if not x.dtype.is_inexact:  # powers of few bits overflow soon
        x = el.cast(x, int64)
    powers = ascending(x, N=x.shape[0] if N is None else N)
    return powers if increasing else flip(powers, 1)


@op_function
def compress(condition: Any, a: ArrayLike, axis: int | None = None) -> Any:
    """The slices of an array along an axis where the condition is true; None flattens first.

    `[..., n, ...]` to `[..., k, ...]`. The condition is a vector of at most n values, or it is an
    `IndexRangeError`; it decides on the shape, so that it is known: `TraceError` where it is
    traced.

    >>> import retrograd as rg
    >>> rg.compress([True, False, True], [10, 20, 30]).tolist()
    [10, 30]
    """
    mask = np.asarray(as_array(condition)).astype(bool)
    node, at = (flat(as_node(a)), 0) if axis is None else (as_node(a), axis)
    if mask.ndim != 1:
        raise ShapeError(f"compress: the condition is a vector, not of the shape {mask.shape}")
    return take(node, np.flatnonzero(mask), axis=at)
