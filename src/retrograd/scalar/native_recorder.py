"""The recorder of `Value` in C, where `accelerate/value.c` was built; here is what does not happen
for every operation."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import retrograd.accelerate._value as _value
from retrograd.accelerate import check
from retrograd.scalar.foreign_rows import Borrower, CustomRow
from retrograd.scalar.machine import BY_NAME, CONSTANT
from retrograd.scalar.machine.opcodes import METHODS
from retrograd.scalar.machine.selection import address
from retrograd.scalar.operands import number_of
from retrograd.scalar.reclaim import measure
from retrograd.scalar.scalar import Scalar
from retrograd.scalar.slow_path import SIGNATURE, construct, record, refuse
from retrograd.scalar.tape import (
    LOCK,
    OPEN,
    OPEN_TAPES,
    STAMPS,
    TRACES,
    TapeClosed,
    current_tape,
    evaluate,
)
from retrograd.scalar.trace import Trace
from retrograd.scalar.trace_rows import PATHS, Columns

check(_value)


class NativeTape(_value.Tape, Borrower):
    """What `Tape` is, on rows that are in flat arrays from the start."""

    __slots__ = (
        "__weakref__", "_imported", "_unread", "burden", "customs", "exported",
        "foreign", "handles", "labels", "lines", "patience", "size", "stamp",
    )  # fmt: skip

    def __init__(self) -> None:
        self.foreign: dict[int, tuple[Any, int]] = {}
        self.customs: dict[int, CustomRow] = {}
        self.labels: dict[int, str] = {}
        self.lines: dict[int, Any] = {}
        self.handles: dict[int, Any] = {}
        self.exported: set[int] = set()
        self._imported: dict[tuple[Any, int], int] = {}
        self._unread: list[int] = []
        self.stamp = OPEN
        self.size = self.burden = self.patience = 0

    def leaf(self, i: int) -> Any:
        return self._leaf(i)

    def _unseen(self, row: int) -> None:
        super()._unseen(row)
        self._waiting = True

    def close(self) -> None:
        with LOCK:
            if self.stamp != OPEN:
                return
            self.size = self._close()
            self.stamp = next(STAMPS)
            self._imported = {}
            OPEN_TAPES.discard(self)
            measure(self)

    def columns(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        code, a, b, _ = self._memory()
        return array("B", code), array("i", a), array("i", b)

    def ahead(self, i: int) -> int:
        return i

    def missing(self, i: int) -> list[tuple[Any, int]]:
        found = [self.foreign[r] for r in self._unread if r <= i]
        return [(tape, row) for tape, row in found if row >= tape.done]

    def advance(self, i: int) -> None:
        for r in self._unread:
            if r <= i:
                tape, row = self.foreign[r]
                self._set_value(r, tape.value(row))
        self._unread = [r for r in self._unread if r > i]
        self._waiting = False
        self._compute(i)
        self._waiting = bool(self._unread)

    def collect(self) -> list[tuple[Any, int, float]]:
        return [(*self.foreign[r], g) for r, g in self._collect() if r in self.foreign]

    @contextmanager
    def keeping_gradients(self) -> Iterator[None]:
        before = self._saved()
        yield
        self._restore(before)

    def held(self, tapes: Sequence[Any]) -> dict[Any, set[int]]:
        return {p: p._held() for p in tapes}

    def drop(self, rows: Sequence[int]) -> None:
        for r in rows:
            del self.foreign[r]
            self._set_code(r, CONSTANT)
        self._unread = [r for r in self._unread if r in self.foreign]
        self._waiting = bool(self._unread)


class NativeTrace(Trace):
    """What `Trace` is, on a tape that knows by itself what happens to leaves."""

    def begin(self) -> None:
        self.tape._trace_begin()

    def end(self) -> None:
        self.tape._trace_end()

    def leaves(self) -> tuple[list[Any], Any, Any]:
        leaves, data, grads = self.tape._trace_leaves()
        return leaves, np.frombuffer(data, np.int64), np.frombuffer(grads, np.int64)

    def fresh(self) -> list[int]:
        return self.tape._trace_fresh()

    def homes(self) -> tuple[Any, Any, list[int], list[Any]]:
        data, grads, homeless, homes = self.tape._trace_homes()
        return np.frombuffer(data, np.int64), np.frombuffer(grads, np.int64), homeless, homes

    def _bring(self, root: int, number: int) -> None:
        self.tape._trace_back(root, number, _PATHS, BY_NAME["add"].code)

    def columns(self) -> Columns:
        code, a, b, numbers = self.tape._memory()
        return Columns(
            np.frombuffer(code, np.uint8), np.frombuffer(a, np.int32), np.frombuffer(b, np.int32),
            np.frombuffer(numbers),
        )  # fmt: skip


class _Base(Scalar):
    __doc__ = Scalar.__doc__
    __slots__ = ()
    _new_tape = NativeTape
    _new_trace = NativeTrace
    _open_tape = staticmethod(lambda: current_tape(NativeTape))


_PATHS = bytes(PATHS)
Value = _value.make(
    _Base,
    tuple([o.code for o in METHODS]),
    address,
    record,
    construct,
    TRACES,
    number_of,
    evaluate,
    refuse,
    TapeClosed,
)
Value._class = Value
Value.__doc__ = Scalar.__doc__
Value.__signature__ = SIGNATURE
