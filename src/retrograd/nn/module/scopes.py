"""Scopes: where the module that is called stands below the one that the user called."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from retrograd.ir import Provenance, provenance, remade
from retrograd.nn.module.pytree import Composite, members, submodules


class Paths:
    """The paths of all modules below one, such as `.layers[0].attn`.

    It is kept from call to call, since to walk through a module takes longer than most calls. So
    it holds no module, and looks whether one is still where it was.
    """

    __slots__ = ("_found", "_root")

    def __init__(self, root: Composite, forget: Callable[[weakref.ref[Any]], None]) -> None:
        self._root = weakref.ref(root, forget)
        self._found: dict[int, tuple[weakref.ref[Any], str, weakref.ref[Any], Sequence[Any]]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Walk through the module again, which may have others below it by now."""
        self._found.clear()
        root = self._root()
        below = list(submodules(root)) if root is not None else []
        paths = {id(m.value): m.path for m in below}
        for owner in below:
            for m in members(owner.value):
                if isinstance(m.value, Composite) and paths[id(m.value)] == owner.path + m.path:
                    place = weakref.ref(owner.value), m.keys
                    self._found[id(m.value)] = weakref.ref(m.value), paths[id(m.value)], *place

    def get(self, module: Composite) -> str | None:
        """The path of a module; None if it is not there."""
        found = self._found.get(id(module))
        if found is None:
            return None
        ref, path, owner, keys = found
        return path if ref() is module and _member(owner(), keys) is module else None


def _member(owner: Any, keys: Sequence[Hashable]) -> Any:
    """What stands at a place in a module; None if there is no such place."""
    found: Any = vars(owner) if owner is not None else {}
    try:
        for key in keys:
            found = found[key]
    except (KeyError, IndexError, TypeError):
        return None
    return found


_PATHS: dict[int, Paths] = {}  # of modules that were called by users and are alive, by identity


def paths_below(root: Composite) -> Paths:
    """The paths of what is below a module."""
    found = _PATHS.get(id(root))
    if found is None or found._root() is not root:
        key = id(root)
        found = _PATHS[key] = Paths(root, lambda ref: _forget(key, ref))
    return found


def _forget(key: int, root: weakref.ref[Any]) -> None:
    if (found := _PATHS.get(key)) is not None and found._root is root:
        del _PATHS[key]


class CalledModule:
    """A module that is being called, and its scope; `outer` is the one whose forward calls it
    without having it below itself."""

    __slots__ = ("_is_fresh", "_outer", "_paths", "_scope")

    def __init__(self, module: Composite, scope: str, outer: CalledModule | None) -> None:
        self._scope, self._outer = scope, outer
        self._paths = paths_below(module)
        self._is_fresh = False

    def scope_of(self, module: Composite) -> str | None:
        """The scope of a module below this one, or an outer one; None if it is below neither."""
        path = self._paths.get(module)
        if path is None and not self._is_fresh:
            self._is_fresh = True
            self._paths.refresh()
            path = self._paths.get(module)
        if path is not None:
            return self._scope + path
        return self._outer.scope_of(module) if self._outer is not None else None


@contextmanager
def standing_in(module: Composite, name: str) -> Iterator[None]:
    """What is made while a module stands in for the member `name` of the one that is called."""
    here, outer = provenance(), CALLED.get()
    scope = f"{here.scope}.{name}"
    try:
        CALLED.set(CalledModule(module, scope, outer))
        remade(Provenance(scope, here.source, here.origin))
        yield
    finally:
        CALLED.set(outer)
        remade(here)


CALLED: ContextVar[CalledModule | None] = ContextVar("called", default=None)
