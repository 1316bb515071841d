"""Arguments of functions and graphs: their names, and their values as arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError
from retrograd.ir import Node
from retrograd.runtime.backend import Array


def argument(x: Node, value: Any) -> Array:
    """A value as an array of an input's dtype. Python numbers are converted, arrays must match."""
    if isinstance(value, LazyTensor):
        return value.value()
    if isinstance(value, np.ndarray):
        return value
    try:
        array = as_array(value, x.dtype)
    except DTypeError as error:
        raise DTypeError(f"input {x.name!r} is {x.type}: {error}") from None
    if np.asarray(value).dtype.kind == "f" and x.dtype.is_integer:
        raise DTypeError(f"input {x.name!r} is {x.type}, but the value given is {value!r}")
    return array


def positional(f: Callable[..., Any]) -> tuple[list[str], str]:
    """The names of the parameters that can be given by position, and of the one that takes what is
    beyond them, if there is one."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # of some functions written in C nothing is known
        return [], ""
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    return [p.name for p in parameters if p.kind in by_position], "".join(rest)


def with_default(f: Callable[..., Any]) -> list[str]:
    """The names of the parameters that need not be given."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.default is not p.empty]


def argument_names(f: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    """A name for each leaf of the arguments: the parameter's, and the path inside it."""
    return names_of_leaves(f, [pytree.paths(arg) for arg in args])


def names_of_leaves(f: Callable[..., Any], paths: Sequence[Sequence[str]]) -> list[str]:
    """The same, of the paths inside each argument."""
    known, rest = positional(f)
    beyond = [f"{rest or 'args'}[{i}]" for i in range(len(paths) - len(known))]
    names = [*known, *beyond]
    return [name + path for name, inside in zip(names, paths, strict=False) for path in inside]


def leaf_names(f: Callable[..., Any], leaves: Sequence[Any], structure: Any) -> list[str]:
    """What to call each leaf of the arguments of a call, those by position first."""
    args, kwargs = pytree.unflatten(structure, leaves)
    names = argument_names(f, args)
    for key in sorted(kwargs):
        names += [key + path for path in pytree.paths(kwargs[key])]
    return names
