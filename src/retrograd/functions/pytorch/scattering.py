"""Writing at places under PyTorch's names: each gives a changed copy of x."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograd.coming_from.keywords import respells
from retrograd.eager.conversion import as_array, integer_range
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions import elementwise as functions
from retrograd.functions.broadcasting import as_node, broadcast_to, integer, normal_axis
from retrograd.functions.indexing import getitem, index_of, of_dtype
from retrograd.functions.manipulation import moveaxis
from retrograd.functions.pytorch.gathering import check_index, flat, part_of
from retrograd.functions.pytorch.shapes import at_axis
from retrograd.functions.scatter import SCATTERS, IndexUpdater, updated
from retrograd.functions.scatter import scatter_add as add_along
from retrograd.ir import Dim, Node, as_shape, bool_, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops import shape as ops
from retrograd.ops.leaf import Iota
from retrograd.ops.scan import CumSum
from retrograd.tensor_type import Tensor

# How values meet what is there, by PyTorch's words.
MODES = {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min", "mean": "add"}
_OLD_WORDS = {"add": "add", "multiply": "multiply"}


def _put(x: Node, at: int, index: Node, source: Any, mode: str, what: str) -> Node:
    """x in which `x[index[i, j], j]` meets `source[i, j]`, here along the axis 0."""
    if x.type.rank == 0:
        row = _put(ops.reshape(x, (1,)), 0, flat(index), _row(source), mode, what)
        return ops.reshape(row, ())
    if index.type.rank == 0:
        return _put(x, at, flat(index), _row(source), mode, what)
    check_index(x, index, at, what)
    value = of_dtype(source, x, what)
    if value.type.rank:
        check_index(value, index, -1, what)
        value = part_of(value, index.shape)
    value = broadcast_to(value, index.shape)
    others = [a for a in range(x.type.rank) if a != at]
    if all(x.shape[a] == index.shape[a] for a in others):
        order = (*others, at)
        last = x.type.rank - 1
        moved = [ops.permute(n, order) for n in (x, index, value)]
        return ops.permute(SCATTERS[mode](last, last)(*moved), ops.inverse(order))
    places = [index if a == at else Iota(index.shape, a, int64)() for a in range(x.type.rank)]
    return as_node(updated(x, places, ("indices",) * x.type.rank, value, mode))


def _row(source: Any) -> Any:
    return flat(source) if isinstance(source, Node) else source


def _source(src: Any, value: Any, what: str) -> Any:
    if (src is None) == (value is None):
        raise OptionError(f"{what} takes src, an array, or value, a number")
    return value if src is None else src


@op_function
def scatter(
    x: ArrayLike,
    /,
    dim: int,
    index: ArrayLike,
    src: ArrayLike | None = None,
    *,
    value: ArrayLike | None = None,
    reduce: str | None = None,
) -> Any:
    """x in which `x[i, index[i, j]]` is `src[i, j]`, here for `dim=1`; where the index names an
    element more than once the last value stays. With `reduce="add"` or `"multiply"` values meet
    what is there.

    Index and source may be shorter than x along the other axes; the shape is that of x.
    `ShapeError` where they are longer, `IndexRangeError` for a place beyond the axis, `DTypeError`
    for floats put into integers.

    >>> import retrograd as rg
    >>> rg.scatter(rg.zeros(3), 0, rg.tensor([2, 0]), rg.tensor([1.0, 2.0])).tolist()
    [2.0, 0.0, 1.0]
    """
    if reduce is not None and reduce not in _OLD_WORDS:
        raise OptionError(f"scatter: reduce is 'add' or 'multiply', not {reduce!r}; "
                          "see scatter_reduce")  # fmt: skip
    x, source = as_node(x), _source(src, value, "scatter")
    at = normal_axis(dim, max(x.type.rank, 1), "scatter")
    mode = "set" if reduce is None else _OLD_WORDS[reduce]
    return _put(x, at, index_of(index, "scatter"), source, mode, "scatter")


@op_function
def add_at(x: ArrayLike, /, dim: int, index: ArrayLike, src: ArrayLike) -> Any:
    """x with `src[i, j]` added to `x[i, index[i, j]]`, here for `dim=1`, as often as the index
    names it: `x.scatter_add(dim, index, src)`.

    The shape is that of x. `ShapeError` for an index longer than x along another axis,
    `IndexRangeError` for a place beyond the axis.

    >>> import retrograd as rg
    >>> rg.zeros(2).scatter_add(0, rg.tensor([1, 1]), rg.ones(2)).tolist()
    [0.0, 2.0]
    """
    x = as_node(x)
    at = normal_axis(dim, max(x.type.rank, 1), "scatter_add")
    return _put(x, at, index_of(index, "scatter_add"), src, "add", "scatter_add")


@op_function
def scatter_add(
    x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: ArrayLike = 0
) -> Any:
    """x with updates added at the given positions along an axis; positions may repeat.

    `updates` has the shape of x with the axis replaced by the axes of `indices`. The order of
    addition is fixed, for every number of threads: each place takes its updates in their order, in
    blocks of sixteen whose totals are added up in twice the precision. So of any number of updates
    the error is that of a block, at most `17 * eps` times the sum of absolute values; half
    precision is added up in float32 and rounded once.

    Called as in PyTorch, `scatter_add(x, dim, index, src)`, it is `x.scatter_add(dim, index, src)`.

    `IndexRangeError` for a position outside the axis, `ShapeError` where the shape of `updates`
    does not fit, `DTypeError` for floats put into integers.

    >>> import retrograd as rg
    >>> rg.scatter_add([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 9.0]
    >>> rg.scatter_add(rg.zeros(2), 0, rg.tensor([1, 1]), rg.tensor([3.0, 4.0])).tolist()
    [0.0, 7.0]
    """
    if isinstance(axis, Node) and isinstance(indices, int):
        return add_at(as_node(x), indices, updates, axis)
    return add_along(as_node(x), indices, updates, axis)


@op_function
def scatter_reduce(
    x: ArrayLike,
    /,
    dim: int,
    index: ArrayLike,
    src: ArrayLike,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """x in which `x[i, index[i, j]]` meets `src[i, j]`, here for `dim=1`: by "sum", "prod", "mean",
    "amax" or "amin". Without `include_self` what was there does not count, where the index names
    it.

    The shape is that of x. `OptionError` for another way, `ShapeError` for an index longer than x
    along another axis, `IndexRangeError` for a place beyond the axis.

    >>> import retrograd as rg
    >>> rg.scatter_reduce(rg.ones(2), 0, rg.tensor([1, 1]), rg.tensor([2.0, 6.0]), "mean").tolist()
    [1.0, 3.0]
    """
    x, places = as_node(x), index_of(index, "scatter_reduce")
    at = normal_axis(dim, max(x.type.rank, 1), "scatter_reduce")

    def put(old: Node, new: Any, mode: str) -> Node:
        return _put(old, at, places, new, mode, "scatter_reduce")

    return _reduced(x, src, reduce, include_self, put)


def _reduced(x: Node, src: Any, reduce: str, include_self: bool, put: Any) -> Node:
    """Values met by a reduction; `put` writes some by a mode."""
    if reduce not in MODES:
        raise OptionError(f"reduce is one of {', '.join(MODES)}, not {reduce!r}")
    start = x if include_self else put(x, _neutral(x, reduce), "set")
    y: Node = put(start, src, MODES[reduce])
    if reduce == "mean":
        counts = put(full(0, x.type), 1, "add")
        one = full(1, x.type)
        counts = counts + one if include_self else el.max(counts, one)
        y = as_node(functions.floor_divide(y, counts)) if x.dtype.is_integer else el.div(y, counts)
    return y


def _neutral(x: Node, reduce: str) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    low, high = integer_range(x.dtype) if x.dtype.is_integer else (-math.inf, math.inf)
    return low if reduce == "amax" else high


def _along(x: Any, dim: int, index: Any, source: Any, mode: str, what: str) -> Node:
    """x in which the slices at places along an axis meet those of a source."""
    x, places = as_node(x), flat(index_of(index, what))
    if x.type.rank == 0:
        row = _along(ops.reshape(x, (1,)), 0, places, _row(source), mode, what)
        return ops.reshape(row, ())
    at = normal_axis(dim, x.type.rank, what)
    shape = (*x.shape[:at], places.shape[0], *x.shape[at + 1 :])
    value = of_dtype(source, x, what)
    if isinstance(source, Node) and value.shape != shape and value.type.rank:
        raise ShapeError(f"{what} into {x.shape}: the source is {value.shape}, not {shape}")
    result: Node = SCATTERS[mode](at)(x, places, broadcast_to(value, shape))
    return result


@op_function
def index_add(
    x: ArrayLike, /, dim: int, index: ArrayLike, source: ArrayLike, *, alpha: ArrayLike = 1
) -> Any:
    """x with `alpha` times the slices of `source` added at places along an axis, as often as the
    index names them.

    The source has the shape of x, but for as many slices as places. `ShapeError` otherwise,
    `IndexRangeError` for a place beyond the axis.

    >>> import retrograd as rg
    >>> rg.index_add(rg.zeros(3), 0, rg.tensor([0, 0]), rg.ones(2)).tolist()
    [2.0, 0.0, 0.0]
    """
    source = as_node(source)
    scaled = source if isinstance(alpha, int | float) and alpha == 1 else source * alpha
    return _along(x, dim, index, scaled, "add", "index_add")


@op_function
def index_copy(x: ArrayLike, /, dim: int, index: ArrayLike, source: ArrayLike) -> Any:
    """x with the slices at places along an axis replaced by those of `source`; the last one stays
    where the index names one more than once.

    The source has the shape of x, but for as many slices as places. `ShapeError` otherwise,
    `IndexRangeError` for a place beyond the axis.

    >>> import retrograd as rg
    >>> rg.index_copy(rg.zeros(3), 0, rg.tensor([2]), rg.ones(1)).tolist()
    [0.0, 0.0, 1.0]
    """
    return _along(x, dim, index, as_node(source), "set", "index_copy")


@op_function
def index_fill(x: ArrayLike, /, dim: int, index: ArrayLike, value: ArrayLike) -> Any:
    """x with the slices at places along an axis filled with a number.

    The shape is that of x. `DTypeError` for a float put into integers, `IndexRangeError` for a
    place beyond the axis.

    >>> import retrograd as rg
    >>> rg.index_fill(rg.zeros(3), 0, rg.tensor([2]), 7).tolist()
    [0.0, 0.0, 7.0]
    """
    return _along(x, dim, index, value, "set", "index_fill")


@op_function
def index_reduce(
    x: ArrayLike,
    /,
    dim: int,
    index: ArrayLike,
    source: ArrayLike,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """x in which slices at places along an axis meet those of `source`: by "prod", "mean", "amax"
    or "amin", as in `scatter_reduce`.

    The source has the shape of x, but for as many slices as places. `ShapeError` otherwise,
    `OptionError` for another way, `IndexRangeError` for a place beyond the axis.

    >>> import retrograd as rg
    >>> rg.index_reduce(rg.ones(2), 0, rg.tensor([0, 0]), rg.tensor([3.0, 5.0]), "prod").tolist()
    [15.0, 1.0]
    """
    x = as_node(x)

    def put(old: Node, new: Any, mode: str) -> Node:
        return _along(old, dim, index, new, mode, "index_reduce")

    return _reduced(x, as_node(source), reduce, include_self, put)


@respells
def index_put(x: Any, /, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """x with `x[indices]` replaced by values, or these added: `x.at[indices].set(values)`.

    The values broadcast to the shape of `x[indices]`, or it is a `ShapeError`; `IndexRangeError`
    for a place beyond an axis.

    >>> import retrograd as rg
    >>> rg.index_put(rg.zeros(3), [rg.tensor([0, 0])], rg.ones(2), accumulate=True).tolist()
    [2.0, 0.0, 0.0]
    """
    x = x if isinstance(x, LazyTensor | Node) else LazyTensor.handle_class.of(as_array(x))
    there = IndexUpdater(x)[tuple(indices)]
    return there.add(values) if accumulate else there.set(values)


@op_function
def put(x: ArrayLike, /, index: ArrayLike, source: ArrayLike, accumulate: bool = False) -> Any:
    """x in which the elements at places, counted in row-major order, are those of `source`, or
    these are added.

    Index and source have one shape; that of the result is that of x. `IndexRangeError` for a place
    beyond the elements.

    >>> import retrograd as rg
    >>> rg.tensor([[1, 2], [3, 4]]).put(rg.tensor([3]), rg.tensor([9])).tolist()
    [[1, 2], [3, 9]]
    """
    x, places = as_node(x), flat(index_of(index, "put"))
    value = broadcast_to(flat(of_dtype(source, x, "put")), places.shape)
    return ops.reshape(SCATTERS["add" if accumulate else "set"](0)(flat(x), places, value), x.shape)


@op_function
def masked_fill(x: ArrayLike, /, mask: ArrayLike, value: ArrayLike) -> Any:
    """x with a number where a mask is true; the dtype stays.

    The shapes of x and mask broadcast, or it is a `ShapeError`. `DTypeError` for a mask that is not
    boolean, and for a float put into integers.

    >>> import retrograd as rg
    >>> rg.masked_fill(rg.tensor([1.0, 2.0]), rg.tensor([True, False]), 0).tolist()
    [0.0, 2.0]
    """
    x, hidden = as_node(x), as_node(mask)
    if hidden.dtype is not bool_:
        raise DTypeError(f"masked_fill takes a boolean mask, not {hidden.dtype}")
    number = of_dtype(value, x, "masked_fill")
    if number.shape:
        raise ShapeError(f"masked_fill takes one number, not the shape {number.shape}; see where")
    return functions.where(hidden, number, x)


@op_function
def masked_scatter(x: ArrayLike, /, mask: ArrayLike, source: ArrayLike) -> Any:
    """x with elements of `source`, one after the other, where a mask is true.

    The shapes of x and mask broadcast. `ShapeError` where they do not, `IndexRangeError` where the
    source has fewer elements than are asked for.

    >>> import retrograd as rg
    >>> mask = rg.tensor([True, False, True])
    >>> rg.masked_scatter(rg.zeros(3), mask, rg.tensor([1.0, 2.0])).tolist()
    [1.0, 0.0, 2.0]
    """
    x, mask = as_node(x), as_node(mask)
    shape = functions.where(mask, x, x).shape
    hit, old = flat(broadcast_to(mask, shape)), broadcast_to(x, shape)
    row = flat(of_dtype(source, x, "masked_scatter"))
    counted = CumSum(0)(el.cast(hit, int64))
    place = el.select(hit, counted - 1, full(0, counted.type))
    row = row if row.shape != (0,) else full(0, x.type.with_shape((1,)))
    return functions.where(broadcast_to(mask, shape), ops.reshape(_taken(row, place), shape), old)


def _taken(row: Node, places: Node) -> Node:
    return as_node(getitem(row, (places,)))


@op_function
def select_scatter(x: ArrayLike, /, src: ArrayLike, dim: int, index: int) -> Any:
    """x with one slice along an axis replaced: `x.at[:, index].set(src)` for `dim=1`.

    The source has the shape of the slice. `ShapeError` otherwise, `IndexRangeError` for a place
    beyond the axis.

    >>> import retrograd as rg
    >>> rg.select_scatter(rg.zeros((2, 2)), rg.ones(2), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    x = as_node(x)
    key = at_axis(x, dim, integer(index, "select_scatter: an index"), "select_scatter")
    return _set(x, key, src, "select_scatter")


@op_function
def slice_scatter(
    x: ArrayLike,
    /,
    src: ArrayLike,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """x with a range along an axis replaced: `x.at[:, start:end:step].set(src)` for `dim=1`.

    The source has the shape of the range. `ShapeError` otherwise, `AxisError` for an axis that x
    does not have.

    >>> import retrograd as rg
    >>> rg.slice_scatter(rg.zeros(4), rg.ones(2), 0, 1, 3).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    x = as_node(x)
    key = at_axis(x, dim, slice(start, end, step), "slice_scatter")
    return _set(x, key, src, "slice_scatter")


@op_function
def diagonal_scatter(
    x: ArrayLike, /, src: ArrayLike, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    """x with the diagonal of the matrices in two axes replaced; above it for positive offsets.

    The source is `[..., k]`, as `diagonal` gives it. `ShapeError` for another shape, `AxisError`
    for axes that x does not have.

    >>> import retrograd as rg
    >>> rg.diagonal_scatter(rg.zeros((2, 2)), rg.ones(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = moveaxis(as_node(x), (dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    if isinstance(rows, Dim) or isinstance(columns, Dim):
        raise ShapeError(f"diagonal_scatter of matrices {rows} by {columns}: sizes are symbolic")
    first, skipped = max(-offset, 0), max(offset, 0)
    count = as_shape((max(min(rows - first, columns - skipped), 0),))
    step = Iota(count, 0, int64)()
    places = [step + first, step + skipped]
    y = _set(x, (..., *places), src, "diagonal_scatter")
    return moveaxis(y, (-2, -1), (dim1, dim2))


def _set(x: Node, key: tuple[Any, ...], src: Any, what: str) -> Node:
    arrays = [k for k in key if isinstance(k, Node)]
    plain = tuple("indices" if isinstance(k, Node) else k for k in key)
    value = as_node(src, x.dtype)
    room = getitem(x, key).shape
    if value.shape != room:
        raise ShapeError(f"{what} into {x.shape}: the source is {value.shape}, not {room}")
    return as_node(updated(x, arrays, plain, value, "set"))
