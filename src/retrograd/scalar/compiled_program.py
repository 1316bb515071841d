"""A traced function as a program for the machine: instructions, and the addresses of leaves."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.scalar.instructions import laid_out
from retrograd.scalar.machine import CONSTANT, LEAF
from retrograd.scalar.machine.opcodes import START
from retrograd.scalar.machine.vector_machine import WORDS, kinds, runner
from retrograd.scalar.trace import Trace
from retrograd.scalar.trace_rows import Columns


class Home:
    """Where the numbers and gradients of leaves live, side by side."""

    __slots__ = ("data", "grads")

    def __init__(self, size: int) -> None:
        self.data, self.grads = array("d", bytes(8 * size)), array("d", bytes(8 * size))

    def addresses(self) -> tuple[int, int]:
        """Where the arrays lie; they stay there."""
        return self.data.buffer_info()[0], self.grads.buffer_info()[0]


class _Memory:
    """What programs work on; one runs at a time, under the lock, and leaves nothing behind."""

    def __init__(self) -> None:
        self.values, self.grads = np.zeros(0), np.zeros(0)

    def reserve(self, slots: int) -> None:
        if slots > len(self.values):
            self.values, self.grads = np.zeros(slots), np.zeros(slots)


_MEMORY = _Memory()


class ScalarProgram:
    """Instructions, and where they find what comes from outside."""

    def __init__(
        self, trace: Trace, columns: Columns, ends: tuple[list[Any], Any, Any],
        results: Sequence[int], noted: Any, arguments: Sequence[Any],
    ) -> None:  # fmt: skip
        """`ends` are leaves with the rows that they are set to; `results` are rows that are
        returned, `noted` others that are read; `arguments` are leaves whose numbers are given with
        each call."""
        self._columns = columns
        self._leaves, data, grads = ends
        set_data, set_grads = np.flatnonzero(data), np.flatnonzero(grads)
        row = grads[set_grads]  # a gradient that was read only is that of the leaf itself
        set_grads = set_grads[(columns.code[row] != START) | (columns.a[row] != set_grads)]
        rows = np.array([*results, *noted, *trace.numbers], np.int64)
        wanted = np.concatenate([rows, data[set_data], grads[set_grads]])
        self._layout = layout = laid_out(columns, trace.events, wanted)
        self.slots = layout.slots
        self.results = layout.slot[list(results)]
        self.noted = layout.slot[np.asarray(noted, np.int64)]
        self.numbers = layout.slot[trace.numbers]
        self._keep = layout.keep
        self._before: list[tuple[int, ...]] = []
        self._after: list[tuple[int, ...]] = []
        self.reads: list[tuple[Any, int, bool]] = []
        self.writes: list[tuple[Any, int, str]] = []
        known = {id(x) for x in arguments}
        given = np.zeros(len(self._leaves), bool)
        if known:
            given[:] = [id(x) in known for x in self._leaves]
        at_data, at_grads = self._homes(trace, given)
        self._constants()
        self._loads(LEAF, given, at_data)
        self._loads(START, given, at_grads)
        self._stores("data", set_data, data, given, at_data)
        self._stores("grad", set_grads, grads, given, at_grads)
        before, after = (
            np.array(x, np.int64).reshape(-1, len(WORDS)) for x in (self._before, self._after)
        )
        self._table = np.concatenate([before, layout.table, after])
        self._run = runner()
        self.nbytes = self._table.nbytes + sum([memoryview(x).nbytes for x in self._keep])
        # Nothing of the trace is needed any more but the addresses.
        del self._columns, self._leaves, self._layout

    def _homes(self, trace: Trace, given: Any) -> tuple[Any, Any]:
        """Addresses of the numbers and gradients of leaves that do not come with the call."""
        at_data, at_grads, homeless, homes = trace.homes()
        moving = [self._leaves[k] for k in homeless if not given[k]]
        if moving:
            home = Home(len(moving))
            for i, x in enumerate(moving):
                x._move(home, i)
            at_data, at_grads, _, homes = trace.homes()
        self._home = homes
        return at_data, at_grads

    # -- what goes in -----------------------------------------------------------------------------
    def _constants(self) -> None:
        given = self._layout.given
        rows = given[self._columns.code[given] == CONSTANT]
        numbers = np.concatenate([self._columns.numbers[rows], [1.0, 0.0]])
        slots = [*self._layout.slot[rows].tolist(), self.slots - 2, self.slots - 1]
        self._keep.append(numbers)
        self._load(slots, numbers.ctypes.data + 8 * np.arange(len(numbers)))

    def _loads(self, kind: int, given: Any, addresses: Any) -> None:
        rows = self._layout.given
        rows = rows[self._columns.code[rows] == kind]
        leaves, slots = self._columns.a[rows], self._layout.slot[rows]
        theirs = given[leaves]
        self._load(slots[~theirs], addresses[leaves[~theirs]])
        self.reads += [
            (self._leaves[k], slot, kind == START)
            for k, slot in zip(leaves[theirs].tolist(), slots[theirs].tolist(), strict=True)
        ]

    def _load(self, slots: Any, addresses: Any) -> None:
        slots = np.asarray(slots)
        for start, stop in _runs(slots):
            self._before.append(
                self._words("load", stop - start, slots[start], b=self._list(addresses[start:stop]))
            )

    # -- what comes out ---------------------------------------------------------------------------
    def _stores(self, field: str, leaves: Any, rows: Any, given: Any, addresses: Any) -> None:
        slots = self._layout.slot[rows[leaves]].astype(np.int32)
        ours = ~given[leaves]
        if ours.any():
            self._after.append(
                self._words(
                    "store", int(ours.sum()), 0,
                    b=self._list(addresses[leaves[ours]]), init=self._list(slots[ours]),
                )
            )  # fmt: skip
        self.writes += [
            (self._leaves[k], slot, field)
            for k, slot in zip(leaves[~ours].tolist(), slots[~ours].tolist(), strict=True)
        ]

    def _words(self, name: str, n: int, out: int, **words: int) -> tuple[int, ...]:
        word = {"kind": kinds()[name], "n": n, "out": out, **words}
        return tuple([int(word.get(w, 0)) for w in WORDS])

    def _list(self, numbers: Any) -> int:
        kept = np.ascontiguousarray(numbers)
        self._keep.append(kept)
        return int(kept.ctypes.data)

    def __call__(self, slots: Sequence[int], numbers: Sequence[float]) -> Any:
        """Run, with numbers at slots that come with the call; the values of all slots."""
        _MEMORY.reserve(self.slots)
        values = _MEMORY.values
        if len(slots):
            values[slots] = numbers
        self._run(
            self._table.ctypes.data, values.ctypes.data, _MEMORY.grads.ctypes.data,
            len(self._table),
        )  # fmt: skip
        return values


def _runs(slots: Any) -> list[tuple[int, int]]:
    """Where a list of slots goes up by one."""
    if not len(slots):
        return []
    cuts = (np.flatnonzero(np.diff(slots) != 1) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(slots)], strict=True))


__all__ = ["Home", "ScalarProgram"]
