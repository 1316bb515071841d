"""Numbers on a tape: rows of an opcode and two operands, run forward and backward by one loop.

There is one piece of code for all graphs, so nothing is compiled when a graph is new. Opcodes are
entries of the table of elementwise operations (`opcodes.py`), their derivatives its rules.
"""

from __future__ import annotations

from retrograd.scalar.machine.opcodes import (
    BY_NAME,
    CONSTANT,
    CUSTOM,
    FOREIGN,
    LEAF,
    NAMES,
    OPCODES,
    UNWRITTEN,
    Opcode,
)
from retrograd.scalar.machine.selection import is_native, machine
from retrograd.scalar.machine.tape_memory import TapeMemory

__all__ = [
    "BY_NAME",
    "CONSTANT",
    "CUSTOM",
    "FOREIGN",
    "LEAF",
    "NAMES",
    "OPCODES",
    "UNWRITTEN",
    "TapeMemory",
    "Opcode",
    "is_native",
    "machine",
]
