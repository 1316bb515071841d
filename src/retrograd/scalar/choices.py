"""`max` and `min` of numbers that a trace does not know.

Python's ask for the outcome of comparisons, which a trace does not have. The builtins stay what
they are: while some thread traces a function, the two names mean something else in the modules
whose functions it reaches, and even there, on anything but numbers of this thread's trace, what
Python's mean. A function that is not found in this way gets Python's own, which refuse them.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograd.scalar.machine import BY_NAME
from retrograd.scalar.scalar import Scalar
from retrograd.scalar.tape import current_trace

REACHED = 20_000  # objects that functions are looked for in
_DATA = (Scalar, str, bytes, int, float, complex, type(None), np.ndarray, np.generic)
_OTHERS = (__name__.partition(".")[0], "numpy")

Namespace = dict[str, Any]
_CHANGED: list[Namespace] = []  # namespaces in which the names stand for choices


def _choice(name: str) -> Callable[..., Any]:
    """`max` or `min` that knows numbers of a trace."""
    real = getattr(builtins, name)

    def choose(*args: Any, **named: Any) -> Any:
        trace = current_trace()
        if trace is None or named:
            return real(*args, **named)
        items = args if len(args) > 1 else list(args[0]) if args else ()
        if not any(getattr(x, "_tape", None) is trace.tape for x in items):
            return real(items) if items else real(*args)
        best = items[0]
        for x in items[1:]:
            best = trace.operation(BY_NAME[name].code, best, x)
        return best

    choose.__name__, choose.__doc__ = name, real.__doc__
    return choose


CHOICES = {name: _choice(name) for name in ("max", "min")}


def choose_in(f: Any) -> None:
    """Have the names stand for choices in the modules that a function reaches; under the lock."""
    for names in namespaces(f):
        _CHANGED.append(names)
        for name, choice in CHOICES.items():
            if name not in names:
                names[name] = choice


def choose_nowhere() -> None:
    """Have the names mean what they do everywhere; under the lock. May be done again."""
    for names in _CHANGED:
        for name, choice in CHOICES.items():
            if names.get(name) is choice:
                del names[name]
    _CHANGED.clear()


def namespaces(f: Any) -> list[Namespace]:
    """The globals of the functions that a function reaches and that name `max` or `min`: by its
    closure, its defaults, the globals and attributes of modules that it names, what these hold, and
    the methods of their classes."""
    todo = deque([f])  # what is near comes first
    seen: set[int] = set()
    held: list[Any] = []
    found: dict[int, Namespace] = {}
    while todo and len(seen) < REACHED:
        x = todo.popleft()
        if id(x) in seen or isinstance(x, _DATA):
            continue
        seen.add(id(x))
        held.append(x)  # so that no other object gets its identity
        if isinstance(x, types.FunctionType):
            if not _is_users(x):
                continue
            names = set(_names(x.__code__))
            if not names.isdisjoint(CHOICES):
                found[id(x.__globals__)] = x.__globals__
            todo += _used(x, names)
        else:
            todo += _inside(x)
    return list(found.values())


def _is_users(x: types.FunctionType | type) -> bool:
    """Whether a function or class is neither of this package, nor Python's or NumPy's own."""
    package = (x.__module__ or "").partition(".")[0]
    return package not in _OTHERS and package not in sys.stdlib_module_names


def _names(code: types.CodeType) -> Iterator[str]:
    """The globals and attributes that a function names, and functions inside of it."""
    yield from code.co_names
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _names(c)


def _used(f: types.FunctionType, names: set[str]) -> list[Any]:
    """What a function can use: what it closes over, its defaults, and the globals that it names."""
    found = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    for cell in f.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # it is not filled yet
            continue
    for x in [f.__globals__[n] for n in names if n in f.__globals__]:
        held = vars(x) if isinstance(x, types.ModuleType) else {}
        found += [x, *[held[n] for n in names if n in held]]
    return found


def _inside(x: Any) -> list[Any]:
    """What is held by what is no function, and the functions of its class."""
    if isinstance(x, list | tuple | set | frozenset):
        return [y for y in x if not isinstance(y, _DATA)]  # these are many
    if isinstance(x, dict):
        return _inside(list(x.values()))
    if isinstance(x, types.MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, classmethod | staticmethod):
        return [x.__func__]
    if isinstance(x, property):
        return [x.fget, x.fset]
    if isinstance(x, types.ModuleType | types.BuiltinFunctionType):
        return []
    if isinstance(x, type):
        return [*vars(x).values(), *x.__bases__] if _is_users(x) else []
    held = getattr(x, "__dict__", None)
    found = list(held.values()) if isinstance(held, dict) else []
    return [*found, getattr(x, "__wrapped__", None), type(x)]


__all__ = ["choose_in", "choose_nowhere"]
