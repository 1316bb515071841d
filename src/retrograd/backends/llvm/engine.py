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

from retrograd.backends.llvm.blas import blas_symbols
from retrograd.backends.llvm.entry import PROTOTYPE, TEXT, Bind, usable, works
from retrograd.backends.llvm.machine import Machine
from retrograd.backends.llvm.team import Team, current_team
from retrograd.errors import BackendError

# run(block, thread, threads, team)
RUN = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
_LOCK = threading.Lock()


class Engine:
    """One compiler for the CPU at hand, shared by all programs of the process."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._target = llvm.Target.from_triple(llvm.get_process_triple())
        features = llvm.get_host_cpu_features()
        self.machine = Machine.of(features)
        self._options: dict[str, Any] = {
            "cpu": llvm.get_host_cpu_name(),
            "features": features.flatten(),
            "opt": 2,
            "jit": True,
        }
        self._target_machine = self._target.create_target_machine(**self._options)
        self.bind = self._make_bind()
        self._math = ctypes.CDLL(ctypes.util.find_library("m") or None)

    def compile(self, text: str, symbols: list[str]) -> Compiled:
        """Machine code of a module that defines `run`; `symbols` are the `rg_` names it calls."""
        with _LOCK:
            module = llvm.parse_assembly(text)
            code = self._target_machine.emit_object(module)
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("run")
            library.add_current_process()
            for name in symbols:
                library.import_symbol(name, self._address(name))
            return Compiled(self._linker(), library, len(code))

    def _linker(self) -> Any:
        """A linker of its own for each program: a shared one keeps 8 kB of every program ever."""
        return llvm.create_lljit_compiler(
            self._target.create_target_machine(**self._options), suppress_errors=True
        )

    def _make_bind(self) -> Bind | None:
        """The native reader of arrays, where Python's objects are laid out as it assumes."""
        if not usable():
            return None
        library = llvm.JITLibraryBuilder().add_ir(TEXT).export_symbol("bind")
        self._linkage = self._linker()  # the code lives as long as these two
        self._entry = library.link(self._linkage, "entry")
        bind = PROTOTYPE(self._entry["bind"])
        return bind if works(bind) else None

    @property
    def team(self) -> Team:
        """The threads that run programs together."""
        return current_team()

    def _address(self, name: str) -> int:
        if name in ("rg_barrier", "rg_vote"):
            return self.team.symbols[name]
        if name in ("rg_sgemm", "rg_dgemm"):
            return blas_symbols()[name]
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
