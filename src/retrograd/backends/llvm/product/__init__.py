"""The matrix product as a routine that all programs call, made for the machine at hand."""

from retrograd.backends.llvm.product.routine import ROUTINES, routine_text

__all__ = ["ROUTINES", "routine_text"]
