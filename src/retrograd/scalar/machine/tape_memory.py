"""The memory of a tape: flat arrays, and the table of their addresses that native code follows."""

from __future__ import annotations

import ctypes
from array import array

FIELDS = ("code", "a", "b", "values", "grads", "stamps", "reached", "found", "coming", "epoch")
LEAST = 64  # rows


class TapeMemory:
    """Rows as arrays: opcodes, operands, values; and, once there is a backward pass, cotangents
    with the number of the pass that wrote them, and the given rows that were reached."""

    __slots__ = (
        "_table",
        "a",
        "address",
        "b",
        "code",
        "grads",
        "reached",
        "size",
        "stamps",
        "values",
    )

    def __init__(self) -> None:
        self.size = 0  # rows there is room for
        self.code, self.a, self.b = array("B"), array("i"), array("i")
        self.values, self.grads = array("d"), array("d")
        self.stamps, self.reached = array("i"), array("i")
        self._table = (ctypes.c_int64 * len(FIELDS))()
        self.address = ctypes.addressof(self._table)

    def reserve(self, rows: int) -> None:
        """Make room for so many rows."""
        if rows <= self.size:
            return
        size = max(rows, 2 * self.size, LEAST)
        more = size - self.size
        for field in (self.code, self.a, self.b, self.values):
            field.frombytes(bytes(field.itemsize * more))
        self.size = size
        if self.grads:
            self.reserve_grads()
        self._point(("code", "a", "b", "values"))

    def reserve_grads(self) -> None:
        """Make room for a cotangent for each row."""
        more = self.size - len(self.grads)
        if more <= 0:
            return
        for field in (self.grads, self.stamps):
            field.frombytes(bytes(field.itemsize * more))
        # One more than there are rows: the machine writes first and decides then.
        self.reached.frombytes(bytes(4 * (self.size + 1 - len(self.reached))))
        self._point(("grads", "stamps", "reached"))

    def _point(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._table[FIELDS.index(name)] = getattr(self, name).buffer_info()[0]

    def begin(self, epoch: int) -> None:
        """Before a backward pass."""
        self.reserve_grads()
        self._table[FIELDS.index("epoch")] = epoch
        self.found = self.coming = 0

    @property
    def epoch(self) -> int:
        """The number of the backward pass."""
        return self._table[FIELDS.index("epoch")]

    @property
    def found(self) -> int:
        """How many given rows the backward pass has reached."""
        return self._table[FIELDS.index("found")]

    @found.setter
    def found(self, n: int) -> None:
        self._table[FIELDS.index("found")] = n

    @property
    def coming(self) -> int:
        """How many operations have a cotangent and were not visited yet."""
        return self._table[FIELDS.index("coming")]

    @coming.setter
    def coming(self, n: int) -> None:
        self._table[FIELDS.index("coming")] = n
