"""The instructions of a schedule, in Python or, where it was built, in C."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from retrograd.accelerate import check
from retrograd.scalar.machine import BY_NAME, CONSTANT, LEAF, OPCODES
from retrograd.scalar.machine.opcodes import COMPARE, GRADIENT, NUMBER, START, STOP
from retrograd.scalar.machine.vector_machine import MODES, ONE, WIDE, WORDS, kinds
from retrograd.scalar.schedule import DOT, MOST, Batch, InstructionSchedule, schedule
from retrograd.scalar.trace_rows import ARITY, PATHS, Columns, Event

try:
    from retrograd.accelerate import _instructions

    check(_instructions)
except ImportError:  # it was not built here
    _instructions = None  # type: ignore[assignment]

_NAMES = {o.code: o.name for o in OPCODES} | {c: name for name, c in COMPARE.items()}
_NAMES[STOP] = "stop"


@dataclass
class InstructionLayout:
    """Where rows live, and what is done to them."""

    slot: Any  # of each row; the last two are those of the constants 1 and 0
    slots: int
    given: Any  # rows whose value is given, in the order of their slots from 0 on
    table: Any  # instructions
    keep: list[Any]  # what the instructions have addresses of


def laid_out(columns: Columns, events: list[Event], wanted: Any) -> InstructionLayout:
    """Instructions for rows; `wanted` are those whose value somebody reads in the end."""
    if _instructions is None:
        return by_python(columns, events, wanted)
    return by_c(columns, events, wanted)


def by_c(columns: Columns, events: list[Event], wanted: Any) -> InstructionLayout:
    ends = np.array([(e.root, e.rows) for e in events], np.int64)
    slot, slots, given, table, pool = _instructions.plan(
        _settings(), columns.code, columns.a, columns.b, columns.numbers, ends,
        np.ascontiguousarray(wanted, np.int64), MOST,
    )  # fmt: skip
    words = np.frombuffer(table, np.int64).reshape(-1, len(WORDS))
    return InstructionLayout(
        np.frombuffer(slot, np.int32), slots, np.frombuffer(given, np.int32), words, [pool]
    )


@cache
def _settings() -> Any:
    """What the C code knows of opcodes and instructions."""
    number = kinds()
    tables = np.full((8, 256), -1, np.int64)
    tables[0], tables[1] = ARITY, PATHS
    for code, name in _NAMES.items():
        forms = (name, f"{name}.back", *[f"{name}.{m}" for m in MODES], f"{name}.c")
        tables[2:, code] = [number.get(form, -1) for form in forms]
    codes = [BY_NAME[name].code for name in ("add", "mul", "sqrt", "powc")]
    codes += [CONSTANT, LEAF, NUMBER, START, STOP, GRADIENT, DOT]
    names = ("dot", "dot.back", "dot.c", "dot.c.back", "clear", "seed", "gradient")
    return np.concatenate([tables.ravel(), codes, [number[name] for name in names]])


def by_python(columns: Columns, events: list[Event], wanted: Any) -> InstructionLayout:
    """The definition."""
    plan = schedule(columns, events, wanted)
    written = _Instructions(plan)
    written.write(events)
    table = np.array(written.words, np.int64).reshape(-1, len(WORDS))
    return InstructionLayout(plan.slot, plan.slots, plan.given, table, written.keep)


@dataclass
class _Instructions:
    plan: InstructionSchedule
    words: list[tuple[int, ...]] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)

    def write(self, events: list[Event]) -> None:
        plan = self.plan
        by_segment: list[list[Batch]] = [[] for _ in range(len(events) + 1)]
        for batch in plan.batches:
            by_segment[batch.segment].append(batch)
        done: list[tuple[Batch, Any]] = []
        for number, group in enumerate(by_segment):
            for batch in group:
                done.append((batch, self._forward(batch)))
            if number < len(events):
                root = int(plan.slot[events[number].root])
                if root < 0:
                    continue  # nobody wants the gradients of this way back
                # The two constants lie at the end: their gradients are cleared by nobody.
                self._emit("clear", plan.ends[number], 0)
                self._emit("seed", 1, root)
                for batch, words in reversed(done):
                    if batch.events >> min(number, 62) & 1:
                        self._backward(batch, words)

    def _forward(self, batch: Batch) -> Any:
        slot = self.plan.slot
        out, n = int(slot[batch.rows[0]]), len(batch.rows)
        if batch.code == DOT:
            return self._contraction(batch, out, n)
        a = slot[batch.a]
        if batch.code == GRADIENT:
            self._emit("gradient", n, out, a=self._list(a))
            return None
        name = _NAMES[batch.code]
        if name in ONE:
            lists = {"a": self._list(a)}
            if _mode(a) == "c":
                self._emit(f"{name}.c", n, out, a=int(a[0]))
            else:
                self._emit(name, n, out, **lists)
            return None if batch.code == STOP else lists
        if ARITY[batch.code] < 2:
            lists = {"a": self._list(a)}
            self._emit(name, n, out, **lists)
            return lists
        b = slot[batch.b]
        lists = {"a": self._list(a), "b": self._list(b)}
        mode = _mode(a) + _mode(b) if name in WIDE and n > 3 else ""
        if mode in ("cc", "cb", "bc"):
            self._emit(f"{name}.{mode}", n, out, a=int(a[0]), b=int(b[0]))
        else:
            self._emit(name, n, out, **lists)
        return lists

    def _contraction(self, batch: Batch, out: int, n: int) -> Any:
        slot = self.plan.slot
        a, b, size = slot[batch.a], slot[batch.b], batch.a.shape[1]
        words: dict[str, Any] = {"init": self._list(slot[batch.init]), "size": size}
        wide = size > 1 and bool(np.all(np.diff(a) == 1) and np.all(np.diff(b) == 1))
        if wide:
            a, b = a[:, 0], b[:, 0]
        words |= {"a": self._list(a), "b": self._list(b)}
        kind = "dot.c" if wide else "dot"
        self._emit(kind, n, out, **words)
        return {"kind": kind, **words}

    def _backward(self, batch: Batch, words: Any) -> None:
        out, n = int(self.plan.slot[batch.rows[0]]), len(batch.rows)
        if batch.code == DOT:
            rest = {k: v for k, v in words.items() if k != "kind"}
            self._emit(f"{words['kind']}.back", n, out, **rest)
        elif words is not None and batch.code not in COMPARE.values():
            self._emit(f"{_NAMES[batch.code]}.back", n, out, **words)

    def _emit(self, name: str, n: int, out: int, **words: int) -> None:
        word = {"kind": kinds()[name], "n": n, "out": out, **words}
        self.words.append(tuple([int(word.get(w, 0)) for w in WORDS]))

    def _list(self, slots: Any) -> int:
        kept = np.ascontiguousarray(slots, np.int32)
        self.keep.append(kept)
        return int(kept.ctypes.data)


def _mode(slots: Any) -> str:
    """`c` where slots lie side by side, `b` where they are all the same."""
    step = np.diff(slots)
    return "c" if np.all(step == 1) else "b" if not step.any() else "x"


__all__ = ["InstructionLayout", "by_c", "by_python", "laid_out"]
