"""LLVM itself: from text to machine code.

llvmlite is imported by this module, and this module only when the first program is compiled: it
costs 30 ms, which a process that never compiles should not pay.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import threading
from typing import Any

import llvmlite.binding as llvm

from retrograd.backends.llvm.blas import blas_symbols
from retrograd.backends.llvm.entry import PROTOTYPE, TEXT, Bind, usable, works
from retrograd.errors import BackendError

_LOCK = threading.Lock()
_NUMBERS = itertools.count()


class Engine:
    """One compiler for the CPU at hand, shared by all programs of the process."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        options: dict[str, Any] = {
            "cpu": llvm.get_host_cpu_name(),
            "features": llvm.get_host_cpu_features().flatten(),
            "opt": 2,
            "jit": True,
        }
        self.machine = target.create_target_machine(**options)
        self.jit = llvm.create_lljit_compiler(
            target.create_target_machine(**options), suppress_errors=True
        )
        self.bind = self._make_bind()
        self._math = ctypes.CDLL(ctypes.util.find_library("m") or None)

    def compile(self, text: str, symbols: list[str]) -> Compiled:
        """Machine code of a module that defines `run`; `symbols` are the `rg_` names it calls."""
        with _LOCK:
            module = llvm.parse_assembly(text)
            tuning = llvm.create_pipeline_tuning_options(speed_level=2)
            tuning.loop_vectorization = True
            tuning.slp_vectorization = False
            builder = llvm.create_pass_builder(self.machine, tuning)
            builder.getModulePassManager().run(module, builder)
            code = self.machine.emit_object(module)
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("run")
            library.add_current_process()
            for name in symbols:
                library.import_symbol(name, self._address(name))
            tracker = library.link(self.jit, f"program{next(_NUMBERS)}")
        return Compiled(tracker, tracker["run"], len(code))

    def _make_bind(self) -> Bind | None:
        """The native reader of arrays, where Python's objects are laid out as it assumes."""
        if not usable():
            return None
        library = llvm.JITLibraryBuilder().add_ir(TEXT).export_symbol("bind")
        self._entry = library.link(self.jit, "entry")
        bind = PROTOTYPE(self._entry["bind"])
        return bind if works(bind) else None

    def _address(self, name: str) -> int:
        if name in ("rg_sgemm", "rg_dgemm"):
            return blas_symbols()[name]
        try:
            function = getattr(self._math, name.removeprefix("rg_"))
        except AttributeError:
            raise BackendError(f"the C library of this system has no function {name}") from None
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


class Compiled:
    """Loaded machine code; unloaded when dropped."""

    def __init__(self, tracker: Any, address: int, size: int) -> None:
        self._tracker = tracker
        self.size = size
        self.run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)


_ENGINE: Engine | None = None


def engine() -> Engine:
    """The engine of this process."""
    global _ENGINE
    with _LOCK:
        if _ENGINE is None:
            _ENGINE = Engine()
        return _ENGINE
