"""What only moves elements in immediate mode: `x[i, a:b]` and joins of many arrays by NumPy.

A key of numbers and slices is part of an operation, and most differ from one another: a program for
each would not return. The gradient of a slice is the cotangent among zeros. Adding it to what has
come so far touches only the slice: to the bit as if zeros were added elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from retrograd.runtime.backend import Array

F = TypeVar("F", bound=Callable[..., Any])
_BASIC: list[Callable[..., Any]] = []  # the library function `x[key]`


def basic_indexing(f: Callable[..., Any]) -> Callable[..., Any]:
    """Name the function on nodes that takes an array and a key, as NumPy does."""
    _BASIC.append(f)
    return f


def index_function() -> Callable[..., Any]:
    """That function."""
    return _BASIC[0]


def is_basic(f: Callable[..., Any], args: Any) -> bool:
    """Whether a call is `x[key]` with numbers, slices, `None` and `...` alone."""
    if f not in _BASIC or len(args) != 2 or args[1].__class__ is not tuple:
        return False
    return all(k is None or k is Ellipsis or k.__class__ in (int, slice) for k in args[1])


_ASSIGNS: list[Callable[..., Any]] = []  # the library function behind `x[key] = value`


def assignment(f: F) -> F:
    """Name the function on nodes that takes an array, index arrays, a key without them, a value
    and how both meet."""
    _ASSIGNS.append(f)
    return f


def is_assignment(f: Callable[..., Any], args: Any) -> bool:
    """Whether a call is `x[key] = value` with numbers, slices, `None` and `...` alone."""
    if f not in _ASSIGNS or len(args) != 5 or args[1] or args[4] != "set":
        return False
    return all(k is None or k is Ellipsis or k.__class__ in (int, slice) for k in args[2])


def assigned(array: Array, key: Any, value: Array) -> Array | None:
    """A copy in which a part is another value of the same size; None where it is not, or empty."""
    new = np.array(array)
    part = new[(*key, Ellipsis) if Ellipsis not in key else key]
    same = part.shape == value.shape or part.size == value.size == 1
    if array.dtype != value.dtype or not same or not part.size:
        return None
    part[...] = value.reshape(part.shape)
    return new


_JOINS: dict[Callable[..., Any], Callable[..., Any]] = {}  # library functions, as those of NumPy


def joined_by(numpy: Callable[..., Any]) -> Callable[[F], F]:
    """Name what NumPy has for a function of a sequence of arrays and an axis that joins them."""

    def note(f: F) -> F:
        _JOINS[f] = numpy
        return f

    return note


def join_of(f: Callable[..., Any]) -> Callable[..., Any] | None:
    """What NumPy has for a function that joins arrays."""
    return _JOINS.get(f)


def sliced(array: Array, key: Any) -> Array:
    """A copy of what the key selects; `IndexError` where there is no such thing."""
    return np.array(array[key], order="C", ndmin=0)


class SlicedGradients:
    """Cotangents that slices have been added to: whose memory is this walk's own."""

    def __init__(self) -> None:
        self._own: dict[Any, tuple[Array, Any]] = {}  # the sum, and the slice that was added last

    def add(
        self, x: Any, shape: tuple[int, ...], so_far: Array | None, g: Array, key: Any
    ) -> Array:
        """The sum of what has come so far for x, which may be any name for an array of this shape,
        and of a cotangent of `x[key]`."""
        own = self._own.get(x)
        if so_far is None:
            total = np.zeros(shape, g.dtype)
            total[key] = g
        elif own is None or own[0] is not so_far:
            here = so_far[key] + g
            total = so_far + _zero(g.dtype)
            total[key] = here
        else:
            total, last = own
            here = total[key] + g
            total[last] += _zero(g.dtype)  # -0 + 0 is 0, as everywhere outside of the slice
            total[key] = here
        self._own[x] = total, key
        return total


def _zero(dtype: np.dtype[Any]) -> Any:
    """Zero, of a dtype."""
    return np.zeros((), dtype)
