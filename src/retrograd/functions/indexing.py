"""Indexing: `x[...]`, `take` and one-hot."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from retrograd.eager.conversion import as_array, holds_arrays
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.immediate.slicing import basic_indexing
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import (
    DTypeError,
    IndexKindError,
    IndexRangeError,
    OptionError,
    ShapeError,
    TraceError,
)
from retrograd.functions.broadcasting import (
    as_node,
    broadcast_shapes,
    broadcast_to,
    normal_axis,
    one_axis,
)
from retrograd.ir import (
    Dim,
    DType,
    Node,
    Shape,
    as_dtype,
    as_shape,
    bool_,
    float32,
    full,
    int64,
    product,
    spec,
)
from retrograd.ir.source import REFUSALS, locate, user_source
from retrograd.ops import elementwise as el
from retrograd.ops import shape as ops
from retrograd.ops.assume import is_less_here
from retrograd.ops.index import Gather, RavelIndex
from retrograd.ops.leaf import Iota, SizeOf, constant
from retrograd.tensor_type import Tensor


@op_function
@basic_indexing
def getitem(x: ArrayLike, key: Any, /) -> Any:
    """`x[key]`: integers, slices, `...`, `None` and integer arrays, as in NumPy. A single boolean
    makes an axis of one element, or of none.

    Index arrays are broadcast together; the axes they make stand where the indexed axes stood if
    nothing lies between them in the key, else in front. An index out of range is an
    `IndexRangeError`: at once where it is a number, when the program runs where it is in an array.
    """
    x = as_node(x)
    items, adjacent = items_of(x, key)
    if any(isinstance(k, Node | Chosen) for k in items):
        return look_up(x, items, adjacent).read()
    return _basic(x, items)


def items_of(x: Node, key: Any) -> tuple[list[Any], bool]:
    """The items of a key, one for every axis; and whether nothing, not even an empty `...`, lies
    between its index arrays and numbers."""
    given = [_item(k) for k in (key if isinstance(key, tuple) else (key,))]
    at = [i for i, k in enumerate(given) if isinstance(k, Node | Chosen | int)]
    return _complete(given, x), at == list(range(at[0], at[0] + len(at))) if at else True


_INDICES = "indices"  # in a key: index arrays stand here, which are given apart from it
_CHOICE = "choice"  # and here the one of a `Chosen`


class Chosen(NamedTuple):
    """A single boolean in a key: a new axis of one element, and the index [0] that takes it, or []
    that does not. It is broadcast with the other index arrays."""

    index: Any


def picked(x: LazyTensor, key: Any) -> Tensor:
    """`x[key]` for a key as a user writes it."""
    items = key if isinstance(key, tuple) else (key,)
    if all(k is None or k is Ellipsis or type(k) in (int, slice) for k in items):
        return getitem(x, items)
    return _picked(x, *apart(key, x.shape))


def apart(key: Any, shape: Shape) -> tuple[list[LazyTensor], tuple[Any, ...]]:
    """The index arrays of a key that a user wrote, and the key with something in their places;
    boolean masks as the positions they select."""
    items = key if isinstance(key, tuple) else (key,)
    try:
        plain = _by_position([_plain_item(k) for k in items], shape)
    except REFUSALS as error:
        locate(error, "x[key]", user_source())
        raise
    given = [k.index if isinstance(k, Chosen) else k for k in plain if _is_given(k)]
    arrays = [k if isinstance(k, LazyTensor) else LazyTensor.handle_class.of(k) for k in given]
    places = [_CHOICE if isinstance(k, Chosen) else _INDICES for k in plain if _is_given(k)]
    at = iter(places)
    return arrays, tuple([next(at) if _is_given(k) else k for k in plain])


def together(indices: Any, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key that was taken apart, with nodes for its index arrays."""
    given = iter(indices)
    apart = {_INDICES: lambda: next(given), _CHOICE: lambda: Chosen(next(given))}
    return tuple([apart[k]() if isinstance(k, str) else k for k in key])


@op_function
def _picked(x: ArrayLike, indices: ArrayLike, key: Any, /) -> Any:
    return getitem(x, together(indices, key))


def _is_given(k: Any) -> bool:
    return isinstance(k, LazyTensor | np.ndarray | Chosen)


def _takes_axes(k: Any) -> int:
    """How many axes of x an item of a key is about."""
    if k is None or k is Ellipsis or isinstance(k, Chosen):
        return 0
    return k.ndim if _is_mask(k) else 1


def _check_rank(taken: int, shape: Shape) -> None:
    if taken > len(shape):
        raise IndexRangeError(
            f"too many indices: they take {taken} axes, of an array that has {len(shape)}, of the "
            f"shape {shape}"
        )


def _by_position(items: list[Any], shape: Shape) -> list[Any]:
    """A key with the positions that masks select in place of the masks."""
    widths = [_takes_axes(k) for k in items]
    _check_rank(sum(widths), shape)
    new: list[Any] = []
    axis = 0
    for k, width in zip(items, widths, strict=True):
        if _is_mask(k):
            if shape[axis : axis + width] != k.shape:
                raise IndexRangeError(
                    f"a mask of the shape {k.shape} on axis {axis} of an array of the shape {shape}"
                )
            new.extend(np.nonzero(k) if width else [Chosen(np.zeros(int(k), np.int64))])
        else:
            new.append(k)
        axis += len(shape) - sum(widths) if k is Ellipsis else width
    return new


def _is_mask(k: Any) -> bool:
    return isinstance(k, np.ndarray) and k.dtype == np.bool_


def _plain_item(k: Any) -> Any:
    """One item: a number, slice, None, `...`, tensor or array of indices, or array of a mask."""
    if isinstance(k, list | tuple):
        try:
            k = as_array(k, None if len(k) else int64)
        except DTypeError as error:
            raise IndexKindError(f"an index is made of integers or booleans: {error}") from None
    if isinstance(k, bool | np.bool_):
        return np.array(k)
    if isinstance(k, str):
        raise IndexKindError(f"a string is no index: {k!r:.80}")
    if isinstance(k, LazyTensor):
        return _known_mask(k) if k.dtype is bool_ else k
    if isinstance(k, np.ndarray):
        return k if k.dtype == np.bool_ else np.array(as_array(k))
    return k


def _known_mask(k: LazyTensor) -> np.ndarray[Any, Any]:
    """The values of a mask, which selects as many elements as are true."""
    try:
        return k.value()
    except TraceError:
        raise TraceError(
            f"a mask of the shape {k.shape} that is traced selects a number of elements that is "
            "not known; use rg.where(mask, x, other), x[rg.nonzero(mask, size=n)], or "
            "x.at[mask].set(value)"
        ) from None


def _complete(items: list[Any], x: Node) -> list[Any]:
    """The key with `...` spelled out and every axis mentioned."""
    used = sum(_takes_axes(k) for k in items)
    _check_rank(used, x.shape)
    dots = [i for i, k in enumerate(items) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexRangeError("an index can hold one ... only")
    at = dots[0] if dots else len(items)
    return items[:at] + [slice(None)] * (x.type.rank - used) + items[at + 1 :]


def _item(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, slice | Chosen):
        return k
    if isinstance(k, Node):
        if not k.dtype.is_integer:
            raise IndexKindError(f"an index is made of integers, not {k.dtype}")
        return k
    try:
        return operator.index(k)
    except TypeError:
        raise IndexKindError(
            f"an index is an integer, a slice, ..., None or an integer array, not {k!r:.80}"
        ) from None


class BasicIndex(NamedTuple):
    """What a key of slices, integers and new axes takes: starts, stops and steps along all axes in
    ascending order; which axes are reversed then; and the axes of the result, -1 for new ones."""

    starts: tuple[Any, ...]
    stops: tuple[Any, ...]
    steps: tuple[int, ...]
    flips: tuple[int, ...]
    axes: tuple[int, ...]

    def takes_all(self, x: Node) -> bool:
        """Whether it takes all elements, in their order."""
        whole = self.stops == x.shape and not any(s != 1 for s in self.steps)
        return whole and self.starts == (0,) * x.type.rank

    def slice(self, x: Node) -> Node:
        """The elements, before any are reversed."""
        return ops.Slice(self.starts, self.stops, self.steps)(x)


def basic_index(x: Node, items: list[Any]) -> BasicIndex:
    """What such a key takes of x."""
    starts: list[Any] = []
    stops: list[Any] = []
    steps, flips, axes = [], [], []
    axis = 0
    for k in items:
        if k is None:
            axes.append(-1)
            continue
        n = x.shape[axis]
        start: int | Dim
        stop: int | Dim
        if isinstance(k, slice):
            start, stop, step = _range(k, n, axis)
            if step < 0:
                flips.append(axis)
            axes.append(axis)
        else:
            if isinstance(n, int) and not -n <= k < n:
                raise IndexRangeError(f"index {k} on axis {axis} of size {n}")
            at = k + n if k < 0 else k
            start, stop, step = at, at + 1, 1
        starts.append(start)
        stops.append(stop)
        steps.append(abs(step))
        axis += 1
    return BasicIndex(tuple(starts), tuple(stops), tuple(steps), tuple(flips), tuple(axes))


def _basic(x: Node, items: list[Any]) -> Node:
    """Slices, integers and new axes."""
    taken = basic_index(x, items)
    if taken.flips:
        x = ops.flip(taken.slice(x), taken.flips)
    elif not taken.takes_all(x):
        x = taken.slice(x)
    return ops.reshape(x, tuple(1 if a == -1 else x.shape[a] for a in taken.axes))


def _range(k: slice, n: int | Dim, axis: int) -> tuple[Any, Any, int]:
    """Start and stop of the elements in ascending order, and the step with its sign."""
    if not isinstance(n, Dim) and not any(isinstance(v, Dim) for v in (k.start, k.stop)):
        start, stop, step = _bounds(k, n, axis)
        count = len(range(start, stop, step))
        if step > 0:
            return start if count else 0, start + (count - 1) * step + 1 if count else 0, step
        last = start + (count - 1) * step
        return (last, start + 1, step) if count else (0, 0, step)
    return _symbolic_range(k, n, axis)


def _bounds(k: slice, n: int, axis: int) -> tuple[int, int, int]:
    try:
        return k.indices(n)
    except ValueError:
        raise ShapeError(f"axis {axis} of size {n} is sliced with a step of 0") from None
    except TypeError:
        raise IndexKindError(f"the bounds of a slice are integers or None, not {k!r:.80}") from None


def _symbolic_range(k: slice, n: int | Dim, axis: int) -> tuple[Any, Any, int]:
    """The same where the size or a bound is symbolic: a negative bound counts from the end."""
    step = 1 if k.step is None else operator.index(k.step)
    if step == 0:
        raise ShapeError(f"axis {axis} of size {n} is sliced with a step of 0")
    start, stop = (
        v + n if isinstance(v, int) and v < 0 else v for v in (k.start, k.stop)
    )  # None stays
    if step > 0:
        start, stop = (_within(v, n) for v in (start, stop))
        return 0 if start is None else start, n if stop is None else stop, step
    first = n - 1 if start is None else start
    end = -1 if stop is None else stop
    count = (first - end - step - 1) // -step
    return first + (count - 1) * step, first + 1, step


def _within(bound: Any, n: int | Dim) -> Any:
    """A bound that is on the axis, as far as sizes are known."""
    if not isinstance(bound, int | Dim):
        return bound
    return n if is_less_here(n, bound) else 0 if is_less_here(bound, 0) else bound


class Lookup(NamedTuple):
    """What index arrays of a key read: an array in which the axes that they are about, and those
    between, are one `axis`; the positions there; and the order of the axes of what is read."""

    x: Node
    axis: int
    places: Node
    order: tuple[int, ...]
    joined: bool

    def read(self) -> Node:
        """The elements of the key."""
        last, lead = self.x.type.rank - 1, self.places.type.rank
        if self.joined or self.axis < last:
            return ops.permute(Gather(self.axis)(self.x, self.places), self.order)
        # Rows: to add these up for the gradient takes less time than single numbers.
        y = Gather(0)(ops.permute(self.x, (last, *range(last))), self.places)
        return ops.permute(y, (*range(lead, lead + last), *range(lead)))


def look_up(x: Node, items: list[Any], adjacent: bool) -> Lookup:
    """Where index arrays of a key read, after the slices and new axes have been done; numbers count
    as arrays."""
    plain = [slice(None) if isinstance(k, Node | int) else k for k in items]
    plain = [None if isinstance(k, Chosen) else k for k in plain]
    arrays: dict[int, Node] = {}
    for i, k in enumerate(items):
        if isinstance(k, int):
            n = x.shape[sum(_takes_axes(j) for j in items[:i])]
            if isinstance(n, int) and not -n <= k < n:
                raise IndexRangeError(f"index {k} on an axis of size {n}")
            arrays[i] = constant(np.int64(k))
        elif isinstance(k, Node):
            arrays[i] = k
        elif isinstance(k, Chosen):
            arrays[i] = k.index
    x = _basic(x, plain)
    try:
        common = broadcast_shapes(*(n.shape for n in arrays.values()))
    except ShapeError as error:
        raise IndexRangeError(f"index arrays of a key are broadcast: {error}") from None
    first, last, lead = min(arrays), max(arrays), len(common)
    index = arrays[first]
    if last > first:
        index = _joined(x, {i: broadcast_to(n, common) for i, n in arrays.items()}, common)
        joined = product(x.shape[first : last + 1])
        x = ops.reshape(x, (*x.shape[:first], joined, *x.shape[last + 1 :]))
    rank = x.type.rank - 1 + index.type.rank
    order = tuple(range(rank))
    if not adjacent:  # the axes of the index arrays come in front
        order = (*order[first : first + lead], *order[:first], *order[first + lead :])
    return Lookup(x, first, index, order, last > first)


def _joined(x: Node, arrays: Mapping[int, Node], common: Shape) -> Node:
    """Positions on all axes from the first index array to the last as one: those between are read
    as a whole, behind the axes of the index arrays."""
    first, last = min(arrays), max(arrays)
    between = [i for i in range(first, last + 1) if i not in arrays]
    shape = (*common, *(x.shape[i] for i in between))
    added = range(len(common), len(shape))
    places = [
        ops.expand(arrays[i], shape, added)
        if i in arrays
        else Iota(shape, len(common) + between.index(i), int64)()
        for i in range(first, last + 1)
    ]
    return RavelIndex(x.shape[first : last + 1], first)(*places)


def index_of(indices: ArrayLike, what: str) -> Node:
    """A node of indices."""
    index = as_node(indices)
    if not index.dtype.is_integer:
        raise DTypeError(f"{what} takes integers as indices, not {index.dtype}")
    return index


@op_function
def take(
    x: ArrayLike,
    indices: ArrayLike,
    /,
    axis: int | None = None,
    *,
    dim: int | None = None,
    mode: str = "raise",
) -> Any:
    """Elements of x at the given positions along an axis; indices may have any shape.

    `[..., n, ...]` and indices `[*I]` give `[..., *I, ...]`; negative indices count from the end.
    The cotangent is added at the positions. `IndexRangeError` for an index outside the axis,
    `DTypeError` for indices that are not integers. Without `axis` the elements are counted in
    row-major order, as if x were flattened. With `mode="wrap"` an index outside the axis counts
    modulo its size n, with `"clip"` it is 0 or n - 1, whichever is nearer, as negative ones are.

    >>> import retrograd as rg
    >>> rg.take([10, 20, 30], [2, 0, -1]).tolist()
    [30, 10, 30]
    >>> rg.take([10, 20, 30], [4, -1], mode="wrap").tolist()
    [20, 30]
    """
    x, index = as_node(x), index_of(indices, "take")
    axis = one_axis(axis, dim)
    if axis is None:
        x = ops.reshape(x, (x.type.size,))
    axis = normal_axis(0 if axis is None else axis, x.type.rank, "take")
    return Gather(axis)(x, _inside(index, x.shape[axis], mode))


def _inside(index: Node, size: int | Dim, mode: str) -> Node:
    """Indices of which those outside of an axis are as `mode` of `take` says."""
    if mode == "raise":
        return index
    wide = el.cast(index, int64)
    n = _size_along(wide, size)
    if mode == "wrap":
        return el.mod(wide, n)
    if mode != "clip":
        raise OptionError(f'take: mode is "raise", "wrap" or "clip", not {mode!r:.80}')
    zero = full(0, wide.type)
    wide = el.select(el.lt(wide, zero), zero, wide)
    return el.select(el.lt(wide, n), wide, el.sub(n, full(1, wide.type)))


def _size_along(index: Node, size: int | Dim) -> Node:
    """The size of an axis beside each of its indices, which are int64."""
    size_of = SizeOf(size, int64)() if isinstance(size, Dim) else full(size, spec((), int64))
    return broadcast_to(size_of, index.shape)


@op_function
def rows_from_front(x: ArrayLike, indices: ArrayLike, /, of: str) -> Any:
    """`take` of rows by indices of which none counts from the end, called `of` in errors."""
    x, index = as_node(x), index_of(indices, "take")
    return Gather(0, 0, of)(x, _from_front(index, x.shape[0]))


@op_function
def along_from_front(x: ArrayLike, indices: ArrayLike, /, axis: int, of: str) -> Any:
    """`take_along_axis` by indices of which none counts from the end, called `of` in errors."""
    x, index = as_node(x), index_of(indices, "take_along_axis")
    return _along(x, _from_front(index, x.shape[axis]), axis, of)


def _from_front(index: Node, size: int | Dim) -> Node:
    """Indices of which negative ones are out of range too: as `index - size`, which errors know."""
    if index.dtype.kind == "uint":
        return index
    wide = el.cast(index, int64)
    beyond = el.sub(wide, _size_along(wide, size))
    return el.select(el.lt(wide, full(0, wide.type)), beyond, wide)


@op_function
def take_along_axis(
    x: ArrayLike, indices: ArrayLike, /, axis: int = -1, *, dim: int | None = None
) -> Any:
    """`y[i, j, ...] = x[i, indices[i, j, ...], ...]`: other axes run together and broadcast.

    The result has the shape of the indices, broadcast. `IndexRangeError` for an index outside the
    axis, `ShapeError` where the numbers of axes differ, `DTypeError` for indices that are not
    integers.

    >>> import retrograd as rg
    >>> rg.take_along_axis([[1, 2], [3, 4]], [[1], [0]]).tolist()
    [[2], [3]]
    """
    axis = one_axis(axis, dim, -1)
    x, index = as_node(x), index_of(indices, "take_along_axis")
    return _along(x, index, axis)


def _along(x: Node, index: Node, axis: int, of: str = "") -> Node:
    rank = x.type.rank
    if index.type.rank != rank:
        raise ShapeError(f"take_along_axis of {x.shape} by indices {index.shape}: ranks differ")
    at = normal_axis(axis, rank, "take_along_axis")
    others = [i for i in range(rank) if i != at]
    lead = broadcast_shapes(*(tuple(n.shape[i] for i in others) for n in (x, index)))
    x, index = (
        broadcast_to(ops.permute(n, (*others, at)), (*lead, n.shape[at])) for n in (x, index)
    )
    return ops.permute(Gather(rank - 1, rank - 1, of)(x, index), ops.inverse((*others, at)))


def of_dtype(value: ArrayLike, x: Node, what: str) -> Node:
    """A value to put into x, in its dtype: one of the same kind, as NumPy's casting "same_kind" has
    it. Python's numbers go where they fit."""
    if x.dtype is bool_ and value.__class__ is int and value in (0, 1):
        value = bool(value)
    elif isinstance(value, list | tuple) and not holds_arrays(value):
        value = as_array(value, _dtype_of_numbers(value, x.dtype))
    node = as_node(value, x.dtype)
    if not same_kind(node.dtype, x.dtype):
        raise DTypeError(unfit(node.dtype, x.dtype, what))
    return el.cast(node, x.dtype)


def _dtype_of_numbers(value: Any, dtype: DType) -> DType | None:
    """The dtype for nested sequences of Python's numbers: that of what they go into, if they are of
    its kind."""
    own = as_array(value).dtype
    return dtype if own.kind != "b" and _fits_numbers(as_dtype(own), dtype) else None


def _fits_numbers(own: DType, dtype: DType) -> bool:
    """Whether Python's numbers of a kind go into a dtype that has room for them."""
    return (own.is_integer and dtype.is_integer) or same_kind(own, dtype)


_KINDS = ("bool", "uint", "int", "float", "complex")


def same_kind(given: DType, dtype: DType) -> bool:
    """Whether values of a dtype go into arrays of another: of the same kind, or of one behind it in
    bool, unsigned and signed integers, floats, complex numbers."""
    return _KINDS.index(given.kind) <= _KINDS.index(dtype.kind)


def unfit(given: DType, dtype: DType, what: str) -> str:
    """What to say where values may not go into an array."""
    lost = "their sign" if given.is_integer and dtype.is_integer else "part of them"
    if dtype is bool_:
        remedy = "assign a comparison, such as value != 0"
    elif given.is_complex:
        remedy = "assign value.real, or make the array complex"
    else:
        remedy = f"assign value.astype(rg.{dtype}), or make the array {given}"
    return f"{what}: {given} cannot be cast to {dtype}, as values would lose {lost}; {remedy}"


@op_function
def one_hot(indices: ArrayLike, num_classes: int | Dim, /, *, dtype: Any = float32) -> Any:
    """1 at the position of each index along a new last axis, 0 elsewhere; an index outside of
    0 to num_classes - 1 gives zeros only.

    `[...]` to `[..., num_classes]`, float32 unless a dtype is given; the derivative is 0.
    `DTypeError` for indices that are not integers.

    >>> import retrograd as rg
    >>> rg.one_hot([1, 0], 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    index = el.cast(index_of(indices, "one_hot"), int64)
    shape = (*index.shape, *as_shape((num_classes,)))
    counter = Iota(shape, len(shape) - 1, int64)()
    return el.cast(el.eq(ops.expand(index, shape, (len(shape) - 1,)), counter), as_dtype(dtype))
