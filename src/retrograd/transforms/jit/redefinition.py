"""`jit` where functions are redefined while a program runs: in a notebook, or IPython.

A compiled program holds what a function did when it was traced. In a program that is no more than
that: a script does not define its functions anew. Where cells are run again, and modules reloaded
(`%autoreload` puts new code into old functions), a function that is jitted may call one that has
changed since. So there, and only there, each call looks whether the definitions still hold that the
function was traced with.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from retrograd.ir.source import PACKAGE

MOST = 2000  # objects that are looked into
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD = os.path.dirname(os.__file__) + os.sep


class Definitions:
    """The user's functions that something is made of, as they were: those it names, those they
    name, and those of the classes of objects."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self._named: list[tuple[dict[str, Any], str, Any]] = []
        self._functions: list[FunctionType] = []
        self._codes: list[CodeType] = []  # of these, in lists that are quick to compare
        self._known: dict[int, Any] = {}  # functions and classes, by identity
        self.add([f])

    def hold(self) -> bool:
        """Whether nothing was redefined."""
        for namespace, name, value in self._named:
            if namespace.get(name) is not value:
                return False
        return [f.__code__ for f in self._functions] == self._codes

    def add(self, todo: list[Any]) -> None:
        """Take what these are made of as it is now."""
        seen: dict[int, Any] = {}  # objects, which live as long as this
        while todo and len(seen) + len(self._known) < MOST:
            x = todo.pop()
            if id(x) in seen or id(x) in self._known:
                continue
            (self._known if isinstance(x, FunctionType | type) else seen)[id(x)] = x
            todo += self._inside(x)

    def _inside(self, x: Any) -> list[Any]:
        if isinstance(x, FunctionType):
            return self._function(x) if _is_users(x) else [getattr(x, "__wrapped__", None)]
        if isinstance(x, MethodType):
            return [x.__func__, x.__self__]
        if isinstance(x, functools.partial):
            return [x.func, *x.args, *x.keywords.values()]
        if isinstance(x, list | tuple):
            return list(x) if len(x) <= MOST else []
        if isinstance(x, dict):
            return list(x.values())
        if isinstance(x, type):
            return [*vars(x).values(), *x.__bases__] if _is_users(x) else []
        wrapped = getattr(x, "__wrapped__", None)
        if wrapped is not None:
            return [wrapped]
        held = getattr(x, "__dict__", None)
        return [type(x), *held.values()] if isinstance(held, dict) else []

    def _function(self, f: FunctionType) -> list[Any]:
        self._functions.append(f)
        self._codes.append(f.__code__)
        found = [getattr(f, "__wrapped__", None), *(f.__defaults__ or ())]
        for cell in f.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # it is not filled yet
                continue
        names = {*_names(f.__code__)}
        for space in _namespaces(f, names):
            for name in names & space.keys():
                value = space[name]
                if isinstance(value, FunctionType | type) or hasattr(value, "__wrapped__"):
                    self._named.append((space, name, value))
                    found.append(value)
        return found


def _namespaces(f: FunctionType, names: set[str]) -> list[dict[str, Any]]:
    """Where a function looks names up: its globals, and the user's modules among these."""
    modules = [f.__globals__[n] for n in names & f.__globals__.keys()]
    return [
        f.__globals__,
        *[vars(m) for m in modules if isinstance(m, ModuleType) and _is_users_file(m)],
    ]


def _is_users(f: FunctionType | type) -> bool:
    """Whether a function or class is neither of this package, nor of Python or of one that is
    installed; those of cells are the user's."""
    if isinstance(f, FunctionType):
        return _is_users_place(f.__code__.co_filename)
    return f.__module__ != "builtins" and _is_users_file(sys.modules.get(f.__module__))


def _is_users_file(module: ModuleType | None) -> bool:
    return _is_users_place(getattr(module, "__file__", None) or "")


def _is_users_place(file: str) -> bool:
    return not file.startswith((PACKAGE, _STANDARD)) and not any(p in file for p in _PACKAGES)


def _names(code: CodeType) -> Iterator[str]:
    """The globals that a function and those inside of it name."""
    yield from code.co_names
    for c in code.co_consts:
        if isinstance(c, CodeType):
            yield from _names(c)
