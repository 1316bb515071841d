"""Failures of a command as one readable message."""

from __future__ import annotations

import errno
import os
import signal
from typing import Any

import click

from retrograd.cli.signature import Group
from retrograd.errors import RetrogradError


class ReadableErrors(Group):
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
            color = False if os.environ.get("NO_COLOR") else None  # None: as the terminal can
            label = click.style("error:", fg="red", bold=True)
            click.echo(f"{label} {readable(error)}", err=True, color=color)
            raise click.exceptions.Exit(1) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(128 + signal.SIGINT) from None


def readable(error: Exception) -> str:
    """An error as a sentence, with the file it is about and the notes that were added to it.

    >>> readable(FileNotFoundError(2, "there is no such file", "a.txt"))
    'a.txt: there is no such file'
    """
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return "\n".join([text, *getattr(error, "__notes__", ())])
