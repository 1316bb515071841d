"""A trace of a function of Values: its rows, what it reads and writes of leaves, its ways back.

While a thread traces, `.data` and `.grad` of its Values are not numbers but rows: `p.data -= lr *
p.grad` writes down an update. What a leaf holds at the moment is known by row (`data`, `grad`), so
the trace is a program: rows in order, some of them after a way back (`Event`), and in the end what
each leaf is to hold.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from retrograd.backends.scalar import BY_NAME, CONSTANT, LEAF
from retrograd.backends.scalar.opcodes import COMPARE, GRADIENT, NUMBER, START, STOP
from retrograd.errors import TraceError
from retrograd.frontend.value.operands import number_of
from retrograd.frontend.value.page import (
    HERE,
    LOCK,
    OPEN_PAGES,
    TRACES,
    current_trace,
    set_current_page,
)

_MAX, _MIN = builtins.max, builtins.min


@dataclass(frozen=True)
class Event:
    """A way back from a row, which comes after so many rows."""

    root: int
    rows: int


class Trace:
    """What happens to Values on one page, whose rows have no values."""

    def __init__(self, page: Any, make: Callable[[Any, int], Any]) -> None:
        self.page = page
        self._make = make
        self.aliases: dict[int, int] = {}  # rows of leaves that were set: what they were set to
        self.events: list[Event] = []
        self.data_rows: dict[int, tuple[Any, int]] = {}  # what leaves that were set hold, by id
        self.grad_rows: dict[int, tuple[Any, int]] = {}
        self.numbers: list[int] = []  # rows of arguments
        self._places: dict[int, int] = {}  # rows of leaves as they are now, by id
        self._cones: dict[int, set[int]] = {}
        self.finished = False

    def put(self, code: int, a: int = 0, b: int = 0) -> int:
        self._alive()
        row: int = self.page.put(code, a, b)
        return row

    # -- what Values ask of their page ------------------------------------------------------------
    def attach(self, x: Any) -> int:
        """The row of a leaf, as it is at the moment."""
        found = self._places.get(id(x))
        if found is None:
            found = self._places[id(x)] = self.put(LEAF)
            self.page.leaves[found] = x
            known = self.data_rows.get(id(x))
            if known is not None:
                self.aliases[found] = known[1]
        return found

    def value(self, i: int) -> Any:
        """The number in a row: a row without a gradient."""
        return self._make(self.page, self.put(STOP, i))

    def grad(self, i: int) -> Any:
        """The gradient of what was computed: of the last way back that came to it."""
        for number in range(len(self.events) - 1, -1, -1):
            if i in self.cone(number):
                return self._make(self.page, self.put(GRADIENT, i, number))
        return 0.0

    def set_grad(self, i: int, g: float) -> None:
        raise TraceError("inside of jit only the gradients of leaves can be set")

    def import_row(self, page: Any, row: int) -> int:
        raise TraceError(
            "a Value that was computed outside of a jit function is used inside: its gradient "
            "would be lost. Compute it inside, or use its `.data`"
        )

    def run_backward(self, row: int) -> None:
        """Write down a way back; the gradients of leaves grow by what it brings them."""
        number = len(self.events)
        self.events.append(Event(row, self.mark()))
        rows: dict[int, list[int]] = {}
        for i in sorted(self.cone(number)):
            x = self.page.leaves.get(i)
            if x is not None:
                rows.setdefault(id(x), []).append(i)
        for places in rows.values():
            x = self.page.leaves[places[0]]
            total = self.grad_row(x)
            for i in places:
                part = self.put(GRADIENT, i, number)
                total = part if total is None else self.put(BY_NAME["add"].code, total, part)
            assert total is not None  # there is a place at least
            self.grad_rows[id(x)] = (x, total)

    def clear(self) -> None:
        raise TraceError(
            "inside of jit set the gradients of leaves, as a module's zero_grad() does"
        )

    # -- leaves -----------------------------------------------------------------------------------
    def data_of(self, x: Any) -> Any:
        return self._make(self.page, self.put(STOP, self.attach(x)))

    def set_data(self, x: Any, number: Any) -> None:
        self.data_rows[id(x)] = (x, self.row_of(number))
        self._places.pop(id(x), None)

    def grad_row(self, x: Any) -> int | None:
        """The row of a leaf's gradient; None if that is 0."""
        found = self.grad_rows.get(id(x))
        if found is None:
            found = self.grad_rows[id(x)] = (x, self.put(START))
            self.page.leaves[found[1]] = x
        return None if found[1] == self.page.number(0.0) else found[1]

    def grad_of(self, x: Any) -> Any:
        row = self.grad_row(x)
        return 0.0 if row is None else self._make(self.page, row)

    def set_grad_of(self, x: Any, number: Any) -> None:
        self.grad_rows[id(x)] = (x, self.row_of(number))

    def row_of(self, x: Any) -> int:
        """The row of a number or of a traced Value."""
        if getattr(x, "_page", None) is self.page:
            return int(x._row)
        self._alive()
        return int(self.page.number(number_of(x)))

    # -- numbers ----------------------------------------------------------------------------------
    def argument(self) -> Any:
        """A number that is given with each call."""
        self.numbers.append(self.put(NUMBER))
        return self._make(self.page, self.numbers[-1])

    def operation(self, code: int, *operands: Any) -> Any:
        return self._make(self.page, self.put(code, *[self.row_of(x) for x in operands]))

    def is_outcome(self, x: Any) -> bool:
        """Whether a Value is the outcome of a comparison."""
        return self.page.columns()[0][x._row] in COMPARE.values()

    def compare(self, name: str, a: Any, b: Any) -> Any:
        return self.operation(COMPARE[name], a, b)

    def is_plain(self, row: int) -> bool:
        """Whether a row was computed from numbers alone, and no Value."""
        op, a, b = self.page.columns()
        seen, todo = set(), [row]
        while todo:
            i = todo.pop()
            if op[i] == LEAF:
                return False
            if i not in seen and op[i] not in _NUMBERS:
                seen.add(i)
                todo += [a[i], b[i]][: ARITY2.get(op[i], 0)]
        return True

    # -- the end ----------------------------------------------------------------------------------
    def mark(self) -> int:
        """The number of rows so far."""
        return self.put(CONSTANT) + 1

    def _alive(self) -> None:
        if self.finished:
            raise TraceError(
                "a Value of a jit function was kept beyond the call that traced it; return it, or "
                "keep it in the `.data` of a leaf"
            )

    def cone(self, number: int) -> set[int]:
        """The rows that an event comes to."""
        if number not in self._cones:
            op, a, b = self.page.columns()
            rows: set[int] = set()
            todo = [self.events[number].root]
            while todo:
                i = todo.pop()
                if i not in rows:
                    rows.add(i)
                    n = ARITY.get(op[i], 0)
                    if n:
                        todo.append(a[i])
                    if n == 2:
                        todo.append(b[i])
            self._cones[number] = rows
        return self._cones[number]


_NUMBERS = (NUMBER, START, GRADIENT, STOP, *COMPARE.values())
ARITY2 = {o.code: o.arity for o in BY_NAME.values()}
ARITY = {o.code: 1 if o.name == "powc" else o.arity for o in BY_NAME.values()}


@contextmanager
def tracing(new_page: Callable[[], Any], make: Callable[[Any, int], Any]) -> Iterator[Trace]:
    """Record what this thread does with Values."""
    page = new_page()
    page.trace = trace = Trace(page, make)
    with LOCK:
        TRACES.append(trace)
        for p in list(OPEN_PAGES):  # no leaf is to be at home on another page
            p.close()
        if len(TRACES) == 1:
            builtins.max, builtins.min = _choice(_MAX, "max"), _choice(_MIN, "min")
    HERE.trace = trace
    set_current_page(page)
    try:
        yield trace
    finally:
        HERE.trace = None
        with LOCK:
            TRACES.remove(trace)
            if not TRACES:
                builtins.max, builtins.min = _MAX, _MIN
            trace.finished = True
            page.close()


def _choice(real: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`max` or `min` that knows numbers of a trace: Python's asks for the outcome of comparisons,
    which a trace does not have. There while some thread traces; on anything else it is the real
    one."""

    def choose(*args: Any, **named: Any) -> Any:
        trace = current_trace()
        if trace is None or named:
            return real(*args, **named)
        items = args if len(args) > 1 else list(args[0]) if args else ()
        if not any(getattr(x, "_page", None) is trace.page for x in items):
            return real(items) if items else real(*args)
        best = items[0]
        for x in items[1:]:
            best = trace.operation(BY_NAME[name].code, best, x)
        return best

    choose.__name__, choose.__doc__ = name, real.__doc__
    return choose
