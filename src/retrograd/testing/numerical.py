"""Finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.errors import DTypeError, GradientError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.tracing.scope import need_arguments, need_function

Array = np.ndarray[Any, Any]
STEP = 1e-3  # its error is about STEP**4 times the fifth derivative, and eps / STEP from rounding


def numerical_gradient(f: Callable[..., Any], *args: Any, step: float = STEP) -> Any:
    """The gradient of a scalar function by finite differences, in float64.

    For each element x_i of each floating argument, with h = `step` * max(1, |x_i|),
    `(8 (f(x_i + h) - f(x_i - h)) - (f(x_i + 2h) - f(x_i - 2h))) / 12h`, whose error is of order
    h^4. Arguments are trees of arrays; float32 is computed with as float64, integers are kept and
    get zeros. For complex elements the result is `df/dRe + i df/dIm`.

    Returns one gradient for each argument, as a tuple if there are several. Costs four calls of
    `f` for each element.

    Gradients have the shapes of the arguments. `ArgumentError` for what is no function.

    >>> import retrograd as rg
    >>> rg.numerical_gradient(lambda x: (x**3).sum(), [1.0, 2.0]).tolist()
    [3.0, 12.0]
    """
    need_function(f, "numerical_gradient")
    need_arguments(f, args, "numerical_gradient")
    leaves, structure, places = taken_apart(args, "numerical_gradient")

    def value(*parts: Array) -> float:
        return scalar(f(*put_together(structure, places, leaves, parts)))

    floats = [leaves[i].astype(wide(leaves[i])) for i in places]
    found = {i: np.zeros(leaves[i].shape) for i in range(len(leaves))}
    for k, i in enumerate(places):
        found[i] = by_element(value, floats, k, step)
    gradients = pytree.unflatten(structure, [Tensor.of(found[i]) for i in range(len(leaves))])
    return gradients[0] if len(args) == 1 else gradients


def taken_apart(args: Sequence[Any], what: str) -> tuple[list[Array], Any, list[int]]:
    """The leaves of arguments, their structure, and which of them are floating or complex.

    A list of numbers is one array, as everywhere.
    """
    plain = [as_array(a) if isinstance(a, list) and _numbers(a) else a for a in args]
    found, structure = pytree.flatten(tuple(plain))
    leaves = [np.asarray(as_array(x)) for x in found]
    places = [i for i, x in enumerate(leaves) if x.dtype.kind in "fcV"]
    if not places:
        raise GradientError(f"{what} needs an argument that is floating or complex")
    return leaves, structure, places


def _numbers(data: Any) -> bool:
    if isinstance(data, list):
        return all(_numbers(x) for x in data)
    return isinstance(data, int | float | complex)


def wide(x: Array) -> np.dtype[Any]:
    """float64, or complex128."""
    return np.dtype(np.complex128 if x.dtype.kind == "c" else np.float64)


def put_together(
    structure: Any, places: Sequence[int], leaves: Sequence[Array], parts: Sequence[Array]
) -> Any:
    """The arguments with other arrays in the floating places."""
    new = dict(zip(places, parts, strict=True))
    return pytree.unflatten(structure, [Tensor.of(new.get(i, x)) for i, x in enumerate(leaves)])


def scalar(y: Any) -> float:
    """A real scalar as a number."""
    array = np.asarray(as_array(y))
    if array.shape != ():
        raise GradientError(f"the function must return a scalar, not the shape {array.shape}")
    if array.dtype.kind not in "fV":
        raise DTypeError(f"the function must return a floating number, not {array.dtype}")
    return float(array)


def by_element(value: Callable[..., float], arrays: Sequence[Array], k: int, step: float) -> Array:
    """The gradient of `value(*arrays)` with respect to array k."""
    found = np.zeros_like(arrays[k])
    for at in np.ndindex(found.shape):
        found[at] = at_element(value, arrays, k, at, step)
    return found


def at_element(
    value: Callable[..., float], arrays: Sequence[Array], k: int, at: Any, step: float
) -> Any:
    """The derivative of `value(*arrays)` by one element of array k."""
    x = arrays[k]
    h = step * max(1.0, float(abs(x[at])))
    directions = [1.0, 1j] if x.dtype.kind == "c" else [1.0]
    return sum(unit * along(value, arrays, k, at, h * unit) / h for unit in directions)


def along(value: Callable[..., float], arrays: Sequence[Array], k: int, at: Any, h: Any) -> float:
    """`h` times the derivative of `value` along an element of array k, by four values."""
    one, two = (moved(value, arrays, k, at, m * h) - moved(value, arrays, k, at, -m * h)
                for m in (1, 2))  # fmt: skip
    return (8 * one - two) / 12


def one_sided(
    value: Callable[..., float], arrays: Sequence[Array], k: int, at: Any, step: float
) -> float:
    """The slope of `value` from one element of array k on, to one side of it."""
    h = step * max(1.0, float(abs(arrays[k][at])))
    return (moved(value, arrays, k, at, h) - moved(value, arrays, k, at, 0)) / h


def moved(value: Callable[..., float], arrays: Sequence[Array], k: int, at: Any, by: Any) -> float:
    """`value` with one element of array k moved."""
    x = arrays[k].copy()
    x[at] = x[at] + by
    return value(*arrays[:k], x, *arrays[k + 1 :])
