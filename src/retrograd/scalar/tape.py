"""A tape: what is recorded between two backward passes, as rows of an opcode and two operands.

Operations write rows and nothing else; values are computed from the first row that has none up to
the one that is asked for. A value is a handle on a row. A tape goes when no handle on it is left
and no newer tape reads from it, so what a step of a training loop recorded goes with the step.

Who records takes a number first, and publishes the row by writing its opcode last. So an open tape
may be written to by any thread without a lock; everything else that happens to tapes happens under
`LOCK`. A number is taken by `tape.free = (i := tape.free) + 1`, one statement in which nothing is
called: between its instructions CPython hands its lock to no other thread, so no two get the same
number. (`next` of an `itertools.count` says so more plainly, and costs a quarter of a recording.)

A tape is closed by a backward pass, or when it is large and few handles are left on it. Its values
are then rows of the kind `FOREIGN` on the tape that goes on. An open tape never has such rows of
another open one, so tapes have an order: that in which they were closed.
"""

from __future__ import annotations

import gc
import itertools
import math
import struct
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from retrograd.scalar.foreign_rows import Borrower, CustomRow
from retrograd.scalar.machine import CONSTANT, CUSTOM, LEAF, UNWRITTEN, TapeMemory, machine
from retrograd.scalar.reclaim import measure
from retrograd.shared import lock, members

LOCK = lock(10)
OPEN_TAPES: weakref.WeakSet[Any] = weakref.WeakSet()
TRACES: list[Any] = []  # of all threads; while it is empty nobody need ask whether one traces
FIRST = 256  # rows of a new tape
LIMIT = 1 << 16  # rows from which on a tape is closed if it has few handles,
FEW = 8  # that is, fewer than one for so many rows
CHUNK = 1 << 14  # rows copied at once
PATIENCE = 2000  # looks at a row that another thread has taken, a tenth of a millisecond apart
STAMPS = itertools.count(1)
OPEN = sys.maxsize  # in place of the stamp of a closed tape


class TapeClosed(Exception):
    """A row was asked of a tape that takes none."""


class _Shut:
    """The number of the next row of a closed tape."""

    def __add__(self, one: int) -> int:
        raise TapeClosed


class _Room:
    """Rows that a new tape has room for: as many as the one closed last, since a loop does the same
    again; half as many with each tape that follows before another is closed."""

    rows = FIRST

    @classmethod
    def taken(cls) -> int:
        room = cls.rows
        cls.rows = max(FIRST, room >> 1)
        return room


class RowHandle:
    """What refers to a row of a tape: the base of `Value`."""

    __slots__ = ()
    _tape: Any
    _row: int


class ScalarTape(Borrower):
    """Rows, in lists while they are recorded and in a `TapeMemory` once their values are known."""

    __slots__ = (
        "__weakref__", "_copied", "_given", "_imported", "_unread", "a", "b", "block", "burden",
        "constants", "customs", "done", "exported", "foreign", "free", "handles", "labels",
        "leaves", "lines", "op", "patience", "size", "stamp", "trace",
    )  # fmt: skip

    def __init__(self) -> None:
        self.free: Any = 1  # row 0 is nobody's, so that no number of a row is false
        room = _Room.taken()
        self.op, self.a, self.b = [UNWRITTEN] * room, [0] * room, [0] * room
        self.op[0] = CONSTANT
        self.block = TapeMemory()
        self.done = 0  # rows whose value is known
        self._copied = 0  # rows that are in the block
        self._given: dict[int, float] = {}  # values to be put in the block
        self._unread: list[int] = []  # rows of other tapes whose value is not in the block
        self.leaves: dict[int, Any] = {}
        self.foreign: dict[int, tuple[ScalarTape, int]] = {}
        self.customs: dict[int, CustomRow] = {}
        self.constants: dict[float, int] = {}
        self._imported: dict[tuple[ScalarTape, int], int] = {}
        self.labels: dict[int, str] = {}
        self.lines: dict[int, Any] = {}  # where rows were recorded, as far as somebody asked
        self.handles: dict[int, Any] = {}  # those that were handed out once
        self.stamp = OPEN
        self.trace: Any = None  # what is asked instead of the block, if a function is traced here
        self.exported: set[int] = set()  # rows that other tapes read
        self.size = self.burden = self.patience = 0  # of a closed tape, as `reclaim` wants them

    # -- recording --------------------------------------------------------------------------------
    def put(self, code: int, a: int = 0, b: int = 0) -> int:
        """A new row."""
        self.free = (i := self.free) + 1
        if i >= len(self.op):
            self.extend(i, code, a, b)
        else:
            self.a[i], self.b[i] = a, b
            self.op[i] = code
        return i

    def extend(self, i: int, code: int, a: int, b: int) -> None:
        """Write a row that was taken and that there is no room for."""
        with LOCK:
            more = max(i + 1 - len(self.op), len(self.op))
            if more > 0:
                self.a.extend([0] * more)
                self.b.extend([0] * more)
                self.op.extend([UNWRITTEN] * more)
            self.a[i], self.b[i] = a, b
            self.op[i] = code
            # Every handle refers to the tape, and so do some others, which do not matter here.
            if (
                i >= LIMIT
                and self.trace is None
                and sys.getrefcount(self) - len(self.leaves) < i // FEW
            ):
                self.close()

    def number(self, x: float) -> int:
        """The row of a constant."""
        x = float(x)
        if x == 0 and math.copysign(1.0, x) < 0:
            return self._put_given(CONSTANT, x)  # as a key it would be 0
        found = self.constants.get(x)
        if found is None:
            found = self.constants[x] = self._put_given(CONSTANT, x)
        return found

    def _put_given(self, code: int, x: float) -> int:
        self.free = (i := self.free) + 1
        self._given[i] = x
        self._write(i, code)
        return i

    def attach(self, x: Any) -> int:
        """The row of a leaf, which knows it from now on, unless its number lives elsewhere."""
        if self.trace is not None:
            row: int = self.trace.rows.get(id(x)) or self.trace.attach(x)
            return row
        data = x._data
        self.free = (i := self.free) + 1
        self.leaves[i] = x
        if type(data) is not float or TRACES:
            self._given[i] = x.data
            self._write(i, LEAF)
            return i
        self._given[i] = data
        try:
            self.op[i] = LEAF
        except IndexError:
            self.extend(i, LEAF, 0, 0)
        x._tape = self
        x._row = i
        return i

    def _write(self, i: int, code: int) -> None:
        """Publish a row whose value is given."""
        try:
            self.op[i] = code
        except IndexError:
            self.extend(i, code, 0, 0)

    def close(self) -> None:
        """Take no more rows."""
        with LOCK:
            if self.stamp != OPEN:
                return
            if not isinstance(self.free, _Shut):  # else a close before this was interrupted
                self.size, self.free = self.free, _Shut()
            _Room.rows = max(FIRST, min(self.size, LIMIT))
            for x in list(self.leaves.values()):
                if x._tape is self:
                    x._tape = NOWHERE
            self._imported, self.constants = {}, {}
            OPEN_TAPES.discard(self)
            self.stamp = next(STAMPS)
            measure(self)

    def columns(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """Opcodes and operands of all rows of a tape that is traced on."""
        return self.op, self.a, self.b

    def given_numbers(self) -> dict[int, float]:
        """The numbers of rows of such a tape that are constants."""
        return self._given

    # -- values -----------------------------------------------------------------------------------
    def value(self, i: int) -> float:
        """The value of a row."""
        if i >= self.done:
            if self.trace is not None:
                return self.trace.value(i)
            evaluate(self, i)
        return self.block.values[i]

    def ahead(self, i: int) -> int:
        """The last row that may be computed along with row `i`: others will be asked for soon, and
        each copy of rows takes longer to begin than a hundred of them to be copied."""
        if self.stamp != OPEN:
            return i
        try:
            return self.op.index(UNWRITTEN, i + 1) - 1
        except ValueError:
            return len(self.op) - 1

    def missing(self, i: int) -> list[tuple[ScalarTape, int]]:
        """The rows of other tapes that rows up to `i` read and that have no value yet."""
        found = [self.foreign[r] for r in self._unread if r <= i]
        return [(tape, row) for tape, row in found if row >= tape.done]

    def advance(self, i: int) -> None:
        """Compute the values up to row `i`, of which none is missing."""
        waited = 0
        while self.done <= i:
            self._copy(i + 1)
            self.done = machine()(self.block, self.done, i + 1, 0)
            if self.done <= i:  # another thread is about to write this row
                self._copied = self.done
                waited += 1
                time.sleep(1e-4)
                if waited > PATIENCE:  # it was interrupted in between: nobody has this row
                    self.op[self.done] = CONSTANT
        if self.stamp != OPEN and self.done >= self.size:
            self.op, self.a, self.b = [], [], []

    def _copy(self, end: int) -> None:
        block, first = self.block, self._copied
        block.reserve(end)
        for start in range(first, end, CHUNK):
            stop = min(end, start + CHUNK)
            memoryview(block.code)[start:stop] = bytes(self.op[start:stop])
            kind = f"{stop - start}i"
            struct.pack_into(kind, block.a, 4 * start, *self.a[start:stop])
            struct.pack_into(kind, block.b, 4 * start, *self.b[start:stop])
        values = block.values
        given, later = self._given, {}
        while given:  # others may add to it
            i, x = given.popitem()
            if i < end:
                values[i] = x
            else:
                later[i] = x
        given.update(later)
        for i in self._unread:
            if i < end:
                tape, row = self.foreign[i]
                values[i] = tape.block.values[row]
        self._unread = [i for i in self._unread if i >= end]
        self._copied = max(end, first)

    def row(self, i: int) -> tuple[int, int, int]:
        """The opcode and the operands of a row."""
        self.value(i)
        block = self.block
        return block.code[i], block.a[i], block.b[i]

    def leaf(self, i: int) -> Any:
        """The leaf of a row."""
        return self.trace.leaf(self.a[i]) if self.trace is not None else self.leaves[i]

    # -- gradients, under the lock ----------------------------------------------------------------
    def grad(self, i: int) -> float:
        """The gradient of a row, as the last backward pass through it left it."""
        if self.trace is not None:
            return self.trace.grad(i)
        grads = self.block.grads
        return grads[i] if i < len(grads) else 0.0

    def set_grad(self, i: int, g: float) -> None:
        if self.trace is not None:
            self.trace.set_grad(i, g)
        self.value(i)
        self.block.reserve_grads()
        self.block.grads[i] = g

    def begin(self) -> None:
        """Before a backward pass."""
        self.block.begin(self.block.epoch + 1)

    def seed(self, i: int, g: float) -> None:
        """Add to the cotangent of a row."""
        block = self.block
        if block.stamps[i] == block.epoch:
            block.grads[i] += g
            return
        block.stamps[i] = block.epoch
        block.grads[i] = g
        if block.code[i] < CUSTOM:
            block.reached[block.found] = i
            block.found += 1
        else:
            block.coming += 1

    def back(self, start: int, end: int) -> bool:
        """Go back from a row to another; whether there is more to do."""
        return machine()(self.block, start, end, 1) > 0

    def visited(self, i: int) -> bool:
        """Whether this row has a cotangent in this pass; an operation counts as done then."""
        if self.block.stamps[i] != self.block.epoch:
            return False
        self.block.coming -= 1
        return True

    def reached(self) -> list[tuple[int, float]]:
        """The given rows that the pass has come to, with their cotangents."""
        block = self.block
        grads = block.grads
        return [(i, grads[i]) for i in block.reached[: block.found]]

    def collect(self) -> list[tuple[ScalarTape, int, float]]:
        """Add to the gradients of leaves; the rows of other tapes that got a cotangent."""
        leaves, foreign = self.leaves, self.foreign
        out = []
        for i, g in self.reached():
            leaf = leaves.get(i)
            if leaf is not None:
                if type(leaf._data) is float and not TRACES:
                    leaf._grad += g
                else:
                    leaf.grad += g
            elif i in foreign:
                out.append((*foreign[i], g))
        return out

    def clear(self) -> None:
        """Make the gradient of all that the pass has come to zero."""
        block = self.block
        for i, stamp in enumerate(block.stamps):
            if stamp == block.epoch:
                block.grads[i] = 0.0

    # -- reclaiming, under the lock ---------------------------------------------------------------
    @contextmanager
    def keeping_gradients(self) -> Iterator[None]:
        """For a way back that is there to see where it comes to."""
        before = self.block.grads[:]
        yield
        grads = self.block.grads
        before.frombytes(bytes(8 * (len(grads) - len(before))))
        memoryview(grads)[:] = before

    def held(self, tapes: Sequence[ScalarTape]) -> dict[ScalarTape, set[int]] | None:
        """The rows of tapes that there are handles on; None if a handle is just being made."""
        found: dict[ScalarTape, set[int]] = {p: set() for p in tapes}
        for x in gc.get_referrers(*tapes):
            if isinstance(x, RowHandle) and x._tape in found:
                row = getattr(x, "_row", None)
                if row is None:
                    return None
                found[x._tape].add(row)
        return found

    def drop(self, rows: Sequence[int]) -> None:
        """Forget where foreign rows come from."""
        for r in rows:
            del self.foreign[r]
            if r < self._copied:
                self.block.code[r] = CONSTANT
            else:
                self.op[r] = CONSTANT
        self._unread = [r for r in self._unread if r in self.foreign]


def evaluate(tape: Any, i: int) -> None:
    """Compute the value of a row, and what it takes of other tapes, without recursion."""
    with LOCK:
        todo: list[tuple[Any, int]] = [(tape, tape.ahead(i))]
        while todo:
            tape, i = todo[-1]
            missing: Sequence[tuple[Any, int]] = tape.missing(i) if i >= tape.done else ()
            todo.extend(missing)
            if not missing:
                todo.pop()
                tape.advance(i)


HERE = threading.local()
NOWHERE = ScalarTape()  # where a leaf is that no open tape knows
NOWHERE.close()


def close_tapes() -> None:
    """Let no leaf be at home on a tape, and no operation go on on one."""
    with LOCK:
        for p in members(OPEN_TAPES):
            p.close()


def current_trace() -> Any:
    """What this thread traces, or None."""
    return getattr(HERE, "trace", None)


def set_current_tape(tape: Any) -> None:
    """Let this thread record on a tape."""
    HERE.__dict__[type(tape).__name__] = weakref.ref(tape)


def current_tape(make: Any = ScalarTape) -> Any:
    """The open tape of this thread for one of the recorders; only handles keep it."""
    tapes = HERE.__dict__
    known = tapes.get(make.__name__)
    tape = known() if known is not None else None
    if tape is None or tape.stamp != OPEN:
        tape = make()
        OPEN_TAPES.add(tape)
        tapes[make.__name__] = weakref.ref(tape)
    return tape
