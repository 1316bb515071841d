"""Weak values: what Python numbers alone have made, and what therefore takes the dtype of what it
meets, as they do.

A weak node is the cast of a `wide` one, in double precision, to the default dtype. Whoever looks
sees the default dtype. An operation with an array of another dtype goes back to the wide node, so
that nothing is rounded before it is known to what, and a function of weak values and numbers alone
is computed on the wide ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

from retrograd.ir import DType, Node, TensorType, bool_, complex128, float64
from retrograd.ir.dtype import DEFAULT
from retrograd.ops.elementwise import Cast, cast
from retrograd.ops.leaf import constant

_CONDITION = TensorType(bool_, ())  # which is of no dtype that counts


class Cache(Protocol):
    """What was made of Python numbers, and is made again when the default changes."""

    def forget(self) -> None:
        """Keep nothing."""


CACHES: WeakSet[Cache] = WeakSet()  # beside those of recording, which are known by name


def _wider() -> dict[DType, DType]:
    """The default dtypes, and what is computed with in their place."""
    return {DEFAULT.real: float64, DEFAULT.complex: complex128}


class Weak(Cast):
    """The cast of what Python numbers have made to the default dtype."""


def is_weak(x: Any) -> bool:
    """Whether a node takes the dtype of what it meets."""
    return isinstance(x, Node) and x.prim.__class__ is Weak


def weak(wide: Node) -> Node:
    """A node in double precision, or of whole numbers, as a weak one."""
    shown = {float64: DEFAULT.real, complex128: DEFAULT.complex}.get(wide.dtype, wide.dtype)
    return Weak(shown)(wide)


def wide(x: Node) -> Node:
    """What a weak node is the cast of; any other is itself."""
    return x.inputs[0] if is_weak(x) else x


def of_numbers(
    f: Callable[..., Any],
    is_array: Sequence[bool],
    rest: bool,
    arrays: Collection[str],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """The result of a function on nodes, which is weak where all that it is given is."""
    given = [(i < len(is_array) and is_array[i]) or (rest and i >= len(is_array))
             for i in range(len(args))]  # fmt: skip
    values = [a for a, yes in zip(args, given, strict=True) if yes]
    values += [a for name, a in kwargs.items() if name in arrays]
    result = f(*args, **kwargs)
    if not (_are_numbers(values) and _is_default(result)):
        return result
    some = any(is_weak(v) and wide(v).dtype.is_inexact for v in _flat(values))

    def widened(a: Any) -> Any:
        if isinstance(a, list | tuple):
            return [widened(x) for x in a]
        if is_weak(a):
            return wide(a) if wide(a).dtype.is_inexact else cast(wide(a), float64)
        if some or not _is_number(a):
            return a
        return constant(np.asarray(a, np.complex128 if isinstance(a, complex) else np.float64))

    exact = f(
        *[widened(a) if yes else a for a, yes in zip(args, given, strict=True)],
        **{name: widened(a) if name in arrays else a for name, a in kwargs.items()},
    )
    return _joined(result, exact)


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for v in values:
        found += _flat(v) if isinstance(v, list | tuple) else [v]
    return found


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether there are Python numbers and weak nodes only. A list of numbers is an array."""
    found = False
    for v in values:
        if isinstance(v, list | tuple):
            if not any(map(is_weak, v)) or not _are_numbers(v):
                return False
            found = True
        elif is_weak(v) or _is_number(v):
            found = True
        elif not (v is None or (isinstance(v, Node) and v.type == _CONDITION)):
            return False
    return found


def _is_number(v: Any) -> bool:
    return isinstance(v, int | float | complex) and not isinstance(v, bool | np.generic)


def _is_default(result: Any) -> bool:
    """Whether a result, or one of several, is of the default dtype, or says something of numbers
    that are not rounded, as comparisons do."""
    if isinstance(result, tuple | list):
        return any(map(_is_default, result))
    return isinstance(result, Node) and (result.dtype in _wider() or result.dtype.kind == "bool")


def _joined(result: Any, exact: Any) -> Any:
    """The results of a function for the default dtype, from those for double precision."""
    if isinstance(result, tuple | list):
        items = [_joined(a, b) for a, b in zip(result, exact, strict=True)]
        return type(result)._make(items) if hasattr(result, "_make") else type(result)(items)
    if not isinstance(result, Node):
        return exact
    if _wider().get(result.dtype) is exact.dtype:
        return weak(exact)
    return exact if result.type == exact.type else result
