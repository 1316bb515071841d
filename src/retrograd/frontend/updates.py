"""Functional updates: what `x.at[key].set(value)` and `x.at[key].add(value)` compute. On nodes."""

from __future__ import annotations

from typing import Any

from retrograd.autodiff import pullback
from retrograd.errors import DTypeError, ShapeError
from retrograd.frontend.broadcasting import as_node, broadcast_to
from retrograd.frontend.elementwise import ArrayLike
from retrograd.frontend.function import function
from retrograd.frontend.indexing import apart, getitem, of_dtype, together
from retrograd.ir import Dim, Node, TensorType, bool_, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.shape import reshape


class At:
    """What `x.at` returns: takes a key and then `set` or `add`."""

    def __init__(self, x: Any, indices: Any = (), key: tuple[Any, ...] = (...,)) -> None:
        self._x = x
        self._indices = indices
        self._key = key

    def __getitem__(self, key: Any) -> At:
        return At(self._x, *apart(key, self._x.shape))

    def set(self, value: Any) -> Any:
        """A copy of x in which `x[key]` is `value`; the last one where the key names an element
        more than once."""
        return updated(self._x, self._indices, value, self._key, "set")

    def add(self, value: Any) -> Any:
        """A copy of x in which `value` is added to `x[key]`, as often as the key names it."""
        return updated(self._x, self._indices, value, self._key, "add")


@function
def updated(
    x: ArrayLike, indices: ArrayLike, value: ArrayLike, key: tuple[Any, ...], mode: str, /
) -> Any:
    """x with `x[key]` replaced (`mode` "set") or added to ("add").

    Where index arrays name an element more than once, "add" adds every time, in order, and "set"
    keeps the last value, as NumPy does.
    """
    x = as_node(x)
    probe = input_node(x.type)
    key = together(indices, key)
    picked = getitem(probe, key)
    value = broadcast_to(of_dtype(value, x, "x.at[...]"), picked.shape)
    by_arrays = any(isinstance(k, Node) for k in key)
    if x.dtype.is_float and not by_arrays:
        return _transposed(x, picked, probe, value, mode)
    counter = reshape(Iota((x.type.size,), 0, int64)(), x.shape)
    at, flat = (reshape(n, (picked.type.size,)) for n in (getitem(counter, key), value))
    if mode == "add":
        if x.dtype is bool_:
            raise DTypeError("x.at[...].add adds numbers, not booleans; cast first")
        return reshape(ScatterAdd(0)(reshape(x, (x.type.size,)), at, flat), x.shape)
    return _replaced(x, at, flat, by_arrays)


def _transposed(x: Node, picked: Node, probe: Node, value: Node, mode: str) -> Node:
    """By the transpose of picking, which puts values where they were taken from, zero elsewhere."""
    spread, hit = (pullback([picked], [g], [probe])[0] for g in (value, full(1, picked.type)))
    assert spread is not None
    assert hit is not None
    return x + spread if mode == "add" else el.select(el.ne(hit, full(0, x.type)), spread, x)


def _replaced(x: Node, at: Node, value: Node, repeated: bool) -> Node:
    """x with the elements at flat positions replaced, the last value where positions repeat."""
    size = x.type.size
    carrier = int64 if x.dtype is bool_ else x.dtype
    nothing = full(0, TensorType(carrier, (size,)))
    value = el.cast(value, carrier)
    if repeated:
        value = el.select(_is_last(at, size), value, full(0, value.type))
    count = ScatterAdd(0)(full(0, TensorType(int64, (size,))), at, full(1, at.type))
    spread = reshape(ScatterAdd(0)(nothing, at, value), x.shape)
    hit = reshape(el.gt(count, full(0, count.type)), x.shape)
    return el.select(hit, el.cast(spread, x.dtype), x)


def _is_last(at: Node, size: int | Dim) -> Node:
    """Whether no later position is the same.

    The numbers of the positions compete bit by bit, from the highest: those without the bit are out
    where another at the same place has it.
    """
    (n,) = at.shape
    if isinstance(n, Dim):
        raise ShapeError(
            f"x.at[...].set by index arrays of symbolic size {n}; use x.at[...].add, or give the "
            "size a number"
        )
    number = el.cast(Iota((n,), 0, int64)(), int64)
    alive = full(True, TensorType(bool_, (n,)))
    for bit in reversed(range(max(n - 1, 0).bit_length())):
        odd = el.bitwise_and(el.shift_right(number, full(bit, number.type)), full(1, number.type))
        has = el.bitwise_and(alive, el.ne(odd, full(0, number.type)))
        count = ScatterAdd(0)(full(0, TensorType(int64, (size,))), at, el.cast(has, int64))
        rival = el.gt(Gather(0)(count, at), full(0, number.type))
        alive = el.bitwise_and(alive, el.bitwise_or(has, el.bitwise_not(rival)))
    return alive
