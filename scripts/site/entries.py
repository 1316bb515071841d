"""The public names of the package, found by importing it: what the reference is made of.

Names are read off `__all__` of the modules themselves, so none is forgotten, and objects are looked
at as they are: names that are loaded when they are asked for are loaded.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import retrograd as rg

ROOT = Path(__file__).parents[2]
SOURCE = Path(rg.__file__).parent
DEFINITION = re.compile(r"^(?:(?:def|class) (\w+)|(\w+)(?::[^=]+)? = )")


class Place(NamedTuple):
    """Where an object is defined: a file, relative to the repository, and a line."""

    file: str
    line: int


class Entry(NamedTuple):
    """A public name, `rg.nn.Linear`, and what it stands for."""

    name: str
    value: Any

    @property
    def word(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def anchor(self) -> str:
        return self.name.replace("__", "")  # which would be read as emphasis

    @property
    def kind(self) -> str:
        if inspect.isclass(self.value):
            return "class"
        if isinstance(self.value, property):
            return "property"
        return "function" if callable(self.value) else "value"


def names_of(module: ModuleType) -> list[str]:
    """`__all__` of a module, or what is defined in it under a public name."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or callable(value))
        and getattr(value, "__module__", None) == module.__name__
        and type(value).__module__ != "typing"  # type variables
    ]


@functools.cache
def rooms() -> dict[str, ModuleType]:
    """The public modules: `rg`, and those that are names of one, to any depth."""
    found: dict[str, ModuleType] = {}
    todo: list[tuple[str, ModuleType]] = [("rg", rg)]
    while todo:
        name, module = todo.pop(0)
        found[name] = module
        inner = [(f"{name}.{word}", getattr(module, word)) for word in names_of(module)]
        todo += [(path, value) for path, value in inner if inspect.ismodule(value)]
    return found


@functools.cache
def entries() -> dict[str, Entry]:
    """Every public name but for modules, by its full name."""
    found = {}
    for room, module in rooms().items():
        for word in names_of(module):
            value = getattr(module, word)
            if not inspect.ismodule(value):
                found[f"{room}.{word}"] = Entry(f"{room}.{word}", value)
    return found


@functools.cache
def _public_classes() -> frozenset[type]:
    return frozenset(e.value for e in entries().values() if inspect.isclass(e.value))


def members(entry: Entry) -> list[Entry]:
    """The documented public methods and properties of a class; those of a base class that is public
    itself stand there."""
    found: dict[str, Entry] = {}
    if not inspect.isclass(entry.value):
        return []
    others = [c for c in entry.value.__mro__[1:] if c in _public_classes()]
    for base in entry.value.__mro__:
        is_elsewhere = any(issubclass(other, base) for other in others)
        if is_elsewhere or not base.__module__.startswith("retrograd"):
            continue
        for word, raw in vars(base).items():
            if isinstance(raw, staticmethod) and _home(raw.__func__) != base.__module__:
                continue  # a function that a class is made of, as losses are
            value = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
            is_member = inspect.isroutine(value) or isinstance(value, property) or _is_function(raw)
            if not word.startswith("_") and is_member and word not in found and value.__doc__:
                found[word] = Entry(f"{entry.name}.{word}", value)
    return [found[word] for word in sorted(found)]


def _home(value: Any) -> str | None:
    return getattr(value, "__module__", None)


def _is_function(value: Any) -> bool:
    """A function of the library, which is a callable of its own kind."""
    return callable(value) and not inspect.isclass(value) and hasattr(value, "__wrapped__")


@functools.cache
def _first_names() -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in entries().values():
        if entry.kind == "function":
            found.setdefault(id(entry.value), entry.name)
    return found


def same_as(entry: Entry) -> str | None:
    """The name of the public function that a method is, or that has two names."""
    if inspect.isclass(entry.value) or entry.kind != "function":
        return None
    name = _first_names().get(id(entry.value))
    return name if name != entry.name else None


def docstring(entry: Entry) -> str:
    """The docstring; of a value, which has only that of its class, what it is."""
    if entry.kind == "value":
        return f"`{entry.value!r}`"
    return inspect.getdoc(entry.value) or ""


def summary(entry: Entry) -> str:
    """The first sentence of the docstring."""
    paragraph = " ".join(docstring(entry).partition("\n\n")[0].split())
    inside = False  # of backticks
    for i, letter in enumerate(paragraph):
        inside ^= letter == "`"
        end = paragraph[i : i + 2] in (". ", ": ", "; ") or i == len(paragraph) - 1
        if end and not inside and not paragraph[:i].endswith(("e.g", "i.e")):
            return paragraph[: i + 1].rstrip(":;")
    return paragraph


def place(entry: Entry) -> Place | None:
    """Where the object is defined, if that is in the package."""
    value: Any = entry.value.fget if isinstance(entry.value, property) else entry.value
    value = inspect.unwrap(value) if callable(value) else value
    code = getattr(value, "__code__", None)
    if code is not None and code.co_name == entry.word and _is_own(code.co_filename):
        return Place(Path(code.co_filename).relative_to(ROOT).as_posix(), code.co_firstlineno)
    # A class, a function under another name, or one that a function has made.
    module = sys.modules.get(getattr(entry.value, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if file is None or not _is_own(file):
        return None
    line = _definitions(file).get(entry.word) or _definitions(file).get(
        getattr(value, "__name__", ""), 1
    )
    return Place(Path(file).relative_to(ROOT).as_posix(), line)


def _is_own(file: str) -> bool:
    return Path(file).is_relative_to(SOURCE)


@functools.cache
def _definitions(file: str) -> dict[str, int]:
    """The lines in which names of a module are defined."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        match = DEFINITION.match(line)
        if match:
            found.setdefault(match[1] or match[2], number)
    return found


def signature(entry: Entry) -> str:
    """The call with its types, in one line, or a parameter a line if that is too long."""
    if entry.kind in ("value", "property"):
        return entry.word
    try:
        parameters = [*inspect.signature(entry.value).parameters.values()]
        returns = inspect.signature(entry.value).return_annotation
    except (TypeError, ValueError):
        return f"{entry.word}(...)"
    parts = [*_parts(parameters)]
    back = "" if returns in (inspect.Signature.empty, "None") else f" -> {_type(returns)}"
    head = f"class {entry.word}" if entry.kind == "class" else entry.word
    text = f"{head}({', '.join(parts)}){back}"
    if len(text) > 88:
        text = f"{head}(\n" + "".join(f"    {part},\n" for part in parts) + f"){back}"
    forward = getattr(entry.value, "forward", None) if entry.kind == "class" else None
    if inspect.isfunction(forward):  # a module: how it is called
        inner = [*inspect.signature(forward).parameters.values()][1:]
        text += f"\n    forward({', '.join(_parts(inner))})"
    return text


def _parts(parameters: list[inspect.Parameter]) -> Iterator[str]:
    is_keyword_only = False
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            if not any(q.kind is p.VAR_POSITIONAL for q in parameters[:i]):
                yield "*"
        stars = "*" * ((p.kind is p.VAR_POSITIONAL) + 2 * (p.kind is p.VAR_KEYWORD))
        text = stars + p.name
        if p.annotation is not p.empty:
            text += f": {_type(p.annotation)}"
        if p.default is not p.empty:
            spaced = " = " if p.annotation is not p.empty else "="
            text += spaced + _value(p.default)
        yield text
        following = parameters[i + 1].kind if i + 1 < len(parameters) else None
        if p.kind is p.POSITIONAL_ONLY and following is not p.POSITIONAL_ONLY:
            yield "/"


def _type(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation.strip("'\"")
    return getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")


def _value(default: Any) -> str:
    if inspect.isclass(default) or inspect.isroutine(default):
        return str(default.__name__)
    text = repr(default)
    return text if " at 0x" not in text else "..."
