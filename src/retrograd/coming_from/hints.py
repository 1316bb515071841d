"""What to write for a name that another library has: read from the tables beside this file.

A table is read when a message is shown, not when an attribute is found to be absent: `hasattr` is
called often, and nobody reads its message.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from retrograd.errors import RetrogradError, nearest

LIBRARIES = ("pytorch", "jax", "numpy")
KINDS = ("same", "differs", "other", "absent")


class NameHint(NamedTuple):
    """A name of another library: whether it is the same here (then without a text), means something
    that differs, is written otherwise, or is absent for a reason."""

    kind: str
    text: str


@functools.cache
def table(library: str) -> dict[str, dict[str, NameHint]]:
    """What is said of the names of a library, by the module or class that they are in."""
    import tomllib  # who reads no message waits for no parser

    text = Path(__file__).with_name(f"{library}.toml").read_text("utf-8")
    return {room: _entries(said) for room, said in tomllib.loads(text).items()}


def _entries(said: dict[str, Any]) -> dict[str, NameHint]:
    found = {name: NameHint("same", "") for name in said.get("same", "").split()}
    for kind in KINDS[1:]:
        for names, text in said.get(kind, {}).items():
            found |= {name: NameHint(kind, text) for name in names.split()}
    return found


# The rooms of other libraries that a room here answers to, by library in the order of asking.
ROOMS: dict[str, tuple[tuple[str, str], ...]] = {
    "Tensor": (("pytorch", "torch.Tensor"), ("jax", "jax.Array"), ("numpy", "numpy.ndarray")),
    "retrograd": (
        ("pytorch", "torch"),
        ("jax", "jax.numpy"),
        ("jax", "jax"),
        ("jax", "jax.lax"),
        ("jax", "jax modules"),
        ("numpy", "numpy"),
    ),
    "retrograd.autograd": (("pytorch", "torch.autograd"),),
    "retrograd.func": (("pytorch", "torch.func"),),
    "retrograd.utils": (("pytorch", "torch.utils"),),
    "retrograd.utils.cuda": (("pytorch", "torch.cuda"),),
    "retrograd.nn": (("pytorch", "torch.nn"), ("jax", "jax.nn")),
    "retrograd.nn.functional": (("pytorch", "torch.nn.functional"), ("jax", "jax.nn")),
    "retrograd.nn.utils": (("pytorch", "torch.nn.utils"),),
    "retrograd.functions.linalg": (("pytorch", "torch.linalg"), ("numpy", "numpy.linalg")),
    "retrograd.functions.fft": (("pytorch", "torch.fft"), ("numpy", "numpy.fft")),
    "retrograd.functions.special": (("pytorch", "torch.special"),),
    "retrograd.functions.random.generator": (
        ("jax", "jax.random"),
        ("numpy", "numpy.random"),
        ("pytorch", "torch.random"),
    ),
    "retrograd.optim": (("pytorch", "torch.optim"),),
    "retrograd.data": (("pytorch", "torch.utils.data"),),
}
# Under what name users know a module.
SHOWN = {
    "retrograd.functions.linalg": "retrograd.linalg",
    "retrograd.functions.fft": "retrograd.fft",
    "retrograd.functions.special": "retrograd.special",
    "retrograd.functions.random.generator": "retrograd.random",
    "retrograd.utils.cuda": "retrograd.cuda",
}


def hint(room: str, name: str) -> str:
    """What to write instead of a name, by the first library that has it; empty if none has."""
    for library, place in ROOMS.get(room, ()):
        entry = table(library).get(place, {}).get(name)
        if entry is not None and entry.text:
            return f"{place.removesuffix(' modules')}.{name}: {entry.text}"
    return ""


# Where else a name may be, from the package on.
PLACES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "data",
    "data.transforms", "linalg", "fft", "special", "random", "metrics", "gnn", "models", "io",
    "train", "solvers", "testing", "interop", "amp", "optim.schedules",
)  # fmt: skip


def elsewhere(name: str) -> str:
    """The end of a message about a name that another module of the package has."""
    for place in PLACES:
        try:
            found: Any = import_module("retrograd")
            for part in place.split(".") if place else ():
                found = getattr(found, part)
        except ImportError:  # of an extra, or while the package is imported
            continue
        own = getattr(vars(found).get(name), "__module__", None) == found.__name__
        if own or name in getattr(found, "__all__", ()):
            return f"; it is rg.{place + '.' if place else ''}{name}"
    return ""


def remedy(owner: Any, name: str) -> str:
    """The end of a message about a name that a module or a tensor has not: what to write."""
    is_module = isinstance(owner, ModuleType)
    said = hint(owner.__name__ if is_module else "Tensor", name)
    if said:
        return f"; {said}"
    known = [n for n in getattr(owner, "__all__", dir(owner)) if not n.startswith("_")]
    return (is_module and elsewhere(name)) or nearest(name, known)


class MissingName(RetrogradError, AttributeError):
    """An attribute that a tensor or a module has not. The message is made when it is shown."""

    _owner: Any
    _absent: str

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__(name)
        self.obj, self.name = owner, name
        self._owner, self._absent = owner, name

    def __str__(self) -> str:
        owner, name = self._owner, self._absent
        if isinstance(owner, ModuleType):
            what = f"module {SHOWN.get(owner.__name__, owner.__name__)!r}"
        else:
            what = f"{type(owner).__name__!r} object"
        return f"{what} has no attribute {name!r}{remedy(owner, name)}"

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)
