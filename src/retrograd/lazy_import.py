"""Names of a package whose modules are imported when somebody first asks for one (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from retrograd.coming_from.hints import MissingName
from retrograd.shared import IMPORTING


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
