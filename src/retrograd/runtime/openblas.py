"""OpenBLAS and LAPACK, as function pointers for compiled programs."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from retrograd.codegen.libcalls.builder import CBLAS, LAPACK
from retrograd.errors import BackendError


@contextmanager
def _core_type() -> Iterator[None]:
    """Choose OpenBLAS's kernels while it is loaded, where it is known not to choose the best.

    On AMD's processors with AVX-512 it takes those made for Intel's, which are a fifth to a quarter
    slower there than its own for AMD. What the user chose stands.
    """
    # llvmlite is loaded when first needed, see compiler.py.
    import llvmlite.binding as llvm

    name = "OPENBLAS_CORETYPE"
    cpu = llvm.get_host_cpu_name()
    if name in os.environ or not (
        cpu.startswith("znver") and cpu[5:].isdigit() and cpu >= "znver4"
    ):
        yield
        return
    os.environ[name] = "Zen"
    try:
        yield
    finally:
        del os.environ[name]


@functools.cache
def _library() -> ctypes.CDLL:
    """The library, which runs on one thread: the order of summation must not depend on the number
    of threads, and programs are threaded as a whole."""
    # Found without importing the package, which takes twenty times as long as loading the library.
    package = find_spec("scipy_openblas32")
    folders = package.submodule_search_locations if package is not None else None
    if not folders:
        raise BackendError("there is no OpenBLAS; install scipy-openblas32")
    folder = Path(folders[0]) / "lib"
    found = [p for p in sorted(folder.glob("*openblas*")) if p.suffix in (".so", ".dylib", ".dll")]
    if not found:
        raise BackendError(f"no OpenBLAS library in {folder}; reinstall scipy-openblas32")
    if sys.platform == "win32":
        os.add_dll_directory(str(folder))
    with _core_type():
        library = ctypes.CDLL(str(found[0]))
    library.scipy_openblas_set_num_threads(1)
    return library


def configuration() -> str:
    """Version and kernels of the library, as it tells them."""
    text = _library().scipy_openblas_get_config
    text.restype = ctypes.c_char_p
    return " ".join(text().decode(errors="replace").split())


def openblas_address(name: str) -> int:
    """The address of a function by the name that programs use: `rg_cblas_dgemm`, `rg_lapack_dgetrf`
    (with the calling convention of Fortran: every argument by address)."""
    if name.startswith(CBLAS):
        symbol = f"scipy_cblas_{name.removeprefix(CBLAS)}"
    else:
        symbol = f"scipy_{name.removeprefix(LAPACK)}_"
    try:
        function = getattr(_library(), symbol)
    except AttributeError:
        raise BackendError(f"scipy-openblas32 has no function {symbol}; reinstall it") from None
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
