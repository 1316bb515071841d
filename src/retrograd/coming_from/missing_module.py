"""What is said where somebody imports a module that the package has not, or has under another name.

`import retrograd.linalg` finds what `retrograd.linalg` is; `from retrograd import nnn` and
`import retrograd.lax` are errors that say what to write, as those of attributes do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from retrograd.coming_from.hints import remedy
from retrograd.errors import RetrogradError

PACKAGE = "retrograd"


class MissingModule(RetrogradError, ModuleNotFoundError):
    """A module that the package has not."""


class MissingImport(RetrogradError, ImportError):
    """A name that is imported from a module that has not got it."""


class _Alias:
    """Loads nothing: gives a module that is there by its other name."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class _MissingModuleFinder:
    """The last that is asked: nobody has found a module of the package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        owner: Any = sys.modules.get(parent)
        if parent.partition(".")[0] != PACKAGE or owner is None or name.startswith("_"):
            return None
        found = getattr(owner, name, None)
        if isinstance(found, ModuleType) and found.__name__.startswith(f"{PACKAGE}."):
            return ModuleSpec(fullname, _Alias(found))  # type: ignore[arg-type]
        caller = _importing()
        if caller == "from":
            raise MissingImport(f"cannot import name {name!r} from {parent!r}{remedy(owner, name)}")
        if caller == "import":
            raise MissingModule(f"No module named {fullname!r}{remedy(owner, name)}", name=fullname)
        return None  # `importlib.util.find_spec`, which is told that there is none


def _importing() -> str:
    """Whether it is `import package.name`, `from package import name`, or neither that asks."""
    frame: FrameType | None = sys._getframe(2)
    names = []
    while frame is not None and "importlib._bootstrap" in frame.f_code.co_filename:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    if "_handle_fromlist" in names:
        return "from"
    return "import" if "_find_and_load" in names else ""


def install() -> None:
    """Be asked from here on, once."""
    if not any(isinstance(finder, _MissingModuleFinder) for finder in sys.meta_path):
        sys.meta_path.append(_MissingModuleFinder())
