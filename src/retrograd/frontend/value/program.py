"""A traced function as a program for the machine: instructions, memory, and the arrays in which the
numbers of leaves live between calls."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.backends.scalar import CONSTANT, LEAF, OPCODES
from retrograd.backends.scalar.batches import ONE, WORDS, kinds, runner
from retrograd.backends.scalar.opcodes import COMPARE, GRADIENT, START, STOP
from retrograd.frontend.value.schedule import DOT, Batch, schedule
from retrograd.frontend.value.trace import Trace

_NAMES = {o.code: o.name for o in OPCODES} | {c: name for name, c in COMPARE.items()}
_NAMES[STOP] = "stop"
_WIDE = ("add", "sub", "mul", "div")


class Home:
    """Where the numbers and gradients of leaves live, side by side."""

    __slots__ = ("data", "grads")

    def __init__(self, size: int) -> None:
        self.data, self.grads = array("d", bytes(8 * size)), array("d", bytes(8 * size))

    def addresses(self) -> tuple[int, int]:
        """Where the arrays lie; they stay there."""
        return self.data.buffer_info()[0], self.grads.buffer_info()[0]


class Program:
    """Instructions and the memory they work on."""

    def __init__(self, trace: Trace, results: Sequence[int], arguments: Sequence[Any]) -> None:
        """`results` are rows; `arguments` are leaves whose numbers are given with each call."""
        code, a, b = (np.array(x, np.int64) for x in trace.page.columns())
        n = trace.page.size
        code, a, b = code[:n], a[:n], b[:n]
        known = {id(x) for x in arguments}
        data = {k: (x, r) for k, (x, r) in trace.data_rows.items()}
        grads = {
            k: (x, r)
            for k, (x, r) in trace.grad_rows.items()
            if code[r] != START or trace.page.leaves[r] is not x
        }
        wanted = [*results, *[r for _, r in data.values()], *[r for _, r in grads.values()]]
        wanted += trace.numbers
        cones = [trace.cone(k) for k in range(len(trace.events))]
        plan = schedule(
            code, a, b, trace.events, trace.aliases, wanted, cones, trace.page.given_numbers()
        )
        self._keep: list[Any] = []
        self._words: list[tuple[int, ...]] = []
        self._kinds = kinds()
        self._plan = plan
        self.values = np.zeros(plan.places)
        self._grads = np.zeros(plan.places)
        self.values[plan.places - 2] = 1.0
        self._constants(trace, code)
        self.results = plan.place[list(results)]
        self.numbers = plan.place[trace.numbers]
        # Leaves that come with the call, and those that live in arrays.
        self._leaves(trace, code, known, data, grads)
        self._instructions(trace)
        self._stores(data, grads, known)
        self._table = np.array(self._words, np.int64).reshape(-1, len(WORDS))
        self._run = runner()

    # -- what goes in -----------------------------------------------------------------------------
    def _constants(self, trace: Trace, code: Any) -> None:
        numbers = trace.page.given_numbers()
        for row in self._plan.given[code[self._plan.given] == CONSTANT].tolist():
            self.values[self._plan.place[row]] = numbers.get(row, 0.0)

    def _leaves(self, trace: Trace, code: Any, known: set[int], data: Any, grads: Any) -> None:
        place, leaves = self._plan.place, trace.page.leaves
        given = self._plan.given
        reads: list[int] = given[np.isin(code[given], (LEAF, START))].tolist()
        own = {id(leaves[r]): leaves[r] for r in reads}
        own.update({id(x): x for x, _ in [*data.values(), *grads.values()]})
        homeless = [x for k, x in own.items() if k not in known and not x._home]
        if homeless:
            home = Home(len(homeless))
            for i, x in enumerate(homeless):
                x._move(home, i)
        self.reads = [
            (leaves[r], place[r], code[r] == START) for r in reads if id(leaves[r]) in known
        ]
        for kind, field in ((LEAF, "data"), (START, "grads")):
            rows = [r for r in reads if code[r] == kind and id(leaves[r]) not in known]
            for home, group in _by_home([leaves[r] for r in rows]).items():
                at = np.array([place[rows[i]] for i in group])
                source = [leaves[rows[i]]._row for i in group]
                # Places of these are side by side unless several homes or arguments mix.
                for start, stop in _runs(at):
                    self._emit(
                        "load", stop - start, at[start],
                        a=self._address(getattr(home, field)),
                        b=self._list(source[start:stop]),
                    )  # fmt: skip

    # -- what is done -----------------------------------------------------------------------------
    def _instructions(self, trace: Trace) -> None:
        plan = self._plan
        by_segment: list[list[Batch]] = [[] for _ in range(len(trace.events) + 1)]
        for batch in plan.batches:
            by_segment[batch.segment].append(batch)
        done: list[tuple[Batch, Any]] = []
        for number, group in enumerate(by_segment):
            for batch in group:
                done.append((batch, self._forward(batch)))
            if number < len(trace.events):
                root = int(plan.place[trace.events[number].root])
                if root < 0:
                    continue  # nobody wants the gradients of this way back
                # The two constants lie at the end: their gradients are cleared by nobody.
                self._emit("clear", plan.ends[number], 0)
                self._emit("seed", 1, root)
                for batch, words in reversed(done):
                    if batch.events >> min(number, 62) & 1:
                        self._backward(batch, words)

    def _forward(self, batch: Batch) -> Any:
        place = self._plan.place
        out, n = int(place[batch.rows[0]]), len(batch.rows)
        if batch.code == DOT:
            return self._contraction(batch, out, n)
        a = place[batch.a]
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
        b = place[batch.b]
        lists = {"a": self._list(a), "b": self._list(b)}
        mode = _mode(a) + _mode(b) if name in _WIDE and n > 3 else ""
        if mode in ("cc", "cb", "bc"):
            self._emit(f"{name}.{mode}", n, out, a=int(a[0]), b=int(b[0]))
        else:
            self._emit(name, n, out, **lists)
        return lists

    def _contraction(self, batch: Batch, out: int, n: int) -> Any:
        place = self._plan.place
        a, b, size = place[batch.a], place[batch.b], batch.a.shape[1]
        words: dict[str, Any] = {"init": self._list(place[batch.init]), "size": size}
        wide = size > 1 and bool(np.all(np.diff(a) == 1) and np.all(np.diff(b) == 1))
        if wide:
            a, b = a[:, 0], b[:, 0]
        words |= {"a": self._list(a), "b": self._list(b)}
        kind = "dot.c" if wide else "dot"
        self._emit(kind, n, out, **words)
        return {"kind": kind, **words}

    def _backward(self, batch: Batch, words: Any) -> None:
        out, n = int(self._plan.place[batch.rows[0]]), len(batch.rows)
        if batch.code == DOT:
            rest = {k: v for k, v in words.items() if k != "kind"}
            self._emit(f"{words['kind']}.back", n, out, **rest)
        elif words is not None and batch.code not in COMPARE.values():
            self._emit(f"{_NAMES[batch.code]}.back", n, out, **words)

    # -- what comes out ---------------------------------------------------------------------------
    def _stores(self, data: Any, grads: Any, known: set[int]) -> None:
        place = self._plan.place
        self.writes = []
        for field, rows in (("data", data), ("grads", grads)):
            stored = [(x, r) for k, (x, r) in rows.items() if k not in known]
            for home, group in _by_home([x for x, _ in stored]).items():
                self._emit(
                    "store", len(group), 0,
                    a=self._address(getattr(home, field)),
                    b=self._list([stored[i][0]._row for i in group]),
                    init=self._list(place[[stored[i][1] for i in group]]),
                )  # fmt: skip
            self.writes += [(x, place[r], field) for k, (x, r) in rows.items() if k in known]

    # -- instructions -----------------------------------------------------------------------------
    def _emit(self, name: str, n: int, out: int, **words: int) -> None:
        word = {"kind": self._kinds[name], "n": n, "out": out, **words}
        self._words.append(tuple([int(word.get(w, 0)) for w in WORDS]))

    def _list(self, places: Any) -> int:
        kept = np.ascontiguousarray(places, np.int32)
        self._keep.append(kept)
        return int(kept.ctypes.data)

    def _address(self, numbers: array[float]) -> int:
        self._keep.append(numbers)
        return numbers.buffer_info()[0]

    def __call__(self, numbers: Sequence[float]) -> None:
        """Run, with the numbers of the arguments that are numbers."""
        if len(numbers):
            self.values[self.numbers] = numbers
        self._run(
            self._table.ctypes.data, self.values.ctypes.data, self._grads.ctypes.data,
            len(self._table),
        )  # fmt: skip


def _by_home(leaves: Sequence[Any]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for i, x in enumerate(leaves):
        found.setdefault(x._home, []).append(i)
    return found


def _runs(places: Any) -> list[tuple[int, int]]:
    """Where a list of places goes up by one."""
    cuts = (np.flatnonzero(np.diff(places) != 1) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(places)], strict=True))


def _mode(places: Any) -> str:
    """`c` where places lie side by side, `b` where they are all the same."""
    step = np.diff(places)
    return "c" if np.all(step == 1) else "b" if not step.any() else "x"


__all__ = ["Home", "Program"]
