"""Where in the user's program we are."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from retrograd.ir import Source

PACKAGE = str(Path(__file__).resolve().parents[1])


def user_source() -> Source | None:
    """The innermost line outside of this package that led here."""
    frame: FrameType | None = sys._getframe(1)
    outermost = frame
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        outermost, frame = frame, frame.f_back
    found = frame or outermost
    return Source(found.f_code, found.f_lasti) if found is not None else None
