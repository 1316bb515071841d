"""The matrix product as a routine that all programs call, made for the machine at hand."""

from retrograd.backends.llvm.machine import Machine
from retrograd.backends.llvm.product import few, routine

ROUTINES = {**routine.ROUTINES, **few.SMALL}


def routine_text(machine: Machine, name: str) -> str:
    """The module that defines one of the routines."""
    return (few.small_text if name in few.SMALL else routine.routine_text)(machine, name)


__all__ = ["ROUTINES", "routine_text"]
