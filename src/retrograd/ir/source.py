"""Where in the user's program we are."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

from retrograd.errors import (
    ArgumentError,
    DTypeError,
    IndexRangeError,
    OptionError,
    RetrogradError,
    ShapeError,
)
from retrograd.ir import Source

F = TypeVar("F", bound=Callable[..., Any])
REFUSALS = (ShapeError, DTypeError, OptionError, ArgumentError, IndexRangeError)

_HERE = Path(__file__).resolve().parents[1]
PACKAGE = f"{_HERE}{os.sep}"
COMMAND = f"{_HERE / 'cli'}{os.sep}"
# Rooms built on the public interface: where the command line is the user, they hold its program.
ABOVE = tuple([f"{_HERE / room}{os.sep}" for room in ("nn", "optim", "train")])
USER, INSIDE, RECIPE, TOOL = range(4)  # where a file is
PLACES: dict[str, int] = {}  # of files that we have come across, by name


def user_source() -> Source | None:
    """The user's line that led here, as far as there is one."""
    code, lasti = user_place()
    return Source(code, lasti) if code is not None else None


def user_place() -> tuple[CodeType | None, int]:
    """The innermost line outside of this package that led here, as code object and offset; below
    the package's own command, where no line of a user's is to be found, the innermost line of a
    recipe or layer."""
    frame: FrameType | None = sys._getframe(2)  # the caller is of this package
    last = frame
    above = None
    while frame is not None:
        code = frame.f_code
        where = PLACES.get(code.co_filename)
        if where is None:
            where = _where(code.co_filename)
        if where == USER:
            return code, frame.f_lasti
        if where == TOOL:
            break
        if where == RECIPE and above is None:
            above = frame
        last, frame = frame, frame.f_back
    found = above or last
    return (found.f_code, found.f_lasti) if found is not None else (None, 0)


def user_level() -> int:
    """How many calls up the user's line is from the caller: the `stacklevel` of a warning."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _where(file: str) -> int:
    if not file.startswith(PACKAGE):
        where = USER
    elif file.startswith(COMMAND):
        where = TOOL
    else:
        where = RECIPE if file.startswith(ABOVE) else INSIDE
    if len(PLACES) >= 10_000:  # code that is made while a program runs may have many names
        PLACES.clear()
    PLACES[file] = where
    return where


def locate(error: RetrogradError, name: str, source: Source | None) -> None:
    """Let the message say which function was called where, unless it says so already; a private
    one has no name that a user knows."""
    text = str(error)
    if source is not None and str(source) not in text:
        called = "" if name.rpartition(".")[2].startswith("_") else f"{name} "
        error.args = (f"{text} ({called}at {source})", *error.args[1:])


def located(f: F) -> F:
    """A function whose refusals say on which line it was called, where nothing below said so."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return f(*args, **kwargs)
        except REFUSALS as error:
            locate(error, f.__name__, user_source())
            raise

    return call  # type: ignore[return-value]
