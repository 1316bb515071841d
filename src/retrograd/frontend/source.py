"""Where in the user's program we are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType, FrameType

from retrograd.ir import Source

_HERE = Path(__file__).resolve().parents[1]
PACKAGE = f"{_HERE}{os.sep}"
COMMAND = f"{_HERE / 'cli'}{os.sep}"
# Rooms built on the public interface: where the command line is the user, they hold its program.
ABOVE = tuple([f"{_HERE / room}{os.sep}" for room in ("nn", "optim", "train")])
USER, INSIDE, RECIPE, TOOL = range(4)  # where a file is
_WHERE: dict[str, int] = {}  # by the name of a file, as far as we have come across it


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
        where = _WHERE.get(code.co_filename)
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


def _where(file: str) -> int:
    if not file.startswith(PACKAGE):
        where = USER
    elif file.startswith(COMMAND):
        where = TOOL
    else:
        where = RECIPE if file.startswith(ABOVE) else INSIDE
    if len(_WHERE) >= 10_000:  # code that is made while a program runs may have many names
        _WHERE.clear()
    _WHERE[file] = where
    return where
