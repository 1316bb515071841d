"""Functions of NumPy that compiled programs call.

NumPy hands a table of functions to extensions written in C, and with each dtype one of its own, in
which a function sorts. That one knows the vectors of every processor and needs no lock of the
interpreter. Places in the table stay the same as long as the interface is of one version, which the
first function tells; under another one sorting goes through the interpreter.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from retrograd.codegen.sort.radix import DTYPES

KNOWN = 0x2000000  # the version of the interface: that of NumPy 2
_VERSION, _OF_DTYPE = 0, 365  # places in NumPy's table
_SORT = 21 + 12  # the place of sorting in a dtype's: behind casts to 21 dtypes, and 12 others
_SORTER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)


def _places(address: Any) -> Any:
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))


@functools.cache
def _table() -> Any:
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    return _places(pointer(capsule, None))


def _is_known() -> bool:
    """Whether functions are where they are looked for."""
    return bool(ctypes.CFUNCTYPE(ctypes.c_uint)(_table()[_VERSION])() == KNOWN)


@functools.cache
def sort_address(symbol: str) -> int:
    """Where the function is that sorts numbers in ascending order, in place."""
    dtype = DTYPES[symbol]
    table = _table()
    if _is_known():
        functions = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[_OF_DTYPE])
        return int(_places(functions(dtype))[_SORT])
    return int(ctypes.cast(_interpreted(dtype), ctypes.c_void_p).value or 0)


@functools.cache  # kept as long as programs may call it
def _interpreted(dtype: np.dtype[Any]) -> Any:
    """The same through the interpreter."""

    def sort(start: int, count: int, _: int | None) -> int:
        memory: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(start)
        np.frombuffer(memory, dtype).sort()
        return 0

    return _SORTER(sort)
