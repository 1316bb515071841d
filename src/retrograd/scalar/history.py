"""What a Value that a compiled function returned was computed from, for a way back through it.

The program keeps no values between calls. So a call that returns a Value notes the numbers its
rows started from, which is cheap; if `backward()` comes to the Value, its rows are computed again
from these and gone back through by the machine, and leaves get their gradients as without `jit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.scalar.machine import CONSTANT, LEAF, TapeMemory, machine
from retrograd.scalar.machine.opcodes import OPCODES
from retrograd.scalar.trace_rows import Columns, reached

_OPERATIONS = np.isin(np.arange(256), [o.code for o in OPCODES])


class RowHistory:
    """The rows that a result was computed from, in order, the result last."""

    def __init__(self, columns: Columns, root: int, leaves: Sequence[Any]) -> None:
        """`leaves` by their number in the trace."""
        # The exponents of constant powers are no part of the way back, but are computed with.
        seen = reached(columns, root).copy()
        code = columns.code[: root + 1]
        computed = seen & _OPERATIONS[code]
        seen[columns.b[: root + 1][computed]] = True
        rows = np.flatnonzero(seen)
        new = np.zeros(root + 1, np.int32)
        new[rows] = np.arange(len(rows))
        op = np.where(
            _OPERATIONS[code[rows]], code[rows], np.where(code[rows] == LEAF, LEAF, CONSTANT)
        )
        is_given = ~_OPERATIONS[code[rows]]
        self._op = op.astype(np.uint8)
        self._a, self._b = (
            np.where(is_given, 0, new[x[rows] * ~is_given]).astype(np.int32)
            for x in (columns.a, columns.b)
        )
        self.given = rows[is_given]  # rows of the trace whose value a call has to note
        self._at = np.flatnonzero(is_given)
        at_leaves = np.flatnonzero(op == LEAF)
        numbers = columns.a[rows[at_leaves]].tolist()
        self._leaves = {
            k: leaves[number] for k, number in zip(at_leaves.tolist(), numbers, strict=True)
        }

    @property
    def nbytes(self) -> int:
        """The memory of the rows."""
        return sum([x.nbytes for x in (self._op, self._a, self._b, self.given, self._at)])

    def leaves(self) -> list[Any]:
        """The leaves that the gradient goes to."""
        return list(self._leaves.values())

    def clear(self, instead: dict[int, Any]) -> None:
        """Set the gradients of leaves to 0."""
        for x in self.leaves():
            instead.get(id(x), x).grad = 0.0

    def send_back(self, g: float, numbers: Any, instead: dict[int, Any]) -> None:
        """Add to the gradients of leaves what a cotangent of the result brings them. `numbers` are
        those of `given`; `instead` has the leaves that came with the call, by the identity of
        those that the function was traced with."""
        n = len(self._op)
        block = TapeMemory()
        block.reserve(n)
        for memory, column in ((block.code, self._op), (block.a, self._a), (block.b, self._b)):
            np.frombuffer(memory, column.dtype)[:n] = column
        np.frombuffer(block.values)[self._at] = numbers
        run = machine()
        run(block, 0, n, 0)
        block.begin(1)
        block.stamps[n - 1], block.grads[n - 1] = 1, g
        block.coming = 1
        run(block, n - 1, 0, 1)
        for k in block.reached[: block.found]:
            found = self._leaves.get(k)
            if found is not None:
                leaf = instead.get(id(found), found)
                leaf.grad += block.grads[k]


__all__ = ["RowHistory"]
