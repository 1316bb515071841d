"""Repeated calls in native code: from Python's arguments to Python's results in one function.

What a call takes and gives is described by rows of words (`Words`), which the native code follows
(`runtime/native/call_arguments.py`, `runtime/native/call_results.py`); so there is one piece of
code for all functions, compiled once. A `CallRoute` belongs to one structure of arguments and
offers the native function; its `CallRecord`s are the programs for arrays of different shapes.
Callers come from `runtime/native/call_trial.py`, which tries the code out before anybody may use
it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from retrograd.runtime.native.entry import OWNED, READABLE

if TYPE_CHECKING:
    from retrograd.runtime.executable import SpecializedExecutable

SAME, TUPLE, LIST, DICT, TENSOR, ARRAY, FLOAT, INT, SCALAR = range(9)  # kinds of `Take`
CONSTANT, INSTANCE = 0, 4  # kinds of `Put`, with TUPLE, LIST, DICT

UNSHARED = 2  # references to an array that only its tensor has, while the call counts as one


class Missed:
    """What a native call returns that did not know what to do, and did nothing."""


class Pending(tuple[Any, ...]):
    """What it returns where something is left to do: whose result it is, and the result; where the
    program is still to be run, also the addresses that it runs on, and the arrays there."""

    __slots__ = ()


MISSED: Any = Missed()
Array = np.ndarray[Any, Any]
Serve = Callable[[Any, Any, Any], Any]


class Take(NamedTuple):
    """A step that takes arguments apart: what is in a register has to be of this class, or this
    object; its items go to the next free registers. Of a leaf, `n` tells whether it is donated.
    """

    kind: int
    register: int
    what: Any
    n: int = 0
    keys: Sequence[Any] = ()


class Put(NamedTuple):
    """A step that makes a part of the result, in the next register: of the contents of registers,
    under keys in a dict. `what` is a dict with the same keys, a class of tuples, or a constant."""

    kind: int
    what: Any
    items: Sequence[int] = ()
    keys: Sequence[Any] = ()


class Words:
    """Makes rows of words, and keeps what they refer to."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def ref(self, x: object) -> int:
        """The address of an object."""
        self._kept.append(x)
        return id(x)

    def array(self, words: Sequence[int]) -> Array:
        """A row of words."""
        a = np.array([*words, 0], np.int64)
        self._kept.append(a)
        return a

    def row(self, words: Sequence[int]) -> int:
        """The address of a row of words."""
        return int(self.array(words).ctypes.data)

    def refs(self, objects: Sequence[object]) -> int:
        """The address of a row of objects."""
        return self.row([self.ref(x) for x in objects])


class Caller:
    """The native code, for tensors of one class: those have an array in a slot, and nothing in the
    slot `form` if they are no more than that."""

    def __init__(self, address: int, cls: type, slot: int, form: int) -> None:
        self._words = w = Words()
        self.cls = cls
        self.world = w.row([
            id(np.ndarray), id(str), w.ref(cls), slot // 8, form // 8, id(None), w.ref(MISSED),
        ])  # fmt: skip
        # What the interpreter keeps a function as: name, address, METH_FASTCALL, no documentation.
        name = w.row([int.from_bytes(b"serve", "little")])
        self._record = w.row([name, address, 0x80, 0])

    def function(self, words: Array) -> Serve:
        """A function that follows these words."""
        kind = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
        )
        make = kind(("PyCFunction_NewEx", ctypes.pythonapi))
        made: Serve = make(self._record, words, None)
        return made


class CallRecord:
    """A program at known sizes, as native calls see it.

    `numbers` are inputs that come as numbers and not as arrays, `donors` those that are donated,
    `captured` the last inputs, which no call brings. `puts` make the result of the outputs, which
    are in the first registers; it is in the register `root`. For programs that are not to be run at
    once, and where `owner` has more to do (`unfinished`), the result is a `Pending`.
    """

    def __init__(
        self, shaped: SpecializedExecutable, numbers: Collection[int], donors: Sequence[int],
        captured: Sequence[Array], puts: Sequence[Put], root: int, owner: object,
        unfinished: bool,
    ) -> None:  # fmt: skip
        self._words = w = Words()
        program, m = shaped.program, len(shaped.outputs)
        self._numbers, self._inputs = numbers, shaped.inputs
        self._given = given = len(shaped.inputs) - len(captured)
        self._taken = set(program.donated.values())
        later = not shaped.at_once
        first, rows = m + 2 * later, list(puts)  # two registers for addresses and arrays
        if later or unfinished:
            own = m + len(puts)
            left = (own, root, -2, -1) if later else (own, root)
            rows += [Put(CONSTANT, owner), Put(INSTANCE, Pending, left)]
            root = own + 1

        def place(r: int) -> int:
            return r + first if r < 0 else r + first - m if r >= m else r

        listed: list[int] = []
        for put in rows:
            keys = [w.ref(k) for k in put.keys] or [0] * len(put.items)
            pairs = [x for r, k in zip(put.items, keys, strict=True) for x in (place(r), k)]
            listed += [put.kind, len(put.items), w.ref(put.what), w.row(pairs)]
        made: list[int] = []
        for k, (dtype, shape) in enumerate(shaped.outputs):
            if k in program.donated:
                made += [0, program.donated[k], 0]
            else:
                made += [w.ref(dtype), len(shape), w.row(shape)]
        outputs = {j: k for k, j in program.donated.items()}
        gone = [x for j in donors for x in (j, outputs.get(j, -1))]
        run = [0, 0, 0]
        if not later:
            frame = shaped.frame_in_common()  # no two calls use it at a time
            self._words.ref(frame)
            run = [program.address, frame.address, w.row([0] * given)]
        size = 8 * (given + len(captured) + m + given)
        addresses = [int(a.ctypes.data) for a in captured]
        w.refs(captured)
        self.words = w.array([
            0, 0, w.row(addresses), len(captured), w.row(made), m, w.row(listed), len(rows), first,
            w.row(gone), len(donors), *run, first + len(rows), size, place(root),
        ])  # fmt: skip
        self.address = int(self.words.ctypes.data)

    def arrange(self, vary: Collection[int]) -> None:
        """Have the arrays looked at in an order, those in `vary` first."""
        w, listed = Words(), list[int]()
        order = [j for j in range(self._given) if j not in self._numbers]
        for j in sorted(order, key=lambda j: j not in vary):
            dtype, shape = self._inputs[j]
            rule = (OWNED, UNSHARED) if j in self._taken else (READABLE, sys.maxsize)
            listed += [j, w.ref(dtype), len(shape), *rule, w.row(shape)]
        self.words[:2] = w.row(listed), len(order)
        self._records = w


class CallRoute:
    """Calls with arguments of one structure. `serve(args, kwargs, gone)` is the native function:
    its result, or `MISSED`; donated tensors have `gone` in the place of their array afterwards."""

    def __init__(self, caller: Caller, takes: Sequence[Take]) -> None:
        self._words = w = Words()
        self._ways: list[CallRecord] = []
        steps: list[int] = []
        room, leaves = 2, 0
        for t in takes:
            keys = w.refs(t.keys) if t.keys else 0
            steps += [t.kind, t.register, w.ref(t.what), t.n, keys]
            leaves += t.kind >= TENSOR
            room += t.n if t.kind in (TUPLE, LIST, DICT) else 0
        w.ref(caller)
        self._row = w.array([caller.world, w.row([0]), w.row(steps), len(takes), room, leaves])
        self.serve = caller.function(self._row)

    def offer(self, ways: Sequence[CallRecord]) -> None:
        """These programs are there from now on, and no others."""
        table = Words()
        at = table.row([len(ways), *[way.address for way in ways]])
        # No native call is on its way while Python runs, so what it used may go.
        self._row[1] = at
        self._ways, self._table = list(ways), table
