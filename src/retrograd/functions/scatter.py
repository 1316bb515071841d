"""Functional updates: what `x.at[key].set(value)` and its kin compute. On nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.eager.conversion import holds_arrays
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.immediate.slicing import assignment
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import is_tracing
from retrograd.errors import DTypeError, IndexRangeError, OptionError, ShapeError, TraceError
from retrograd.functions import elementwise
from retrograd.functions.broadcasting import (
    as_node,
    broadcast_shapes,
    broadcast_to,
    normal_axis,
)
from retrograd.functions.indexing import (
    BasicIndex,
    Chosen,
    _basic,
    apart,
    basic_index,
    index_of,
    items_of,
    look_up,
    of_dtype,
    together,
)
from retrograd.ir import DType, Node, Shape, bool_, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops import shape as ops
from retrograd.ops.index import Scatter, ScatterAdd
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.ops.shape import expand, inverse, permute, reshape
from retrograd.tensor_type import Tensor

# By the mode that `put_along_axis` takes, which is also the name of the method of `x.at[...]`.
SCATTERS: dict[str, type[Scatter]] = {
    kind.mode: kind for kind in (ScatterSet, ScatterAdd, ScatterMul, ScatterMin, ScatterMax)
}


class IndexUpdater:
    """What `x.at` returns: takes a key, and then says what happens there.

    Where index arrays name an element more than once, all values take their turn, in order. A
    boolean mask whose values are not known, inside of `jit`, takes a value that needs no positions:
    a number, or an array of the axes that the mask does not have.
    """

    def __init__(self, x: Any, key: Any = ...) -> None:
        self._x = x
        self._key = key

    def __getitem__(self, key: Any) -> IndexUpdater:
        return IndexUpdater(self._x, key)

    def get(self) -> Tensor:
        """`x[key]`."""
        return self._x[self._key]

    def set(self, value: Any) -> Tensor:
        """A copy of x in which `x[key]` is `value`; the last one where the key names an element
        more than once."""
        return self._updated(value, "set")

    def add(self, value: Any) -> Tensor:
        """A copy of x in which `value` is added to `x[key]`, as often as the key names it."""
        return self._updated(value, "add")

    def multiply(self, value: Any) -> Tensor:
        """A copy of x in which `x[key]` is multiplied by `value`, as often as the key names it."""
        return self._updated(value, "multiply")

    def min(self, value: Any) -> Tensor:
        """A copy of x in which `x[key]` is at most `value`. Ties share the gradient."""
        return self._updated(value, "min")

    def max(self, value: Any) -> Tensor:
        """A copy of x in which `x[key]` is at least `value`. Ties share the gradient."""
        return self._updated(value, "max")

    def subtract(self, value: Any) -> Tensor:
        """A copy of x in which `value` is subtracted from `x[key]`, as often as the key names
        it."""
        return self._updated(value, "subtract")

    def divide(self, value: Any) -> Tensor:
        """A copy of x in which `x[key]` is divided by `value`, as often as the key names it."""
        return self._combined(elementwise.divide, value)

    def power(self, value: Any) -> Tensor:
        """A copy of x in which `x[key]` is raised to the power `value`, as often as the key names
        it."""
        return self._combined(elementwise.pow, value)

    def apply(self, function: Callable[[Any], Any]) -> Tensor:
        """A copy of x in which `x[key]` is `function(x[key])`, for a function that works element by
        element, as often as the key names it; once where index arrays are traced, and their
        numbers are not known."""
        times = None if _names_once(self._key) else self._repeats()
        if times is None:
            return self.apply_once(function)
        x, most = self._x, int(times.max(initial=0))
        for k in range(most):
            again = IndexUpdater(x, self._key).apply_once(function)
            x = again if k == 0 else elementwise.where(times > k, again, x)
        return x

    def apply_once(self, function: Callable[[Any], Any]) -> Tensor:
        """The same, once for each element that the key names."""
        return self.set(function(self.get()))

    def _repeats(self) -> Any:
        """How often a key names each element, as an array; None where that is not known."""
        if not is_tracing():
            return IndexUpdater(_full_like(self._x, 0, int64), self._key).add(1).value()
        key = self._key if isinstance(self._key, tuple) else (self._key,)
        try:
            times = np.zeros(self._x.shape, np.int64)
            np.add.at(times, tuple(k.value() if isinstance(k, LazyTensor) else k for k in key), 1)
        except (TraceError, ShapeError, IndexError, TypeError):  # names of sizes, traced arrays
            return None
        return times

    def _combined(self, function: Callable[..., Any], value: Any) -> Any:
        """By products of what meets each element, where there may be several."""
        if not _names_once(self._key):
            one = IndexUpdater(_full_like(self._x, 1, self._x.dtype), self._key)
            value = one.multiply(value)[self._key]
        return self.set(function(self.get(), value))

    def _updated(self, value: Any, mode: str) -> Tensor:
        return update(self._x, self._key, value, mode)


@op_function
def _full_like(x: ArrayLike, value: int, dtype: DType, /) -> Any:
    x = as_node(x)
    return full(value, x.type.with_dtype(dtype))


def _names_once(key: Any) -> bool:
    """Whether a key names no element twice: it has no index arrays but masks."""
    items = key if isinstance(key, tuple) else (key,)
    for k in items:
        if isinstance(k, list | tuple):
            k = np.asarray(k) if not holds_arrays(k) else k
        plain = k is None or k is Ellipsis or isinstance(k, int | slice | np.generic)
        if not plain and getattr(k, "dtype", None) not in (bool_, np.bool_):
            return False
    return True


def update(x: Any, key: Any, value: Any, mode: str) -> Any:
    """x with `x[key]` combined with a value, for a key as a user writes it."""
    if isinstance(key, np.ndarray) and key.dtype == np.bool_ and key.ndim:
        key = LazyTensor.handle_class.of(key.copy())
    if isinstance(key, LazyTensor) and key.dtype is bool_:
        rank = len(value.shape) if hasattr(value, "shape") else np.ndim(value)
        if rank <= len(x.shape) - len(key.shape):
            return masked(x, key, value, mode)
    return updated(x, *apart(key, x.shape), value, mode)


@op_function
@assignment
def updated(
    x: ArrayLike, indices: ArrayLike, key: tuple[Any, ...], value: ArrayLike, mode: str, /
) -> Any:
    """x with `x[key]` combined with a value; `mode` is one of `SCATTERS`, or "subtract".

    Where index arrays name an element more than once, each value takes its turn, in order: "set"
    keeps the last one, as NumPy does.
    """
    x = _of_numbers(x, mode)
    key = together(indices, key)
    items, adjacent = items_of(x, key)
    value = of_dtype(value, x, "x[key] = value" if mode == "set" else f"x.at[key].{mode}(value)")
    arrays = any(isinstance(k, Node | Chosen) for k in items)
    whole = [isinstance(k, slice) and k != slice(None) for k in items]
    if not arrays:
        taken = basic_index(x, items)
        there = None if mode == "set" else _basic(x, items)
        return _placed(x, taken, value, mode, there)
    if any(whole):  # the slices first
        axes = [k for k in items if not (k is None or isinstance(k, Chosen))]
        taken = basic_index(x, [k if isinstance(k, slice) else slice(None) for k in axes])
        part = ops.flip(taken.slice(x), taken.flips)
        rest = [slice(None) if isinstance(k, slice) else k for k in items]
        part = _scattered_by_key(part, rest, adjacent, value, mode)
        return _put(x, taken, ops.flip(part, taken.flips))
    return _scattered_by_key(x, items, adjacent, value, mode)


def _scattered_by_key(x: Node, items: list[Any], adjacent: bool, value: Node, mode: str) -> Node:
    """By index arrays and whole axes."""
    found = look_up(x, items, adjacent)
    axis, places = found.axis, found.places
    shape = (*found.x.shape[:axis], *places.shape, *found.x.shape[axis + 1 :])
    value = _fitted(value, tuple(shape[i] for i in found.order))
    value = permute(value, inverse(found.order))
    if mode == "subtract":
        value, mode = el.neg(value), "add"
    new = SCATTERS[mode](axis)(found.x, places, value)
    return reshape(new, x.shape)


def _placed(x: Node, taken: BasicIndex, value: Node, mode: str, there: Node | None) -> Node:
    """By slices, numbers and new axes, which name no element twice."""
    counts = taken.slice(x).shape
    shape = tuple(1 if a == -1 else counts[a] for a in taken.axes)
    value = _fitted(value, shape)
    if there is not None:
        value = _met(there, value, mode)
    return _put(x, taken, ops.flip(reshape(value, counts), taken.flips))


def _put(x: Node, taken: BasicIndex, value: Node) -> Node:
    """x with a block in place of what a taken takes, before any is reversed."""
    if value.type.size == 0 or taken.takes_all(x):
        return x if value.type.size == 0 else value
    return ops.SliceSet(taken.starts, taken.stops, taken.steps)(x, value)


def _fitted(value: Node, shape: Shape) -> Node:
    """A value broadcast to what it goes to; as in NumPy it may have more axes of one element in
    front."""
    spare = value.type.rank - len(shape)
    if spare > 0 and value.shape[:spare] == (1,) * spare:
        value = reshape(value, value.shape[spare:])
    try:
        return broadcast_to(value, shape)
    except ShapeError:
        raise ShapeError(
            f"a value of the shape {value.shape} does not go into a place of the shape {shape}"
        ) from None


def _of_numbers(x: Any, mode: str) -> Node:
    x = as_node(x)
    if x.dtype is bool_ and mode != "set":
        raise DTypeError(f"x.at[...].{mode} takes numbers, not booleans; cast first")
    return x


@op_function
def masked(x: ArrayLike, mask: ArrayLike, value: ArrayLike, mode: str, /) -> Any:
    """x where a mask over its first axes is true combined with a value, of the other axes at most:
    that needs no positions."""
    x, mask = _of_numbers(x, mode), as_node(mask)
    rank = mask.type.rank
    if x.shape[:rank] != mask.shape:
        raise IndexRangeError(f"a mask of the shape {mask.shape} for an array of {x.shape}")
    value = of_dtype(value, x, "x[mask] = value" if mode == "set" else f"x.at[mask].{mode}(value)")
    value = _fitted(value, x.shape)
    wide = expand(mask, x.shape, tuple(range(rank, x.type.rank)))
    return el.select(wide, _met(x, value, mode), x)


def _met(old: Node, value: Node, mode: str) -> Node:
    """Elements after a value has met each."""
    if mode == "subtract":
        return el.sub(old, value)
    combine = SCATTERS[mode].combine
    return value if combine is None else combine(old, value)


def _scattered(mode: str, x: Any, indices: Any, updates: Any, axis: int, what: str) -> Node:
    x, index = as_node(x), index_of(indices, what)
    at = normal_axis(axis, x.type.rank, what)
    shape = x.shape[:at] + index.shape + x.shape[at + 1 :]
    update = broadcast_to(of_dtype(updates, x, what), shape)
    result: Node = SCATTERS[mode](at)(x, index, update)
    return result


@op_function
def scatter_add(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x with updates added at the given positions along an axis; positions may repeat.

    `updates` has the shape of x with the axis replaced by the axes of `indices`. The order of
    addition is fixed, for every number of threads: each place takes its updates in their order, in
    blocks of sixteen whose totals are added up in twice the precision. So of any number of updates
    the error is that of a block, at most `17 * eps` times the sum of absolute values; half
    precision is added up in float32 and rounded once.

    `IndexRangeError` for a position outside the axis, `ShapeError` where the shape of `updates`
    does not fit, `DTypeError` for floats put into integers.

    >>> import retrograd as rg
    >>> rg.scatter_add([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 9.0]
    """
    return _scattered("add", x, indices, updates, axis, "scatter_add")


@op_function
def scatter_set(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x with elements replaced at the given positions along an axis, as `scatter_add` has them; the
    last update stays where positions repeat, and gets the gradient.

    `IndexRangeError` for a position outside the axis, `ShapeError` where the shape of `updates`
    does not fit, `DTypeError` for floats put into integers.

    >>> import retrograd as rg
    >>> rg.scatter_set([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 4.0]
    """
    return _scattered("set", x, indices, updates, axis, "scatter_set")


@op_function
def scatter_mul(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x multiplied by updates at the given positions along an axis, as `scatter_add` has them. The
    gradient is exact where updates are zero.

    `IndexRangeError` for a position outside the axis, `ShapeError` where the shape of `updates`
    does not fit, `DTypeError` for floats put into integers.

    >>> import retrograd as rg
    >>> rg.scatter_mul([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 24.0]
    """
    return _scattered("multiply", x, indices, updates, axis, "scatter_mul")


@op_function
def scatter_min(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x where elements at the given positions are at most the updates, as `scatter_add` has them;
    equal ones share the gradient. NaN if one is NaN.

    `IndexRangeError` for a position outside the axis, `ShapeError` where the shape of `updates`
    does not fit, `DTypeError` for floats put into integers.

    >>> import retrograd as rg
    >>> rg.scatter_min([1.0, 9.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 3.0]
    """
    return _scattered("min", x, indices, updates, axis, "scatter_min")


@op_function
def scatter_max(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, axis: int = 0) -> Any:
    """x where elements at the given positions are at least the updates, as `scatter_add` has them;
    equal ones share the gradient. NaN if one is NaN.

    `IndexRangeError` for a position outside the axis, `ShapeError` where the shape of `updates`
    does not fit, `DTypeError` for floats put into integers.

    >>> import retrograd as rg
    >>> rg.scatter_max([1.0, 2.0], [1, 1], [3.0, 4.0]).tolist()
    [1.0, 4.0]
    """
    return _scattered("max", x, indices, updates, axis, "scatter_max")


@op_function
def put_along_axis(
    x: ArrayLike, indices: ArrayLike, values: ArrayLike, /, axis: int = -1, mode: str = "set"
) -> Any:
    """A copy of x with `y[i, j, ...]` at `indices[i, j, ...]` replaced by `values[i, j, ...]`, here
    for the axis 1: the transpose of `take_along_axis`.

    Other axes run together; those of indices and values broadcast. With the modes "add",
    "multiply", "min" and "max" values meet what is there. Positions may repeat; values take their
    turn in order.

    The shape is that of x. `IndexRangeError` for an index outside the axis, `ShapeError` where the
    numbers of axes or other sizes differ, `OptionError` for another mode.

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
