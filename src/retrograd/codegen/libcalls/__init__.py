"""Calls of library routines: LAPACK, NumPy and Python, as functions in LLVM."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.codegen.libcalls.python_callback import failure

# What a routine in Python has raised is asked for by few.
LATER_NAMES = {
    "failure": "retrograd.codegen.libcalls.python_callback",
}
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = ["failure"]
