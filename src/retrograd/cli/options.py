"""What several commands have: options, and the name they are started by."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import retrograd as rg
from retrograd.files import make_directory

CONTROLS = ("Cc", "Cs", "Zl", "Zp")  # what moves a terminal's cursor, or cannot be written


def printable(text: str) -> str:
    """A text for a terminal: characters that control it, or end a line, as escapes."""
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in CONTROLS else c
        for c in text
    )


def _known_backend(name: str) -> str:
    if name not in rg.backends():
        raise typer.BadParameter(
            f"there is no backend {name!r}; choose from {', '.join(rg.backends())}"
        )
    return name


Backend = Annotated[
    str, typer.Option(help="What computes: llvm, or reference (slow).", callback=_known_backend)
]
Temperature = Annotated[
    float, typer.Option(min=0.0, help="Below 1: more usual texts; above: more surprising ones.")
]
Dashboard = Annotated[
    bool, typer.Option("--dashboard", help="Show the run on a page in the browser.")
]


def is_given(ctx: typer.Context, name: str) -> bool:
    """Whether an option was named, rather than left at its default."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def command() -> str:
    """How this program is started from here: by name where the shell finds it, else by path."""
    if shutil.which("retrograd") or not sys.argv[0].endswith("retrograd"):
        return "retrograd"
    return os.path.relpath(sys.argv[0])


@contextmanager
def board_of(wanted: bool, out: Path, console: Console) -> Iterator[Any]:
    """A dashboard, if one is wanted; when the run has ended, it is left as a file beside it."""
    if not wanted:
        yield None
        return
    with rg.dashboard(f"training in {out}", controls=("stop", "checkpoint")) as board:
        console.print(f"Dashboard: {board.url}")
        yield board
        board.save(make_directory(out) / "dashboard.html")
