"""Running a graph without compiling it, to the same bits as compiled code."""

from retrograd.backends.interpret.program import InterpretedProgram
from retrograd.backends.interpret.tiered import TieredProgram

__all__ = ["InterpretedProgram", "TieredProgram"]
