"""What runs the instructions of `vector_machine_text.py`."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from retrograd.errors import BackendError
from retrograd.scalar.machine import vector_machine_text
from retrograd.scalar.machine.arithmetic import symbols
from retrograd.shared import IMPORTING, lock

# run(table, values, grads, count), with the interpreter's lock: leaves are shared.
PROTOTYPE = ctypes.PYFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)
WORDS, MODES = vector_machine_text.WORDS, vector_machine_text.MODES
WIDE, ONE = tuple(vector_machine_text.WIDE), tuple(vector_machine_text.ONE)


@functools.cache
def kinds() -> dict[str, int]:
    """The numbers of all instructions."""
    return vector_machine_text.kinds()


_LOCK = lock(50)
_CODE: Any = None  # one for the process: what is dropped is unloaded, and others may be running it


def runner() -> Callable[[int, int, int, int], int]:
    """`run(table, values, grads, count)`."""
    global _CODE
    with IMPORTING:
        from retrograd.runtime.compiler import engine

    with _LOCK:
        if _CODE is None:
            _CODE = engine().compile(vector_machine_text.batch_text(), symbols())
        return PROTOTYPE(_CODE.address)


@functools.cache
def can_run() -> bool:
    """Whether native code can be had here."""
    try:
        runner()
    except (ImportError, BackendError, OSError, RuntimeError):
        return False
    return True
