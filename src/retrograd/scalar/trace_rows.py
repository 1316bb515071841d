"""What a trace is made of: rows in columns, and ways back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.accelerate import check
from retrograd.scalar.machine.opcodes import COMPARE, CONSTANT, LEAF, OPCODES, START, STOP


@dataclass(frozen=True)
class Event:
    """A way back from a row, which comes after so many rows."""

    root: int
    rows: int


@dataclass(frozen=True)
class Columns:
    """Rows as a trace has them. `a` of a leaf's row is the number of the leaf, `b` the row that the
    leaf was set to before, or 0; `a` of a gradient's row is a row, `b` the number of the way back.
    `numbers` are those of rows that are constants."""

    code: Any  # uint8
    a: Any  # int32
    b: Any
    numbers: Any  # float64


try:
    from retrograd.accelerate import _instructions

    check(_instructions)
except ImportError:  # it was not built here
    _instructions = None  # type: ignore[assignment]


def _arities() -> Any:
    table = np.zeros(256, np.int64)
    for o in OPCODES:
        table[o.code] = 2 if o.name == "powc" else o.arity
    for c in COMPARE.values():
        table[c] = 2
    table[STOP] = 1
    return table


def _paths() -> list[int]:
    found = [0] * 256
    for o in OPCODES:
        found[o.code] = 1 if o.name == "powc" else o.arity
    return found


ARITY = _arities()  # for each opcode the number of operands that are read,
PATHS = _paths()  # and of those that a way back goes on to: not to the exponent of `powc`


def cone(code: Sequence[int], a: Sequence[int], b: Sequence[int], root: int) -> list[int]:
    """The rows that a way back from a row comes to, last ones first."""
    seen = bytearray(root + 1)
    seen[root] = 1
    found = []
    for i in range(root, -1, -1):
        if seen[i]:
            found.append(i)
            m = PATHS[code[i]]
            if m:
                seen[a[i]] = 1
                if m == 2:
                    seen[b[i]] = 1
    return found


def reached(columns: Columns, root: int) -> Any:
    """For each row up to the root whether a way back from there comes to it."""
    code, a, b = columns.code, columns.a, columns.b
    if _instructions is not None:
        return np.frombuffer(_instructions.reached(bytes(PATHS), code, a, b, root), bool)
    found = np.zeros(root + 1, bool)
    if PATHS[code[root]] == 0:
        found[root] = True
        return found
    end = root + 1
    found[cone(code[:end].tolist(), a[:end].tolist(), b[:end].tolist(), root)] = True
    return found


def plain(columns: Columns, row: int) -> bool:
    """Whether a row was computed from numbers alone, and no Value."""
    return not np.any(columns.code[: row + 1][reached(columns, row)] == LEAF)


def settled(columns: Columns, leaves: Sequence[Any], fresh: Sequence[int]) -> Columns:
    """Some leaves, by number, as constants: what they hold before the function does anything."""
    code, numbers = columns.code.copy(), columns.numbers.copy()
    chosen = np.zeros(len(leaves), bool)
    chosen[list(fresh)] = True
    for kind, field in ((LEAF, "data"), (START, "grad")):
        rows = np.flatnonzero(code == kind)
        rows = rows[chosen[columns.a[rows]]]
        if kind == LEAF:
            rows = rows[columns.b[rows] == 0]  # others are what they were set to
        code[rows] = CONSTANT
        numbers[rows] = [getattr(leaves[k], field) for k in columns.a[rows].tolist()]
    a = np.where(code == CONSTANT, 0, columns.a).astype(np.int32)
    return Columns(code, a, columns.b, numbers)
