"""What is asked of the package itself, in a process of its own: `python -m scripts.house.probe`.

    probe public       names of the registered ops, and docstrings of all that is public
    probe grad | jit   the source files that the first three calls of a gradient enter

Prints JSON. The package is the one that stands in the path, of whatever revision.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import retrograd as rg

PACKAGE = str(Path(rg.__file__).parent)
IMPORTED_LATER = ("codegen", "schedule", "runtime")
ROOMS = {
    "rg": tuple("retrograd" + part for part in ("", ".linalg", ".random", ".fft", ".special")),
    "nn": ("retrograd.nn", "retrograd.nn.functional"),
    "optim": ("retrograd.optim",),
    "gnn": ("retrograd.gnn",),
}  # fmt: skip


def public() -> dict[str, Any]:
    """Ops by name, the classes of ops, and docstrings by room."""
    docstrings = {
        room: {name: text for path in paths for name, text in documented(path)}
        for room, paths in ROOMS.items()
    }
    registry = importlib.import_module("retrograd.ir").REGISTRY
    classes = [factory.__name__ for factory in registry.values() if isinstance(factory, type)]
    return {"ops": sorted(registry), "classes": sorted(classes), "docstrings": docstrings}


def documented(path: str) -> Iterator[tuple[str, str]]:
    """Names and docstrings of the public functions and classes of a module, without errors,
    types of elements, and what is another library's."""
    module: Any = rg
    for part in path.split(".")[1:]:
        module = getattr(module, part)
    for name in getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]:
        thing = getattr(module, name)
        is_error = isinstance(thing, type) and issubclass(thing, BaseException)
        is_own = str(getattr(thing, "__module__", "")).startswith("retrograd")
        if callable(thing) and is_own and not is_error and not isinstance(thing, type(rg.float32)):
            yield f"{path}.{name}".removeprefix("retrograd."), inspect.getdoc(thing) or ""


def calls(kind: str) -> list[list[str]]:
    """The files entered by each of three calls of the gradient of f(x) = sum(x sin x), and by
    reading it."""
    for module in pkgutil.walk_packages(rg.__path__, "retrograd."):
        if module.name.split(".")[1] in IMPORTED_LATER:  # classes that are made are not counted
            importlib.import_module(module.name)
    x = rg.tensor(np.ones(3, np.float32))
    compiled = rg.jit(rg.grad(f))
    call = {"grad": lambda: rg.grad(f)(x), "jit": lambda: compiled(x)}[kind]
    return [entered(call) for _ in range(3)]


def f(x: Any) -> Any:
    return (rg.sin(x) * x).sum()


def entered(call: Callable[[], Any]) -> list[str]:
    """The source files in which a function is entered, on this thread; importing is not counted."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        call().numpy()
    finally:
        sys.setprofile(None)
    files = {c.co_filename for c in codes if c.co_name != "<module>"}
    return sorted(Path(p).relative_to(PACKAGE).as_posix() for p in files if p.startswith(PACKAGE))


if __name__ == "__main__":
    what = sys.argv[1]
    json.dump(public() if what == "public" else calls(what), sys.stdout)
