"""The source files of a checkout, read and parsed once."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

T = TypeVar("T", bound=ast.AST)
GROWS = {"__pycache__", "node_modules"}  # folders that hold no sources


@dataclass(frozen=True)
class File:
    """A Python file: its path from the package on, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> dict[type[ast.AST], list[ast.AST]]:
        """Every node of the syntax tree, by its class."""
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in ast.walk(self.tree):
            found[type(node)].append(node)
        return found


class Tree:
    """The package `retrograd` in a `src` folder, and the tests and pages beside it.

    The benchmarks (`src/retrograd_bench`) are no part of the package.
    """

    def __init__(self, source: Path) -> None:
        self.source = source.resolve()
        self.package = self.source / "retrograd"
        self.root = self.source.parent
        if not (self.package / "__init__.py").exists():
            raise SystemExit(f"no package retrograd in {source}")

    @cached_property
    def files(self) -> list[File]:
        with collector_off():
            return [self._read(p) for p in self.python_files()]

    def python_files(self) -> list[Path]:
        return [p for p in self.all_files() if p.suffix == ".py"]

    def all_files(self) -> list[Path]:
        found = (p for p in self.package.rglob("*") if p.is_file())
        return sorted(p for p in found if not GROWS & {*p.parts})

    def _read(self, path: Path) -> File:
        text = path.read_text(encoding="utf-8")
        return File(path.relative_to(self.package).as_posix(), text, ast.parse(text))

    def where(
        self, kinds: Iterable[type[T]], test: Callable[[T], bool] = lambda node: True
    ) -> Iterator[tuple[str, T]]:
        """Path and node of every node of these classes that passes a test."""
        for file in self.files:
            for kind in kinds:
                for node in file.nodes[kind]:
                    if test(node):  # type: ignore[arg-type]
                        yield file.path, node  # type: ignore[misc]


@contextmanager
def collector_off() -> Iterator[None]:
    """Without the garbage collector, which takes half the time while trees grow."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
