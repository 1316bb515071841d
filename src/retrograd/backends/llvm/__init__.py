"""The CPU backend: kernel plans printed as LLVM, compiled for the machine at hand."""

from retrograd.backends.llvm import call
from retrograd.backends.llvm.call import MISSED, Pending
from retrograd.backends.llvm.call_trial import caller
from retrograd.backends.llvm.program import LLVMProgram, start_compiler
from retrograd.backends.llvm.subnormal import flush_subnormals

__all__ = [
    "MISSED",
    "LLVMProgram",
    "Pending",
    "call",
    "caller",
    "flush_subnormals",
    "start_compiler",
]
