"""Where in the user's program we are."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType

from retrograd.ir import Source

PACKAGE = str(Path(__file__).resolve().parents[1])
COMMAND = str(Path(PACKAGE, "cli"))
# Rooms built on the public interface: where the command line is the user, they hold its program.
ABOVE = tuple(str(Path(PACKAGE, room)) for room in ("nn", "optim", "train"))


def user_source() -> Source | None:
    """The user's line that led here, as far as there is one."""
    code, lasti = user_place()
    return Source(code, lasti) if code is not None else None


def user_place() -> tuple[CodeType | None, int]:
    """The innermost line outside of this package that led here, as code object and offset; below
    the package's own command, where no line of a user's is to be found, the innermost line of a
    recipe or layer."""
    frame: FrameType | None = sys._getframe(1)
    last = frame
    above = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE):
            return frame.f_code, frame.f_lasti
        if file.startswith(COMMAND):
            break
        if above is None and file.startswith(ABOVE):
            above = frame
        last, frame = frame, frame.f_back
    found = above or last
    return (found.f_code, found.f_lasti) if found is not None else (None, 0)
