"""What changes a tensor in place: `x[key] = value`, `x += y` and their kin.

A tensor is a handle on a value. To change it is to have the handle stand for another value, the
functional update: whoever holds the handle sees that, and what was computed from the value of
before, slices included, stays as it is. So gradients are those of the functional update, exact.

Two things may not be changed. A leaf that requires a gradient: what comes after would have a
gradient by the value of before, which nobody holds any more. It gets another value inside of
`no_grad` alone, as in an optimizer's step. And what was passed to a function that a transform
calls, or is captured by it: the caller would see a change of what may be a stand-in.

Where nobody else has the array that a tensor stands for, an assignment writes there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from opcode import opmap
from sys import getrefcount
from threading import active_count
from typing import Any

import numpy as np

from retrograd.eager import listeners
from retrograd.eager.conversion import as_array, holds_arrays
from retrograd.eager.lazy_tensor import ConcreteLeaf, LazyTensor, is_weak
from retrograd.eager.modes import call_epoch, grad_enabled, is_tracing, is_unseen
from retrograd.errors import DTypeError, GradientError, ShapeError, TraceError
from retrograd.functions.indexing import same_kind, unfit
from retrograd.functions.scatter import update
from retrograd.ir import Node, Shape, Trait, as_dtype
from retrograd.runtime.backend import Array
from retrograd.runtime.device_array import host
from retrograd.tuning import TUNING


def change(x: LazyTensor, operation: Callable[..., Any], other: Any) -> Any:
    """`x += y`, and likewise for any operation: x, which stands for the result."""
    check_changeable(x, "x = x + y")
    x.own()
    new = operation(x, other)
    return new if new is NotImplemented else take(x, new)


def take(x: LazyTensor, new: LazyTensor) -> LazyTensor:
    """x, which stands for the result of an operation from here on, as far as that fits."""
    stand_for(x, _fitting(x, new))
    return x


def assign(x: LazyTensor, key: Any, value: Any) -> None:
    """`x[key] = value`."""
    check_changeable(x, "x = x.at[key].set(value)")
    if not _written(x, key, value):
        new = update(x, key, value, "set")
        if _is_outside(key, x.shape):
            new.value()  # which says so before x has changed
        stand_for(x, new)


def _is_outside(key: Any, shape: Shape) -> bool:
    """Whether index arrays whose values are at hand are out of range."""
    place = _key_of(key)
    sizes = [n for n in shape if isinstance(n, int)]
    if place is None or len(sizes) < len(shape) or is_tracing():
        return False
    try:
        np.broadcast_to(np.False_, sizes)[place]
    except (IndexError, TypeError):
        return True
    return False


class _Counter:
    """What counts the references of something that an item is assigned to."""

    def __setitem__(self, key: list[int], value: Any) -> None:
        key.append(getrefcount(self))


def _references() -> int:
    """The references that `__setitem__` sees of what nobody holds; 0 where these are as many as of
    what a name stands for."""
    found: list[int] = []
    held = _Counter()
    _Counter()[found] = None
    held[found] = None
    return found[0] if found[0] < found[1] else 0


TEMPORARY = _references()
_ASSIGNMENTS = {opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in opmap}


def check_is_held() -> None:
    """Refuse an assignment statement, in the frame that has called the caller, to what there is one
    reference to: its own."""
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] in _ASSIGNMENTS:
        raise TypeError(
            "assignment to a tensor that nobody holds, such as a slice of a slice, has no effect: "
            "a slice has a value of its own. Write x[1, 2] = value in place of x[1][2] = value, or "
            "row = x[1]; row[2] = value; x[1] = row"
        )


def check_changeable(x: LazyTensor, remedy: str) -> None:
    """Refuse to change what is not to be changed here."""
    begun = call_epoch()
    if begun and x._epoch < begun:
        raise TraceError(
            f"a tensor of {x._type} was passed to a function that is differentiated or compiled, "
            f"or is captured by it, and cannot be changed there; write {remedy}, and return what "
            "the caller shall see"
        )
    if isinstance(x._state, Node) and x._requires_grad and x.is_source and grad_enabled():
        raise GradientError(
            f"a leaf that requires a gradient cannot be changed by an in-place operation: "
            f"{x.leaf_or_node.describe()}; its gradient would belong to the value of before. Write "
            f"{remedy.replace('x =', 'y =', 1)} for a new tensor, or change it inside of "
            "rg.no_grad(), as optimizers do"
        )


def stand_for(x: LazyTensor, new: LazyTensor) -> None:
    """Have x stand for what a new handle does; a leaf that requires a gradient stays one."""
    if isinstance(x._state, Node) and x._requires_grad and x.is_source:
        x.replace(new.value())
    elif new is not x:
        x.rebind(new)


def _fitting(x: LazyTensor, new: LazyTensor) -> LazyTensor:
    """A result of the shape and dtype of what it takes the place of."""
    if new.shape != x.shape:
        raise ShapeError(
            f"an in-place operation on a tensor of the shape {x.shape} has a result of the shape "
            f"{new.shape}; write x = x + y for a tensor of another shape"
        )
    if new.dtype is x.dtype or is_weak(x):
        return new
    if not same_kind(new.dtype, x.dtype):
        raise DTypeError(
            unfit(new.dtype, x.dtype, "an in-place operation") + "; or write x = x + y"
        )
    return new.astype(x.dtype)  # type: ignore[attr-defined]


# -- in memory -----------------------------------------------------------------------------------
_ATOMIC = 256  # elements; NumPy lets other threads run while it copies more


def _written(x: LazyTensor, key: Any, value: Any) -> bool:
    """Whether the value was written to an array that nobody else has, which is copied first if
    somebody does; False where something is recorded, or wrong."""
    if listeners.LISTENERS or listeners.block_listener() or is_tracing() or is_unseen():
        return False
    own = x.bare_array() is not None
    array = _constant(x)
    if array is None:
        return False
    given = _array_of(value, array)
    if given is None:
        return False
    place = _key_of(key)
    if place is None:
        return False
    small = given.size <= _ATOMIC or active_count() == 1
    try:
        if own and small and array.base is None and array.flags.writeable:
            del array
            if x._assign(np.ndarray, place, given):
                return True
            array = x._known()
        new = np.array(array)
        new[place] = given
    except (IndexError, ValueError, TypeError):
        return False
    x.rebind(LazyTensor.handle_class.dehydrated(new))
    return True


def _constant(x: LazyTensor) -> Array | None:
    """The array of a tensor that is at hand and has nothing to do with gradients."""
    state = x._state
    if state.__class__ is np.ndarray:
        return state
    if not isinstance(state, Node):
        return None
    if not isinstance(state.prim, ConcreteLeaf):
        plain = not (state.inputs or x._requires_grad or Trait.INPUT in state.prim.traits)
        return x.value() if plain else None  # a constant, as rg.zeros makes
    if (
        x._requires_grad
        or state.prim.freed
        or state.prim.grad_fn is not None
        or x._buffer.is_taped()
    ):
        return None
    return host(state.prim.array)


def _array_of(value: Any, array: Array) -> Array | None:
    """A value as an array that may be written into another."""
    dtype = array.dtype
    if isinstance(value, LazyTensor):
        found = _constant(value)
        if found is None and array.nbytes >= TUNING.assigned_bytes and not value._requires_grad:
            try:
                found = value.value()  # which takes less time than a copy
            except TraceError:
                return None
        if found is None:
            return None
    elif value.__class__ is np.ndarray or isinstance(value, np.generic):
        found = np.asarray(value)
    elif value.__class__ in (bool, int, float) and (
        dtype.kind == "f" or (dtype.kind in "iu" and value.__class__ is not float)
    ):
        try:
            return np.array(value, dtype)
        except OverflowError:
            return None
    else:
        return None
    if found.dtype == dtype:
        return found
    try:
        kinds = as_dtype(found.dtype), as_dtype(dtype)
    except DTypeError:
        return None
    return as_array(found, kinds[1]) if same_kind(*kinds) else None


def _key_of(key: Any) -> Any:
    """A key for NumPy; None where it is not known, or no plain one."""
    items = key if key.__class__ is tuple else (key,)
    found = []
    for k in items:
        if isinstance(k, LazyTensor):
            k = _constant(k)
        elif isinstance(k, list) and not holds_arrays(k):
            try:
                k = np.array(k) if k else np.zeros(0, np.int64)
            except ValueError:
                return None
        if k.__class__ is np.ndarray:
            if k.dtype.kind not in "iub":
                return None
        elif not (k is Ellipsis or k.__class__ in (int, slice)):
            return None
        found.append(k)
    return tuple(found)
