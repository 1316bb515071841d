"""The CPU backend: kernel plans printed as LLVM, compiled for the machine at hand."""

from retrograd.backends.llvm.program import LLVMProgram
from retrograd.backends.llvm.wrapping import Wrap, wrapper

__all__ = ["LLVMProgram", "Wrap", "wrapper"]
