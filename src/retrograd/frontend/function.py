"""`@function`: how a function on nodes becomes a function on tensors.

The library is written once, on nodes: no arrays, no modes. Called by a user, a `@function` turns
tensors, arrays and nested lists into nodes, notes the user's source line, and wraps the resulting
nodes; called by another library function, with nodes, it passes straight through.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from retrograd.errors import DTypeError, OptionError, RetrogradError, ShapeError
from retrograd.frontend.context import grad_enabled
from retrograd.frontend.conversion import as_array, holds_arrays
from retrograd.frontend.recording import Lazy, leaf, recorders
from retrograd.frontend.source import user_source
from retrograd.ir import Node, Provenance, Source, made_by, provenance
from retrograd.ops.control import StopGradient

Scalar = bool | int | float
F = TypeVar("F", bound=Callable[..., Any])


def function(f: F) -> F:
    """Make a function on nodes callable with tensors.

    Parameters annotated `ArrayLike` take tensors, arrays, numbers and nested lists of these; what
    is given for the others stays as it is.
    """
    first, rest, arrays = _array_parameters(f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if isinstance(a, Node):
                return f(*args, **kwargs)
        tracked = False
        unwrapped = list(args)
        for i, a in enumerate(args):
            if first[i] if i < len(first) else rest:
                unwrapped[i], t = unwrap(a)
                tracked |= t
        for key in kwargs.keys() & arrays:
            kwargs[key], t = unwrap(kwargs[key])
            tracked |= t
        here, source = provenance(), user_source()
        try:
            with made_by(Provenance(here.scope, source, here.origin)):
                return wrap(f(*unwrapped, **kwargs), tracked)
        except (ShapeError, DTypeError, OptionError) as error:
            _locate(error, f.__name__, source)
            raise

    return call  # type: ignore[return-value]


def _locate(error: RetrogradError, name: str, source: Source | None) -> None:
    """Let the message say which function was called where, unless it says so already."""
    text = str(error)
    if source is not None and str(source) not in text:
        error.args = (f"{text} (rg.{name.lstrip('_')} at {source})",)


def _array_parameters(f: Callable[..., Any]) -> tuple[list[bool], bool, frozenset[str]]:
    """Which parameters take arrays: by position, those beyond (`*args`), and by name."""
    code = f.__code__
    names, count = code.co_varnames, code.co_argcount
    arrays = frozenset(n for n, kind in f.__annotations__.items() if "ArrayLike" in kind)
    rest = code.co_flags & inspect.CO_VARARGS and names[count + code.co_kwonlyargcount] in arrays
    return [n in arrays for n in names[:count]], bool(rest), arrays


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
    for tape in recorders():
        tape.record(result)
    return Lazy.handle_class(result, tracked)


def unwrap(a: Any) -> tuple[Any, bool]:
    """An array argument for a function on nodes, and whether it requires a gradient.

    Python numbers and lists of them stay as they are. The values of NumPy arrays are copied: what
    is recorded now is computed later, and must not change when the array is used again.
    """
    if isinstance(a, Lazy):
        return a._node, a._requires_grad
    if isinstance(a, np.ndarray | np.generic) and not isinstance(a, Scalar):
        return leaf(np.array(as_array(a))), False
    if isinstance(a, list | tuple) and holds_arrays(a):
        pairs = [unwrap(x) for x in a]
        return [x for x, _ in pairs], any(t for _, t in pairs)
    return a, False
