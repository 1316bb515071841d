"""A trace of a function of Values: its rows, what it reads and writes of leaves, its ways back.

While a thread traces, `.data` and `.grad` of its Values are not numbers but rows: `p.data -= lr *
p.grad` writes down an update. What a leaf holds at the moment is known by row (`data`, `grad`), so
the trace is a program: rows in order, some of them after a way back (`Event`), and in the end what
each leaf is to hold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import pack
from typing import Any

import numpy as np

from retrograd.errors import TraceError
from retrograd.scalar.choices import choose_in, choose_nowhere
from retrograd.scalar.machine import BY_NAME, CONSTANT, LEAF
from retrograd.scalar.machine.opcodes import COMPARE, GRADIENT, NUMBER, START, STOP
from retrograd.scalar.operands import number_of
from retrograd.scalar.tape import (
    HERE,
    LOCK,
    TRACES,
    TapeClosed,
    close_tapes,
    set_current_tape,
)
from retrograd.scalar.trace_rows import Columns, Event, cone

_OURS = 2  # references to a leaf: of the list, and of a call with it


class Trace:
    """What happens to Values on one tape, whose rows have no values."""

    def __init__(self, tape: Any, make: Callable[[Any, int], Any]) -> None:
        self.tape = tape
        self._make = make
        self.events: list[Event] = []
        self.numbers: list[int] = []  # rows of arguments
        # By the identity of a leaf: its number, the row that stands for it at the moment, and the
        # rows of what its number and gradient were set to.
        self._number: dict[int, int] = {}
        self.rows: dict[int, int] = {}
        self._data: dict[int, int] = {}
        self._grads: dict[int, int] = {}
        self._leaves: list[Any] = []  # by number

    def begin(self) -> None:
        """From now on this thread traces."""

    def end(self) -> None:
        """It does so no more."""

    def leaves(self) -> tuple[list[Any], Any, Any]:
        """The leaves by number, and the rows of what their numbers and gradients were set to."""
        ids = [id(x) for x in self._leaves]
        data, grads = ([rows.get(k, 0) for k in ids] for rows in (self._data, self._grads))
        return self._leaves, np.array(data, np.int64), np.array(grads, np.int64)

    def leaf(self, number: int) -> Any:
        return self._leaves[number]

    def fresh(self) -> list[int]:
        """The leaves, by number, that nobody but the trace refers to, so that they are made anew in
        each call."""
        refers, leaves = sys.getrefcount, self._leaves
        return [k for k in range(len(leaves)) if refers(leaves[k]) == _OURS]

    def homes(self) -> tuple[Any, Any, list[int], list[Any]]:
        """The addresses of the numbers and gradients of leaves, the numbers of those that have no
        home, whose addresses mean nothing; and the homes."""
        homes = [x._home for x in self._leaves]
        homeless = [k for k, home in enumerate(homes) if home is None]
        at = {home: home.addresses() for home in set(homes) - {None}}
        found = np.array([at.get(home, (0, 0)) for home in homes], np.int64).reshape(-1, 2)
        found += 8 * np.array([x._row for x in self._leaves], np.int64)[:, None]
        return found[:, 0], found[:, 1], homeless, list(at)

    def _leaf(self, x: Any) -> int:
        k = id(x)
        found = self._number.get(k)
        if found is None:
            found = self._number[k] = len(self._leaves)
            self._leaves.append(x)
        return found

    def put(self, code: int, a: int = 0, b: int = 0) -> int:
        try:
            row: int = self.tape.put(code, a, b)
        except TapeClosed:
            raise TraceError(
                "a Value of a jit function was kept beyond the call that traced it; return it, or "
                "keep it in the `.data` of a leaf"
            ) from None
        return row

    # -- what Values ask of their tape ------------------------------------------------------------
    def attach(self, x: Any) -> int:
        """The row of a leaf, as it is at the moment."""
        k = id(x)
        found = self.rows.get(k)
        if not found:
            found = self.rows[k] = self.put(LEAF, self._leaf(x), self._data.get(k, 0))
        return found

    def value(self, i: int) -> Any:
        """The number in a row: a row without a gradient."""
        return self._make(self.tape, self.put(STOP, i))

    def grad(self, i: int) -> Any:
        """The gradient of what was computed: of the last way back that came to it."""
        for number in range(len(self.events) - 1, -1, -1):
            if i in self._reached(number):
                return self._make(self.tape, self.put(GRADIENT, i, number))
        return 0.0

    def set_grad(self, i: int, g: float) -> None:
        raise TraceError("inside of jit only the gradients of leaves can be set")

    def import_row(self, tape: Any, row: int) -> int:
        raise TraceError(
            "a Value that was computed outside of a jit function is used inside: its gradient "
            "would be lost. Compute it inside, or use its `.data`"
        )

    def run_backward(self, row: int) -> None:
        """Write down a way back; the gradients of leaves grow by what it brings them."""
        number = len(self.events)
        self.events.append(Event(row, self.mark()))
        self._bring(row, number)

    def _bring(self, root: int, number: int) -> None:
        op, a, b = self.tape.columns()
        rows: dict[int, list[int]] = {}
        for i in reversed(cone(op, a, b, root)):
            if op[i] == LEAF:
                rows.setdefault(a[i], []).append(i)
        for k, at in rows.items():
            x = self._leaves[k]
            total = self._grad_row(x)
            for i in at:
                part = self.put(GRADIENT, i, number)
                total = self.put(BY_NAME["add"].code, total, part) if total else part
            self._grads[id(x)] = total

    def custom(self) -> None:
        raise TraceError(
            "an operation of your own, Value(data, children), has a number that jit cannot compute "
            "again; write it in operations of Value, or call the function without jit"
        )

    def clear(self) -> None:
        raise TraceError(
            "inside of jit set the gradients of leaves, as a module's zero_grad() does"
        )

    # -- leaves -----------------------------------------------------------------------------------
    def data_of(self, x: Any) -> Any:
        row = self.rows.get(id(x)) or self.attach(x)
        return self._make(self.tape, self.put(STOP, row))

    def set_data(self, x: Any, number: Any) -> None:
        k = id(x)
        self._data[k] = self.row_of(number)
        if k in self.rows:
            del self.rows[k]
        else:
            self._leaf(x)

    def _grad_row(self, x: Any) -> int:
        """The row of a leaf's gradient; 0 if that is 0."""
        k = id(x)
        found = self._grads.get(k)
        if not found:
            found = self._grads[k] = self.put(START, self._leaf(x))
        return 0 if found == self._zero() else found

    def _zero(self) -> int:
        row: int = self.tape.number(0.0)
        return row

    def grad_of(self, x: Any) -> Any:
        row = self._grad_row(x)
        return self._make(self.tape, row) if row else 0.0

    def set_grad_of(self, x: Any, number: Any) -> None:
        self._leaf(x)
        self._grads[id(x)] = self.row_of(number)

    def row_of(self, x: Any) -> int:
        """The row of a number or of a traced Value."""
        if getattr(x, "_tape", None) is self.tape:
            row: int = x._row
            return row
        number = number_of(x)
        try:
            return int(self.tape.number(number))
        except TapeClosed:
            return self.put(CONSTANT)

    # -- numbers ----------------------------------------------------------------------------------
    def argument(self) -> Any:
        """A number that is given with each call."""
        self.numbers.append(self.put(NUMBER))
        return self._make(self.tape, self.numbers[-1])

    def operation(self, code: int, *operands: Any) -> Any:
        return self._make(self.tape, self.put(code, *[self.row_of(x) for x in operands]))

    def is_outcome(self, x: Any) -> bool:
        """Whether a Value is the outcome of a comparison."""
        return self.tape.columns()[0][x._row] in COMPARE.values()

    def compare(self, name: str, a: Any, b: Any) -> Any:
        return self.operation(COMPARE[name], a, b)

    def columns(self) -> Columns:
        """All rows."""
        n = self.tape.size
        op, a, b = self.tape.columns()
        numbers = np.zeros(n)
        given = self.tape.given_numbers()
        numbers[list(given)] = list(given.values())
        kind = f"{n}i"  # a fourth of the time of numpy.array
        return Columns(
            np.frombuffer(bytes(op[:n]), np.uint8), np.frombuffer(pack(kind, *a[:n]), np.int32),
            np.frombuffer(pack(kind, *b[:n]), np.int32), numbers,
        )  # fmt: skip

    # -- the end ----------------------------------------------------------------------------------
    def mark(self) -> int:
        """The number of rows so far."""
        return self.put(CONSTANT) + 1

    def _reached(self, number: int) -> list[int]:
        op, a, b = self.tape.columns()
        return cone(op, a, b, self.events[number].root)


@contextmanager
def tracing(
    f: Callable[..., Any],
    new_tape: Callable[[], Any],
    make: Callable[[Any, int], Any],
    kind: type[Trace] = Trace,
) -> Iterator[Trace]:
    """Record what this thread does with Values while f is called; under the lock."""
    tape = new_tape()
    tape.trace = trace = kind(tape, make)
    try:
        try:
            with LOCK:
                TRACES.append(trace)
                close_tapes()  # no leaf is to be at home on another tape
                choose_in(f)
            HERE.trace = trace
            set_current_tape(tape)
            trace.begin()
            yield trace
        finally:
            _end(trace, tape)
    except BaseException:  # it may have come before the end, or in the middle of it
        _end(trace, tape)
        raise


def _end(trace: Trace, tape: Any) -> None:
    """A trace is over, or was not even begun. May be done again."""
    HERE.trace = None
    trace.end()
    with LOCK:
        TRACES[:] = [other for other in TRACES if other is not trace]
        if not TRACES:
            choose_nowhere()
        tape.close()
