"""Routines of matrix products that come with the package as object code.

Nearly every program calls one, and to compile them takes longer than the rest of a small program.
`make native` compiles them for levels of x86-64 (`prebuilt/`), by LLVM, as they would be compiled
at the first call. Each file begins with a digest of the text that it was made of: code of another
text is not used, so that what runs is always what `codegen/gemm` says.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from retrograd.files import sha256

PREBUILT = Path(__file__).parent / "prebuilt"
LEVELS = ("x86-64-v3", "x86-64-v4")
PLATFORM = "x86_64-linux"  # others have another format of object files
ROUTINES = tuple(f"rg_{name}_float32" for name in ("gemm", "gemm_spread", "gemm_windows", "few"))
DIGEST = 32


def place(level: str, name: str) -> Path:
    """The file of a routine."""
    return PREBUILT / f"{name}-{level}.o"


def digest(level: str, text: str) -> bytes:
    """What tells of which text a file was made."""
    return sha256(f"{level} {text}".encode()).digest()


def prebuilt(platform: str, level: str, name: str, text: str) -> bytes | None:
    """The object code of a routine of this text, if it is there."""
    if platform == PLATFORM and level in LEVELS and name in ROUTINES:
        with suppress(OSError):
            content = place(level, name).read_bytes()
            if content[:DIGEST] == digest(level, text):
                return content[DIGEST:]
    return None
