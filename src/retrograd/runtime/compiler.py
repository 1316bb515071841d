"""LLVM itself: from text to machine code.

llvmlite is imported by this module, and this module only when the first program is compiled: it
costs 30 ms, which a process that never compiles should not pay.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib  # noqa: F401 - `files` does under the lock below, where nothing may be half imported
import sys
import weakref
from typing import Any

import llvmlite.binding as llvm

from retrograd.codegen.gemm import ROUTINES, routine_text
from retrograd.codegen.libcalls.builder import CBLAS, LAPACK
from retrograd.codegen.libcalls.python_callback import SYMBOL, python_address
from retrograd.codegen.sort.radix import SORT
from retrograd.codegen.target import LEVELS, Target, level_asked, level_reached
from retrograd.errors import BackendError
from retrograd.runtime.assembler import Assembler, ObjectCode
from retrograd.runtime.disk_cache import current_store
from retrograd.runtime.native import HALF, addresses, platform_name
from retrograd.runtime.native.numpy_api import sort_address
from retrograd.runtime.openblas import openblas_address
from retrograd.runtime.routines import prebuilt
from retrograd.runtime.thread_pool import ThreadPool, current_team
from retrograd.shared import lock

DRIVE = "rg_drive"  # what runs programs by their tables

# run(block, thread, threads, team)
RUN = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
_LOCK = lock(60)
lock(70, llvm.ffi.lib._lock._lock)  # which llvmlite takes for each call


class Compiler:
    """One compiler for the CPU at hand, shared by all programs of the process."""

    def __init__(self) -> None:
        features = llvm.get_host_cpu_features()
        cpu, flags = llvm.get_host_cpu_name(), features.flatten()
        self.machine = Target.of(features, cpu)
        self._level = level_reached(features)
        if level := level_asked(features):
            self.machine, needed = LEVELS[level]
            features = dict.fromkeys(needed, True)
            cpu, flags, self._level = level, "", level
        self._native = addresses()
        self._triple = llvm.get_process_triple()
        # Programs call these conversions where the CPU has no instructions for them.
        lacking = not features.get("f16c")
        self._half = {name: self._native[name] for name in HALF if lacking and name in self._native}
        self._assembler = Assembler(cpu, flags)
        # Without optimisation code is made in a fourth of the time, and takes a few times longer.
        self._hasty = Assembler(cpu, flags, opt=0, near=True)
        self.identity = self._assembler.identity
        self._routines: dict[str, tuple[Any, Any]] = {}  # loaded code lives as long as its linker

    def compile(self, text: str, symbols: list[str]) -> LoadedCode:
        """Machine code of a module that defines `run`; `symbols` are the `rg_` names it calls."""
        return self.load(self.assemble(text).code, symbols)

    def assemble(self, text: str, light: bool = False) -> ObjectCode:
        """The object code of a module; `light`: of one whose code has little to do."""
        assembler = self._hasty if light else self._assembler
        with _LOCK:
            return assembler.assemble(text)

    def recall(self, key: str, symbols: list[str]) -> LoadedCode | None:
        """Object code of this name, loaded, if the store still has it."""
        store = current_store()
        code = store.load(key) if store is not None else None
        return None if code is None else self.load(code, symbols)

    def load(self, code: bytes, symbols: list[str]) -> LoadedCode:
        """Object code linked with the functions that it calls."""
        with _LOCK:
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("run")
            library.add_current_process()
            for name in symbols:
                library.import_symbol(name, self.address(name))
            for name, address in self._half.items():
                library.import_symbol(name, address)
            return LoadedCode(self._assembler.linker(), library, len(code))

    def _shared(self, name: str) -> int:
        """The address of a routine that programs share, compiled when one first calls it, unless it
        came with the package."""
        if name not in self._routines:
            text, platform = routine_text(self.machine, name), platform_name(self._triple)
            code = prebuilt(platform, self._level, name, text)
            if code is None:
                code = self._assembler.assemble(text).code
            linker = self._assembler.linker()
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
            if not self.machine.fma:
                library.add_current_process()  # where what rounds once is a function
            self._routines[name] = library.link(linker, name), linker
        return int(self._routines[name][0][name])

    @property
    def team(self) -> ThreadPool:
        """The threads that run programs together."""
        return current_team()

    def address(self, name: str) -> int:
        """The address of a function that programs call, by the name that they call it by."""
        if name == DRIVE:
            return self._native[name]
        if name in ROUTINES:
            return self._shared(name)
        if name.startswith((CBLAS, LAPACK)):
            return openblas_address(name)
        if name.startswith(SORT):
            return sort_address(name)
        if name == SYMBOL:
            return python_address()
        try:
            function = getattr(_math(), name.removeprefix("rg_"))
        except AttributeError:
            raise BackendError(f"the C library of this system has no function {name}") from None
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@functools.cache
def _math() -> ctypes.CDLL:
    """The C library's functions. To look for it starts other programs."""
    if sys.platform == "win32":  # where nothing is found, and the process cannot be asked
        return ctypes.CDLL("ucrtbase")
    return ctypes.CDLL(ctypes.util.find_library("m") or None)


class LoadedCode:
    """Loaded machine code; unloaded when dropped."""

    def __init__(self, linker: Any, library: Any, size: int) -> None:
        tracker = library.link(linker, "program")
        self.size = size
        self.address = tracker["run"]
        self.run = RUN(self.address)
        weakref.finalize(self, _unload, tracker, linker).atexit = False


def _unload(tracker: Any, linker: Any) -> None:
    tracker.close()
    linker.close()


_ENGINE: Compiler | None = None


def engine() -> Compiler:
    """The engine of this process."""
    global _ENGINE
    with _LOCK:
        if _ENGINE is None:
            _ENGINE = Compiler()
        return _ENGINE
