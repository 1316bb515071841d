"""From LLVM's text to object code, by way of the disk cache: equal texts are compiled once."""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from retrograd.runtime.disk_cache import current_store, key_of


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
        self.identity = [llvmlite.__version__, version, triple, cpu, features, f"{opt} {near}"]

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
            code = self._compile(text)
            if store is not None:
                store.save(key, code)
        return ObjectCode(key, code)

    def _compile(self, text: str) -> bytes:
        if self._machine is None:
            self._machine = self._target.create_target_machine(**self._options)
        module = llvm.parse_assembly(text)
        code: bytes = self._machine.emit_object(module)
        return code


def lies_together(triple: str) -> bool:
    """Whether there is a linker that puts all parts of an object into one piece of memory."""
    return triple.startswith("x86_64") and "linux" in triple
