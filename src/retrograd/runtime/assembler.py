"""From LLVM's text to object code, by way of the disk cache: equal texts are compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from retrograd.runtime.disk_cache import current_store, key_of

STRENGTH = "-disable-lsr"
KNOWN = range(20, 23)  # versions of LLVM that have this option: another may end the process


class ObjectCode(NamedTuple):
    """Object code, and its name in the store."""

    key: str
    code: bytes


class Assembler:
    """Code generation for the CPU at hand, on one level of effort. Code that is `near` finds its
    constants and functions by their distance, for which LLVM's quick way knows the instructions."""

    def __init__(self, cpu: str, features: str, opt: int = 2, near: bool = False) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        triple = llvm.get_process_triple()
        self._target = llvm.Target.from_triple(triple)
        self._options = {"cpu": cpu, "features": features, "opt": opt, "jit": True}
        near = near and lies_together(triple)
        if near:
            self._options |= {"reloc": "pic", "codemodel": "small"}
        self._machine: Any = None
        # All that the code depends on beside the text.
        version = ".".join(map(str, llvm.llvm_version_info))
        effort = f"{opt} {near} {STRENGTH}"
        self.identity = [llvmlite.__version__, version, triple, cpu, features, effort]

    def linker(self) -> Any:
        """A linker of its own for each program: a shared one keeps 8 kB of every program ever."""
        together = lies_together(self._target.triple)
        return llvm.create_lljit_compiler(
            self._any_machine(), suppress_errors=True, use_jit_link=together
        )

    def _any_machine(self) -> Any:
        """A new one, for a linker to own. It makes no code, so what the CPU can do is left out:
        reading that takes longer than linking."""
        return self._target.create_target_machine(jit=True)

    def assemble(self, text: str) -> ObjectCode:
        """The object code of a module."""
        key = key_of(["object", *self.identity, text])
        store = current_store()
        code = store.load(key) if store is not None else None
        if code is None:
            code = self.compile(text)
            if store is not None:
                store.save(key, code)
        return ObjectCode(key, code)

    def compile(self, text: str) -> bytes:
        """Machine code, made anew."""
        if self._machine is None:
            self._machine = self._target.create_target_machine(**self._options)
        module = llvm.parse_assembly(text)
        with _strength_kept():
            code: bytes = self._machine.emit_object(module)
        return code


@contextmanager
def _strength_kept() -> Iterator[None]:
    """Loop strength reduction off, which is a third of code generation: positions are in the form
    in which processors add them up, and kernels are no faster with it. It is an option of LLVM, for
    the whole process: nobody else compiles meanwhile."""
    if llvm.llvm_version_info[0] not in KNOWN:
        yield
        return
    with llvm.ffi.lib._lock:
        llvm.set_option("retrograd", f"{STRENGTH}=true")
        try:
            yield
        finally:
            llvm.set_option("retrograd", f"{STRENGTH}=false")


def lies_together(triple: str) -> bool:
    """Whether there is a linker that puts all parts of an object into one piece of memory."""
    return triple.startswith("x86_64") and "linux" in triple
