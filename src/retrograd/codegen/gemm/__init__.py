"""The matrix product as a routine that all programs call, made for the machine at hand."""

from retrograd.codegen.gemm import gemm, small, windows
from retrograd.codegen.target import Target

ROUTINES = {**gemm.ROUTINES, **gemm.PACKS, **small.SMALL, **windows.WINDOWS}


def routine_text(machine: Target, name: str) -> str:
    """The module that defines one of the routines."""
    if name in windows.WINDOWS:
        return windows.windows_text(machine, name)
    return (small.small_text if name in small.SMALL else gemm.routine_text)(machine, name)


__all__ = ["ROUTINES", "routine_text"]
