"""The CPU backend: kernel plans printed as LLVM, compiled for the machine at hand."""

from retrograd.backends.llvm.program import LLVMProgram

__all__ = ["LLVMProgram"]
