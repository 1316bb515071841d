"""Modules that are imported late: those of a package when somebody first asks for one of its names
(PEP 562), and those of other packages, which may be absent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from retrograd.coming_from.hints import MissingName
from retrograd.errors import BackendError
from retrograd.shared import IMPORTING

EXTRAS = {"scipy": "'retrograd[scipy]'"}  # what brings a package that comes with an extra


def attach(
    package: str, modules: Mapping[str, str], names: Mapping[str, str]
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: for the names of `modules` the module itself, for those of
    `names` what the module has under this name. It is called once for each; then the package has
    it like the rest."""

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


def need(name: str, what: str) -> Any:
    """A module of another package; where that is not installed, `BackendError` that says what needs
    it and how to get it."""
    found = sys.modules.get(name)
    if found is not None:
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
