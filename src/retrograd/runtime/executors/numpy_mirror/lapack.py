"""Functions of LAPACK and CBLAS, called from Python: those that compiled routines call."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from retrograd.codegen.libcalls.builder import CBLAS, LAPACK
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import start_compiler


def fortran(name: str, dtype: np.dtype[Any], *arguments: Array | int | str) -> None:
    """Call a function of LAPACK with arrays, sizes, and letters."""
    held: list[Any] = []
    letters = 0
    for a in arguments:
        if isinstance(a, str):
            held.append(ctypes.byref(ctypes.c_char(a.encode())))
            letters += 1
        elif isinstance(a, int):
            held.append(ctypes.byref(ctypes.c_int(a)))
        else:
            held.append(_pointer(a))
    # The lengths of characters come last, as gfortran wants them.
    call = _function(LAPACK + _letter(dtype) + name)
    call(*held, *[ctypes.c_size_t(1)] * letters)


def cblas(name: str, dtype: np.dtype[Any], *arguments: Array | int | float) -> None:
    """Call a function of CBLAS with arrays, options and sizes, and factors, which are floats."""
    real = ctypes.c_float if dtype == np.float32 else ctypes.c_double
    call = _function(CBLAS + _letter(dtype) + name)
    call(*[
        ctypes.c_int(a) if isinstance(a, int) else real(a) if isinstance(a, float) else _pointer(a)
        for a in arguments
    ])  # fmt: skip


def _letter(dtype: np.dtype[Any]) -> str:
    return "s" if dtype == np.float32 else "d"


def _pointer(a: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)


@functools.cache
def _function(name: str) -> Any:
    return ctypes.CFUNCTYPE(None)(start_compiler().address(name))
