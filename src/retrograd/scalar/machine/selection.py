"""What runs the rows of a block: native code, or Python where LLVM cannot be had."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from retrograd.errors import BackendError
from retrograd.scalar.machine import portable
from retrograd.scalar.machine.arithmetic import symbols
from retrograd.scalar.machine.machine_text import machine_text
from retrograd.scalar.machine.tape_memory import TapeMemory
from retrograd.shared import IMPORTING, lock

# run(block, from, to, way); with the interpreter's lock, since other threads may add rows.
PROTOTYPE = ctypes.PYFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)
Run = Callable[[TapeMemory, int, int, int], int]
_LOCK = lock(50)
_MACHINE: Run | None = None
_NATIVE: Any = None  # the code lives as long as this


def machine() -> Run:
    """`run(block, from, to, way)`; see `machine_text.py`."""
    global _MACHINE, _NATIVE
    if _MACHINE is None:
        with _LOCK:
            if _MACHINE is None:
                _NATIVE = _native()
                _MACHINE = portable.run if _NATIVE is None else _wrapped(_NATIVE.address)
    return _MACHINE


def is_native() -> bool:
    """Whether rows are run by native code."""
    return machine() is not portable.run


def address() -> int:
    """Where the native machine lies, for code that calls it by itself; 0 if there is none."""
    return _NATIVE.address if is_native() else 0


def _native() -> Any:
    try:
        with IMPORTING:
            from retrograd.runtime.compiler import engine
    except ImportError:
        return None
    try:
        return engine().compile(machine_text(), symbols())
    except (BackendError, OSError, RuntimeError):
        return None


def _wrapped(address: int) -> Run:
    call = PROTOTYPE(address)
    return lambda block, start, end, way: call(block.address, start, end, way)
