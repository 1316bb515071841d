"""What a tape takes from elsewhere: rows of other tapes, and operations of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.scalar.machine import CUSTOM, FOREIGN


class CustomRow:
    """What a user's own operation was made of, and what sends its gradient back: `backward`, or for
    the result of a compiled function `send`, with `clear` for the leaves behind it."""

    __slots__ = ("backward", "clear", "op", "rows", "send", "slopes")

    def __init__(self, rows: tuple[int, ...], op: str, slopes: tuple[float, ...] | None) -> None:
        self.rows = rows
        self.op = op
        self.slopes = slopes
        self.backward: Callable[[], Any] | None = None
        self.send: Callable[[float], Any] | None = None
        self.clear: Callable[[], Any] | None = None


class Borrower:
    """What tapes of both recorders share."""

    __slots__ = ()
    trace: Any
    customs: dict[int, CustomRow]
    foreign: dict[int, tuple[Any, int]]
    _imported: dict[tuple[Any, int], int]
    _unread: list[int]
    put: Any  # as both recorders have it
    _put_given: Any

    def import_row(self, tape: Any, row: int) -> int:
        """The row that stands for a computed row of another tape, which is closed by this; under
        the lock."""
        for p in (tape, self):
            if p.trace is not None:
                p.trace.import_row(tape, row)
        tape.close()
        found = self._imported.get((tape, row))
        if found is None:
            tape.exported.add(row)
            found = int(self.put(FOREIGN))
            self.foreign[found] = (tape, row)
            self._imported[tape, row] = found
            self._unseen(found)
        return found

    def _unseen(self, row: int) -> None:
        """The value of a row is still to be fetched from its tape."""
        self._unread.append(row)

    def custom(self, rows: tuple[int, ...], data: float, op: str, slopes: Any) -> int:
        """A row whose value and gradient are the user's."""
        if self.trace is not None:
            self.trace.custom()
        i = int(self._put_given(CUSTOM, data))
        self.customs[i] = CustomRow(rows, op, slopes)
        return i
