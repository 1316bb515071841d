"""Kernels to a program: control flow, launch tables, and the LLVM module that holds them."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.codegen.program.module import ModuleEmitter

# Programs that are found on disk, or interpreted, are not written.
LATER_NAMES = {
    "ModuleEmitter": "retrograd.codegen.program.module",
}
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = ["ModuleEmitter"]
