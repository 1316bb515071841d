"""Running a graph without compiling it, to the same bits as compiled code."""

from retrograd.backends.interpret.program import InterpretedProgram
from retrograd.backends.interpret.stepped import SteppedProgram, is_long
from retrograd.backends.interpret.tiered import TieredProgram

__all__ = ["InterpretedProgram", "SteppedProgram", "TieredProgram", "is_long"]
