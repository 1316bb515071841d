"""Modules that are imported late: those of a package when somebody first asks for one of its names
(PEP 562), and those of other packages, which may be absent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from retrograd.coming_from.hints import MissingName
from retrograd.errors import BackendError
from retrograd.shared import IMPORTING

EXTRAS = {  # what brings a package that comes with an extra
    "scipy": "'retrograd[scipy]'",
    "mpmath": "'retrograd[verify]'",
    "sympy": "'retrograd[verify]'",
    "wgpu": "'retrograd[wgpu]'",
    "cuda": "'retrograd[cuda]'",
}


def attach(
    package: str,
    modules: Mapping[str, str] = MappingProxyType({}),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: for the names of `modules` the module itself, for those of
    `names` what the module has under this name. It is called once for each; then the package has
    it like the rest. Any other name is an error that says which is meant."""

    def __getattr__(name: str) -> Any:
        with IMPORTING:
            if name in modules:
                found: Any = import_module(modules[name])
            elif name in names:
                found = getattr(import_module(names[name]), name)
            else:
                raise MissingName(sys.modules[package], name)
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__


def is_installed(name: str) -> bool:
    """Whether there is a package of this name; it is not imported."""
    from importlib.util import find_spec  # takes 3 ms

    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # of one whose import is refused
        return False


def _is_being_imported(module: Any) -> bool:
    """Whether a thread is importing it: until it has done so, names may be lacking."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def need(name: str, what: str) -> Any:
    """A module of another package; where that is not installed, `BackendError` that says what needs
    it and how to get it."""
    found = sys.modules.get(name)
    if found is not None and not _is_being_imported(found):
        return found
    package = name.partition(".")[0]
    with IMPORTING:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != package:
                raise
            remedy = EXTRAS.get(package, package)
            raise BackendError(
                f"{what} needs {package}, which is not installed: pip install {remedy}"
            ) from None
