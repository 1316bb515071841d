"""LLVM itself: from text to machine code.

llvmlite is imported by this module, and this module only when the first program is compiled: it
costs 30 ms, which a process that never compiles should not pay.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import threading
import weakref
from typing import Any

import llvmlite.binding as llvm

from retrograd.backends.llvm.assembler import Assembler, Object
from retrograd.backends.llvm.cache import current_store
from retrograd.backends.llvm.call_arguments import TEXT as ARGUMENTS
from retrograd.backends.llvm.call_results import TEXT as RESULTS
from retrograd.backends.llvm.call_symbols import DECLARATIONS, python_symbols
from retrograd.backends.llvm.drive_text import TEXT as DRIVE_TEXT
from retrograd.backends.llvm.entry import ENTER, PROTOTYPE, TEXT, Enter, usable, works
from retrograd.backends.llvm.half import TEXT as HALF
from retrograd.backends.llvm.half import lacking
from retrograd.backends.llvm.machine import LEVELS, Machine, level_asked
from retrograd.backends.llvm.openblas import openblas_address
from retrograd.backends.llvm.product import ROUTINES, routine_text
from retrograd.backends.llvm.python import SYMBOL, python_address
from retrograd.backends.llvm.routine import CBLAS, LAPACK
from retrograd.backends.llvm.shorthand import expanded
from retrograd.backends.llvm.team import Team, current_team
from retrograd.errors import BackendError

DRIVE = "rg_drive"  # what runs programs by their tables

# run(block, thread, threads, team)
RUN = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
_LOCK = threading.Lock()


class Engine:
    """One compiler for the CPU at hand, shared by all programs of the process."""

    def __init__(self) -> None:
        features = llvm.get_host_cpu_features()
        cpu, flags = llvm.get_host_cpu_name(), features.flatten()
        self.machine = Machine.of(features)
        if level := level_asked(features):
            self.machine, needed = LEVELS[level]
            features = dict.fromkeys(needed, True)
            cpu, flags = level, ""
        self._half = HALF if lacking(llvm.get_process_triple(), features) else ""
        self._host = cpu, flags
        self._assembler = Assembler(cpu, flags)
        self.identity = self._assembler.identity
        self.serving = 0  # the address of what does whole calls, where that is possible
        self.enter = self._make_enter()
        self._routines: dict[str, tuple[Any, Any]] = {}  # loaded code lives as long as its linker
        self._math = ctypes.CDLL(ctypes.util.find_library("m") or None)

    def compile(self, text: str, symbols: list[str]) -> Compiled:
        """Machine code of a module that defines `run`; `symbols` are the `rg_` names it calls."""
        return self.load(self.assemble(text).code, symbols)

    def assemble(self, text: str) -> Object:
        """The object code of a module."""
        with _LOCK:
            return self._assembler.assemble(text + self._half if " half" in text else text)

    def recall(self, key: str, symbols: list[str]) -> Compiled | None:
        """Object code of this name, loaded, if the store still has it."""
        store = current_store()
        code = store.load(key) if store is not None else None
        return None if code is None else self.load(code, symbols)

    def load(self, code: bytes, symbols: list[str]) -> Compiled:
        """Object code linked with the functions that it calls."""
        with _LOCK:
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("run")
            library.add_current_process()
            for name in symbols:
                library.import_symbol(name, self._address(name))
            return Compiled(self._linker(), library, len(code))

    def _linker(self) -> Any:
        """A linker of its own for each program: a shared one keeps 8 kB of every program ever."""
        machine = self._assembler.target_machine()
        return llvm.create_lljit_compiler(machine, suppress_errors=True)

    def _make_enter(self) -> Enter | None:
        """The native reader of arrays, where Python's objects are laid out as it assumes."""
        if not usable():
            return None
        symbols = python_symbols()
        calls = DECLARATIONS + expanded(ARGUMENTS + RESULTS) if symbols else ""
        library = llvm.JITLibraryBuilder().add_object_img(
            self._assembler.assemble(TEXT + calls).code
        )
        for name in ("bind", "enter", *(["serving"] if symbols else [])):
            library.export_symbol(name)
        for name, address in symbols.items():
            library.import_symbol(name, address)
        self._linkage = self._linker()  # the code lives as long as these two
        self._entry = library.link(self._linkage, "entry")
        if not works(PROTOTYPE(self._entry["bind"])):
            return None
        self.serving = self._entry["serving"] if symbols else 0
        return ENTER(self._entry["enter"])

    def _shared(self, name: str) -> int:
        """The address of a routine that programs share, compiled when one first calls it."""
        if name not in self._routines:
            assembler, text = self._assembler, ""
            if name == DRIVE:
                # A quarter of the time to compile, and programs take no longer for it.
                assembler, text = Assembler(*self._host, opt=0), DRIVE_TEXT
            code = assembler.assemble(text or routine_text(self.machine, name)).code
            linker = self._linker()
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
            self._routines[name] = library.link(linker, name), linker
        return int(self._routines[name][0][name])

    @property
    def team(self) -> Team:
        """The threads that run programs together."""
        return current_team()

    def _address(self, name: str) -> int:
        if name == DRIVE or name in ROUTINES:
            return self._shared(name)
        if name.startswith((CBLAS, LAPACK)):
            return openblas_address(name)
        if name == SYMBOL:
            return python_address()
        try:
            function = getattr(self._math, name.removeprefix("rg_"))
        except AttributeError:
            raise BackendError(f"the C library of this system has no function {name}") from None
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


class Compiled:
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


_ENGINE: Engine | None = None


def engine() -> Engine:
    """The engine of this process."""
    global _ENGINE
    with _LOCK:
        if _ENGINE is None:
            _ENGINE = Engine()
        return _ENGINE
