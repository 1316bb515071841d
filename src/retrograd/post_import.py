"""Modules of this package that are imported once another package is: a post-import hook.

A library that finds the arrays it works with in a list of its own has to be told of tensors before
it looks, and must not be imported for that. So its import is watched for, by an entry of
`sys.meta_path` that goes away when there is nothing left to watch for. The classes of
`importlib.abc`, which would say what is needed, bring more modules than all the rest here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Told:
    """Loads a module as another loader does, and then imports what waited for it."""

    def __init__(self, loader: Any, waiting: str) -> None:
        self.loader, self.waiting = loader, waiting

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader  # as if nobody had watched
        self.loader.exec_module(module)
        import_module(self.waiting)


class _Finder:
    """Finds nothing by itself: the modules that are waited for, by who else finds them."""

    def __init__(self, waiting: Mapping[str, str]) -> None:
        self.waiting = dict(waiting)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        waiting = self.waiting.pop(fullname, None)
        if waiting is None:
            return None
        if not self.waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Told(spec.loader, waiting)  # type: ignore[assignment]
                return spec
        return None


def watch(waiting: Mapping[str, str]) -> None:
    """Import modules once those they wait for are imported: at once where these are there."""
    left = {}
    for name, module in waiting.items():
        if name in sys.modules:
            import_module(module)
        else:
            left[name] = module
    if left:
        sys.meta_path.insert(0, _Finder(left))
