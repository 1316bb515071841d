"""Failures of a command as one readable message."""

from __future__ import annotations

import errno
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from retrograd.errors import RetrogradError


class ReadableErrors(TyperGroup):
    """A group of commands whose expected failures end with a message and exit code 1.

    Expected are retrograd's own errors and those of the operating system. `--debug` shows where
    they come from; anything else is a defect, and shows it always.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (RetrogradError, OSError) as error:
            broken_pipe = isinstance(error, OSError) and error.errno == errno.EPIPE
            if broken_pipe or ctx.params.get("debug"):
                raise
            console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
            console.print("error:", style="bold red", end=" ")
            console.print(readable(error))
            raise typer.Exit(1) from None


def readable(error: Exception) -> str:
    """An error as a sentence, with the file it is about and the notes that were added to it.

    >>> readable(FileNotFoundError(2, "there is no such file", "a.txt"))
    'a.txt: there is no such file'
    """
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return "\n".join([text, *getattr(error, "__notes__", ())])
