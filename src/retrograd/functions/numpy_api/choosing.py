"""Choosing elements: by conditions, by lists of choices, by order; positions as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import ArgumentError, IndexRangeError, OptionError, ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    broadcast_shapes,
    broadcast_to,
    integer,
    normal_axis,
)
from retrograd.functions.creation import asarray
from retrograd.functions.indexing import index_of, take_along_axis
from retrograd.functions.pytorch import shapes
from retrograd.functions.searching import flat, nonzero, number_of
from retrograd.functions.sorting import argsort, sort
from retrograd.ir import Dim, Node, as_shape, bool_, complex64, complex128, full, int64, product
from retrograd.ops import elementwise as el
from retrograd.ops.complex import imag, real
from retrograd.ops.index import gather_along
from retrograd.ops.shape import Concat, reshape, slice_axis
from retrograd.tensor_type import Tensor


@op_function
def select(
    condlist: ArrayLike | Sequence[ArrayLike],
    choicelist: int | Sequence[ArrayLike],
    default: Any = 0,
) -> Any:
    """For each element that of the first choice whose condition is true; `default` where none is.

    All shapes broadcast, and the dtypes of the choices are promoted. What is not chosen gets a
    gradient of exactly 0. `ArgumentError` for lists of different lengths, or none. PyTorch's
    `select(x, dim, index)` is `x.select(dim, index)`: so is this, where two numbers follow.

    >>> import retrograd as rg
    >>> x = rg.arange(4)
    >>> rg.select([x < 1, x > 2], [x, x * 10], -1).tolist()
    [0, -1, -1, 30]
    >>> rg.select(x, 0, -1).item()
    3
    """
    if isinstance(choicelist, int):
        return shapes.select(condlist, choicelist, default)
    conditions = list(condlist) if not isinstance(condlist, Node) else _rows(condlist)
    choices = list(choicelist) if not isinstance(choicelist, Node) else _rows(choicelist)
    if len(conditions) != len(choices) or not choices:
        raise ArgumentError(
            f"select takes a choice for each condition, not {len(choices)} for {len(conditions)}"
        )
    *nodes, y = alike(*choices, default)
    for c, x in zip(reversed(conditions), reversed(nodes), strict=True):
        y = as_node(f.where(as_node(c), x, y))
    return y


def _rows(x: Node) -> list[Node]:
    return [reshape(slice_axis(x, 0, i, i + 1), x.shape[1:]) for i in range(as_known(x.shape[0]))]


def as_known(n: int | Dim) -> int:
    if isinstance(n, Dim):
        raise ShapeError(f"a list of {n} arrays, which is a symbolic size; give a list of arrays")
    return n


@op_function
def choose(a: ArrayLike, choices: Sequence[ArrayLike], *, mode: str = "raise") -> Any:
    """`y[i] = choices[a[i]][i]`: for each element that of the array whose number stands in `a`.

    All shapes broadcast, and the dtypes of the choices are promoted. A number outside is an
    `IndexRangeError`, or with `mode` "wrap" taken modulo their count, with "clip" the first or
    last. `OptionError` for another mode.

    >>> import retrograd as rg
    >>> rg.choose([1, 0], [[1, 2], [10, 20]]).tolist()
    [10, 2]
    """
    index = el.cast(index_of(a, "choose"), int64)
    nodes = alike(*(_rows(choices) if isinstance(choices, Node) else choices))
    shape = broadcast_shapes(index.shape, *(n.shape for n in nodes))
    index = limited(broadcast_to(index, shape), len(nodes), mode, "choose")
    rows = [reshape(broadcast_to(n, shape), (1, *shape)) for n in nodes]
    places = reshape(_from_front(index, len(nodes)), (1, *shape))
    return reshape(as_node(take_along_axis(Concat(0)(*rows), places, 0)), shape)


def _from_front(index: Node, n: int) -> Node:
    """Negative numbers, which would count from the back, out of range."""
    return el.select(index < 0, index - n, index)


def limited(index: Node, n: int | Dim, mode: str, what: str) -> Node:
    """Positions brought into range as NumPy's `mode` says."""
    if mode == "raise":
        return index
    size = number_of(n, index)
    if mode == "wrap":
        return el.mod(index, size)
    if mode == "clip":
        return el.min(el.max(index, full(0, index.type)), size - 1)
    raise OptionError(f"{what}: mode is 'raise', 'wrap' or 'clip', not {mode!r}")


def piecewise(
    x: ArrayLike,
    condlist: Sequence[Any],
    funclist: Sequence[Callable[..., Any] | float],
    *args: Any,
    **kw: Any,
) -> Tensor:
    """A function given in pieces: where a condition is true, the function (or number) of the same
    place; one function more is for the rest, which is 0 otherwise. Of several true conditions the
    last counts.

    Shape and dtype are those of x. Each function is called with all of x, and what is not taken
    gets a gradient of exactly 0. `ArgumentError` where the lists do not fit.

    >>> import retrograd as rg
    >>> rg.piecewise(rg.tensor([-1.0, 4.0]), [[True, False]], [lambda v: -v, rg.sqrt]).tolist()
    [1.0, 2.0]
    """
    given: Any = asarray(x)
    conditions: Any = condlist
    if not isinstance(condlist, list | tuple) or np.ndim(condlist[0]) < given.ndim:
        conditions = [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(
            f"piecewise of {len(conditions)} conditions takes as many functions, or one more, not "
            f"{len(funclist)}"
        )
    pieces = [fn(given, *args, **kw) if callable(fn) else fn for fn in funclist]
    rest = pieces[len(conditions)] if len(pieces) > len(conditions) else 0
    y = f.where(False, given, f.astype(rest, given.dtype))
    for c, piece in zip(conditions, pieces, strict=False):
        y = f.where(c, f.astype(piece, given.dtype), y)
    return y


def extract(condition: ArrayLike, arr: ArrayLike) -> Tensor:
    """The elements of arr, flattened, where the condition, flattened, is true.

    A vector `[k]`. It depends on the values of the condition: `TraceError` where it is traced.

    >>> import retrograd as rg
    >>> rg.extract([[True, False], [True, True]], [[1, 2], [3, 4]]).tolist()
    [1, 3, 4]
    """
    x: Any = asarray(arr)
    mask: Any = f.astype(condition, bool_)
    return x.reshape((-1,))[mask.reshape((-1,))]


def flatnonzero(x: ArrayLike, /, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    """The positions, int64, of what is not zero in the flattened x; see `nonzero`.

    A vector `[k]`. Without `size` in a traced function it is a `TraceError`.

    >>> import retrograd as rg
    >>> rg.flatnonzero([[0, 1], [2, 0]]).tolist()
    [1, 2]
    """
    return nonzero(_flattened(x), size=size, fill_value=fill_value)[0]


@op_function
def _flattened(x: ArrayLike, /) -> Any:
    return flat(as_node(x))


# -- order -----------------------------------------------------------------------------------------
def _in_order(x: Any, kth: Any, axis: int | None, what: str) -> tuple[Node, int]:
    node = as_node(x)
    if axis is None:
        node, axis = flat(node), -1
    at = normal_axis(axis, node.type.rank, what)
    n = node.shape[at]
    for k in np.atleast_1d(as_array(kth)).tolist():
        k = integer(k, f"{what}: kth")
        if not isinstance(n, Dim) and not -n <= k < n:
            raise IndexRangeError(f"{what}: place {k} of {n} along axis {at} of {node.shape}")
    return node, at


@op_function
def partition(
    x: ArrayLike, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """The elements along an axis, ordered so far that the k-th is where it is in the sorted axis,
    none in front of it larger and none behind it smaller; here they are sorted.

    The shape and dtype of x. `IndexRangeError` for a place outside, `DTypeError` for complex
    numbers, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.partition([3, 1, 2], 1).tolist()
    [1, 2, 3]
    """
    node, at = _in_order(x, kth, axis, "partition")
    return sort(node, axis=at)


@op_function
def argpartition(
    x: ArrayLike, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """The positions, int64, by which `partition` orders; see there.

    The shape of x. `IndexRangeError` for a place outside, `AxisError` for an axis that x does not
    have.

    >>> import retrograd as rg
    >>> rg.argpartition([3, 1, 2], 1).tolist()
    [1, 2, 0]
    """
    node, at = _in_order(x, kth, axis, "argpartition")
    return argsort(node, axis=at)


@op_function
def lexsort(keys: Sequence[ArrayLike], axis: int = -1) -> Any:
    """The positions, int64, that sort along an axis by several keys, the last one first.

    All keys have one shape, which is that of the result. `ShapeError` for keys of different
    shapes, or none.

    >>> import retrograd as rg
    >>> rg.lexsort([[2, 1, 0], [0, 1, 0]]).tolist()
    [2, 0, 1]
    """
    return _by_keys([as_node(k) for k in (_rows(keys) if isinstance(keys, Node) else keys)], axis)


def _by_keys(nodes: Sequence[Node], axis: int) -> Node:
    if not nodes or any(k.shape != nodes[0].shape for k in nodes):
        raise ShapeError(f"lexsort takes keys of one shape, not {[k.shape for k in nodes]}")
    at = normal_axis(axis, nodes[0].type.rank, "lexsort")
    order = as_node(argsort(nodes[0], axis=at))
    for key in nodes[1:]:
        order = gather_along(order, as_node(argsort(gather_along(key, order, at), axis=at)), at)
    return order


@op_function
def sort_complex(x: ArrayLike, /) -> Any:
    """The elements along the last axis as complex numbers, in the order of their real parts, equal
    ones in that of the imaginary parts.

    The shape of x; complex64, or complex128 of float64. `ShapeError` for an array without axes.

    >>> import retrograd as rg
    >>> rg.sort_complex([2j, 1 + 1j, 1 + 0j]).tolist()
    [2j, (1+0j), (1+1j)]
    """
    x = as_node(x)
    if not x.dtype.is_complex:
        wide = x.dtype.is_float and x.dtype.itemsize == 8
        x = el.cast(x, complex128 if wide else complex64)
    return gather_along(x, _by_keys([imag(x), real(x)], -1), x.type.rank - 1)


# -- positions -------------------------------------------------------------------------------------
@op_function
def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: Any, mode: Any = "raise", order: str = "C"
) -> Any:
    """Positions on several axes of the sizes `dims` as positions in the flattened array, int64.

    The shapes of the arrays, one for each axis, broadcast. A position outside is counted as if the
    array went on, unless `mode` says "wrap" or "clip" (for all axes or for each). `ShapeError`
    where there is not an array for each axis, `OptionError` for another order than "C" and "F".

    >>> import retrograd as rg
    >>> rg.ravel_multi_index(([1, 0], [2, 1]), (2, 3)).tolist()
    [5, 1]
    """
    sizes = as_shape(dims)
    parts = _rows(multi_index) if isinstance(multi_index, Node) else list(multi_index)
    if len(parts) != len(sizes):
        raise ShapeError(f"ravel_multi_index of {len(parts)} arrays for {len(sizes)} axes")
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    nodes = [el.cast(index_of(p, "ravel_multi_index"), int64) for p in parts]
    shape = broadcast_shapes(*(n.shape for n in nodes))
    total = full(0, nodes[0].type.with_shape(shape))
    for axis, (n, size) in enumerate(zip(nodes, sizes, strict=True)):
        place = limited(broadcast_to(n, shape), size, modes[axis], "ravel_multi_index")
        total = total + place * number_of(_stride(sizes, axis, order), place)
    return total


def _stride(sizes: Any, axis: int, order: str) -> int | Dim:
    if order not in ("C", "F"):
        raise OptionError(f"order is 'C' or 'F', not {order!r}")
    return product(sizes[axis + 1 :] if order == "C" else sizes[:axis])


@op_function_of_several
def unravel_index(indices: ArrayLike, shape: Any, order: str = "C") -> tuple[Node, ...]:
    """Positions in the flattened array as positions on the axes of `shape`: a tuple of int64
    arrays of the shape of `indices`.

    `OptionError` for another order than "C" and "F", `DTypeError` for what is not of integers.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.unravel_index([5, 1], (2, 3))]
    [[1, 0], [2, 1]]
    """
    at, sizes = el.cast(index_of(indices, "unravel_index"), int64), as_shape(shape)
    return tuple(
        el.mod(el.floor_div(at, number_of(_stride(sizes, axis, order), at)), number_of(n, at))
        for axis, n in enumerate(sizes)
    )


def _positions_in(found: Sequence[np.ndarray[Any, Any]]) -> tuple[Tensor, ...]:
    return tuple(asarray(np.asarray(i, np.int64)) for i in found)


@respells
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The positions, int64, on and below diagonal k of an n by m matrix, square by default.

    Two vectors of the shape `[count]`. `ShapeError` for a size that is no number.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = _sizes(n, m)
    return _positions_in(np.tril_indices(rows, k, columns))


@respells
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The positions, int64, on and above diagonal k of an n by m matrix, square by default.

    Two vectors of the shape `[count]`. `ShapeError` for a size that is no number.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = _sizes(n, m)
    return _positions_in(np.triu_indices(rows, k, columns))


def _sizes(n: Any, m: Any) -> tuple[int, int]:
    rows = integer(n, "the number of rows")
    return rows, rows if m is None else integer(m, "the number of columns")


def _matrix_sizes(x: Any, what: str) -> tuple[int, int]:
    shape = np.shape(x) if not isinstance(x, LazyTensor) else x.shape
    if len(shape) != 2:
        raise ShapeError(f"{what} takes a matrix, not an array of the shape {shape}")
    return as_known(shape[0]), as_known(shape[1])


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Tensor, ...]:
    """The positions, int64, on and below diagonal k of a matrix.

    Two vectors of the shape `[count]`. `ShapeError` for anything but a matrix.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.tril_indices_from(rg.ones((2, 2)), -1)]
    [[1], [0]]
    """
    n, m = _matrix_sizes(arr, "tril_indices_from")
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Tensor, ...]:
    """The positions, int64, on and above diagonal k of a matrix.

    Two vectors of the shape `[count]`. `ShapeError` for anything but a matrix.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.triu_indices_from(rg.ones((2, 2)), 1)]
    [[0], [1]]
    """
    n, m = _matrix_sizes(arr, "triu_indices_from")
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The positions, int64, of the diagonal of an array of ndim axes of the size n.

    So many vectors of the shape `[n]`. `ShapeError` for a size that is no number.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    return _positions_in(np.diag_indices(integer(n, "diag_indices: the size"), ndim))


def diag_indices_from(arr: ArrayLike) -> tuple[Tensor, ...]:
    """The positions, int64, of the diagonal of an array whose sizes are equal.

    A vector for each axis of the shape `[n]`. `ShapeError` for an array of less than two axes, or
    of different sizes.

    >>> import retrograd as rg
    >>> [i.tolist() for i in rg.diag_indices_from(rg.ones((2, 2)))]
    [[0, 1], [0, 1]]
    """
    shape = np.shape(arr) if not isinstance(arr, LazyTensor) else arr.shape
    if len(shape) < 2 or any(n != shape[0] for n in shape):
        raise ShapeError(f"diag_indices_from takes an array of equal sizes, not of {shape}")
    return diag_indices(as_known(shape[0]), len(shape))


def ix_(*arrays: ArrayLike) -> tuple[Tensor, ...]:
    """Index arrays of a grid: `x[rg.ix_(rows, columns)]` are the crossings. Masks count as the
    positions where they are true.

    Vectors `[n]`, `[m]` become `[n, 1]`, `[1, m]`. `ShapeError` for anything but vectors,
    `DTypeError` for what is neither integers nor a mask whose values are known.

    >>> import retrograd as rg
    >>> rg.arange(9).reshape(3, 3)[rg.ix_([0, 2], [1])].tolist()
    [[1], [7]]
    """
    tensors = [asarray(a) for a in arrays]
    return tuple(_ix(*(flatnonzero(t) if t.dtype == bool_ and t.ndim == 1 else t for t in tensors)))


@op_function_of_several
def _ix(*arrays: ArrayLike) -> tuple[Node, ...]:
    nodes = [as_node(a) for a in arrays]
    if any(n.type.rank != 1 for n in nodes):
        raise ShapeError(f"ix_ takes vectors, not {', '.join(str(n.type) for n in nodes)}")
    return tuple(
        reshape(index_of(n, "ix_"), (1,) * i + n.shape + (1,) * (len(nodes) - 1 - i))
        for i, n in enumerate(nodes)
    )
