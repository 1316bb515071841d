"""`@function`: how a function on nodes becomes a function on tensors.

The library is written once, on nodes: no arrays, no modes. Called by a user, a `@function` turns
tensors, arrays and nested lists into nodes, notes the user's source line, and wraps the resulting
nodes; called by another library function, with nodes, it passes straight through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.frontend.context import grad_enabled
from retrograd.frontend.recording import RECORDERS, Array, Lazy, leaf
from retrograd.frontend.source import user_source
from retrograd.ir import Node, Provenance, as_dtype, made_by, provenance
from retrograd.ops.control import StopGradient

Scalar = bool | int | float
F = TypeVar("F", bound=Callable[..., Any])


def function(f: F) -> F:
    """Make a function on nodes callable with tensors. Array arguments come first, by position or
    name; a list or tuple of tensors counts as an array argument too."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if isinstance(a, Node):
                return f(*args, **kwargs)
        tracked = False
        unwrapped = []
        for a in args:
            b, t = unwrap(a)
            tracked |= t
            unwrapped.append(b)
        for key, a in kwargs.items():
            kwargs[key], t = unwrap(a)
            tracked |= t
        here = provenance()
        with made_by(Provenance(here.scope, user_source(), here.origin)):
            return wrap(f(*unwrapped, **kwargs), tracked)

    return call  # type: ignore[return-value]


def wrap(result: Any, tracked: bool) -> Any:
    """Nodes as tensors. Where an input requires a gradient, so does a floating result, unless
    recording is off, in which case it is cut from its history."""
    if isinstance(result, tuple | list):
        return type(result)(wrap(r, tracked) for r in result)
    if not isinstance(result, Node):
        return result
    tracked = tracked and result.dtype.is_float
    if tracked and not grad_enabled():
        result, tracked = StopGradient()(result), False
    for tape in RECORDERS:
        tape.record(result)
    return Lazy.handle_class(result, tracked)


def unwrap(a: Any) -> tuple[Any, bool]:
    """An argument for a function on nodes, and whether it requires a gradient. Python numbers and
    everything that is no array stay as they are."""
    if isinstance(a, Lazy):
        return a._node, a._requires_grad
    if isinstance(a, np.ndarray | np.generic) and not isinstance(a, Scalar):
        return leaf(as_array(a)), False
    if isinstance(a, list | tuple) and any(isinstance(x, Lazy | np.ndarray | Node) for x in a):
        pairs = [unwrap(x) for x in a]
        return type(a)([x for x, _ in pairs]), any(t for _, t in pairs)
    return a, False


def as_array(data: Any, dtype: Any = None) -> Array:
    """A NumPy array of a dtype retrograd computes with.

    Python floats become float32, Python ints int64. Ragged nesting is a `ShapeError`, objects,
    strings and complex numbers a `DTypeError`.
    """
    if isinstance(data, Lazy):
        array = data.value()
    elif isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
    else:
        array = _from_python(data)
        if dtype is None and array.dtype == np.float64 and not _holds_arrays(data):
            array = array.astype(np.float32)
    if array.dtype.kind in "OSU":
        raise DTypeError(
            f"{type(data).__name__} data holds {array.dtype.name} elements, which are no numbers"
        )
    own = as_dtype(array.dtype)
    found = own if dtype is None else as_dtype(dtype)
    return array if array.dtype == found.dtype else array.astype(found.dtype)


def _from_python(data: Any) -> Array:
    try:
        if isinstance(data, list | tuple):
            data = _plain(data)
        return np.asarray(data)
    except ValueError as error:
        raise ShapeError(
            f"the nested sequence is ragged, its rows differ in length: {error}"
        ) from None
    except OverflowError as error:
        raise DTypeError(f"a number does not fit into int64: {error}") from None


def _plain(data: Any) -> Any:
    """Nested sequences with tensors replaced by their arrays."""
    if isinstance(data, Lazy):
        return data.value()
    return [_plain(x) for x in data] if isinstance(data, list | tuple) else data


def _holds_arrays(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return any(_holds_arrays(x) for x in data)
    return isinstance(data, Lazy | np.ndarray | np.generic) or hasattr(data, "__array__")
