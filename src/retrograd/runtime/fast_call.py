"""Repeated calls in C: from Python's arguments to Python's results in one function.

What a call takes and gives is described by steps (`Take`, `Put`), which `accelerate/fast_call.c`
follows. A `CallRoute` belongs to one structure of arguments and offers the function; its
`CallRecord`s are the programs for arrays of different shapes. Where no C compiler was found at
installation there is nothing of this: `serves` says no, and calls go the long way, in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

try:
    from retrograd.accelerate import _fast_call as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from retrograd.runtime.executable import SpecializedExecutable

SAME, TUPLE, LIST, DICT, TENSOR, ARRAY, FLOAT, INT, SCALAR = range(9)  # kinds of `Take`
CONSTANT, INSTANCE = 0, 4  # kinds of `Put`, with TUPLE, LIST, DICT

READABLE = 0x101  # flags of NumPy: C-contiguous and aligned
OWNED = 0x505  # also the owner of its memory, and writable
UNSHARED = 2  # references to an array that only its tensor has, while the call counts as one


class Missed:
    """What a call returns that C did not know what to do with, and did nothing."""


class Pending(tuple[Any, ...]):
    """What it returns where something is left to do: whose result it is, and the result; where the
    program is still to be run, also the addresses that it runs on, and the arrays there."""

    __slots__ = ()


MISSED: Any = Missed()
Array = np.ndarray[Any, Any]
Serve = Callable[[Any, Any, Any], Any]


class Take(NamedTuple):
    """A step that takes arguments apart: what is in a register has to be of this class, or this
    object; its `n` items go to the next free registers. Of a leaf, `gone` tells whether it is
    donated.
    """

    kind: int
    register: int
    what: Any
    n: int = 0
    gone: bool = False
    keys: tuple[Any, ...] = ()


class Put(NamedTuple):
    """A step that makes a part of the result, in the next register: of the contents of registers,
    under keys in a dict. `what` is a dict with the same keys, a class of tuples, or a constant."""

    kind: int
    what: Any
    items: Sequence[int] = ()
    keys: tuple[Any, ...] = ()


def serves(cls: type) -> bool:
    """Whether calls with tensors of this class can be served."""
    global _served
    if compiled is None:
        return False
    if _served is not cls:
        try:
            compiled.install(cls, MISSED)
        except TypeError:  # its fields are Python's, where its own accelerator is not used
            return False
        _served = cls
    return True


_served: type | None = None


def specs_of(
    types: Sequence[tuple[np.dtype[Any], Sequence[int]]], most: Mapping[int, int] | None = None
) -> Any:
    """Arrays as an `Entry` has to find them, None where there is no such thing.

    `most` limits the references to arrays that are to be overwritten, by position; these must also
    own their memory.
    """
    if compiled is None:
        return None
    rows: list[Any] = []
    for k, (dtype, shape) in enumerate(types):
        limit = None if most is None else most.get(k)
        rule = (READABLE, sys.maxsize) if limit is None else (OWNED, limit)
        rows.append((k, dtype, shape, *rule))
    return compiled.ArraySpecs(rows)


def is_unshared(arrays: list[Array], j: int) -> bool:
    """Whether an array may be overwritten, as an `Entry` asks: nothing but the list has it."""
    if sys.getrefcount(arrays[j]) > 2 or type(arrays[j]) is not np.ndarray:
        return False
    flags = arrays[j].flags
    return bool(flags.c_contiguous and flags.aligned and flags.owndata and flags.writeable)


def entry_of(frame: int, inputs: Any, outputs: Any, run: int) -> Any:
    """A program as it is run on lists of arrays: `enter(inputs, outputs)` is what it returns, or -1
    where an array is not as it has to be, and nothing was done. `run` is its address, or 0 if it is
    not to be run."""
    return None if compiled is None else compiled.Entry(inputs, outputs, frame, run)


class CallRecord:
    """A program at known sizes, as calls see it.

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

        listed = [(kind, what, tuple(map(place, items)), keys) for kind, what, items, keys in rows]
        made: list[Any] = []
        for k, (dtype, shape) in enumerate(shaped.outputs):
            donor = program.donated.get(k)
            made.append((dtype, -1, shape) if donor is None else (None, donor, ()))
        outputs = {j: k for k, j in program.donated.items()}
        gone = [(j, outputs.get(j, -1)) for j in donors]
        # No two calls use its frame at a time.
        self._kept = captured, None if later else shaped.frame_in_common()
        frame = self._kept[1]
        run = (0, 0) if frame is None else (program.address, frame.address)
        addresses = [a.ctypes.data for a in captured]
        self.native = compiled.CallRecord(
            given, addresses, made, listed, gone, first, place(root), *run
        )

    def arrange(self, vary: Collection[int]) -> None:
        """Have the arrays looked at in an order, those in `vary` first."""
        listed: list[Any] = []
        order = [j for j in range(self._given) if j not in self._numbers]
        for j in sorted(order, key=lambda j: j not in vary):
            rule = (OWNED, UNSHARED) if j in self._taken else (READABLE, sys.maxsize)
            listed.append((j, *self._inputs[j], *rule))
        self.native.arrange(compiled.ArraySpecs(listed))


class CallRoute:
    """Calls with arguments of one structure. `serve(args, kwargs, gone)` is the function in C: its
    result, or `MISSED`; donated tensors have `gone` in the place of their array afterwards."""

    def __init__(self, takes: Sequence[Take]) -> None:
        native = compiled.CallRoute(list(takes))
        self._offer = native.offer
        self.serve: Serve = native.serve
        self._records: list[CallRecord] = []

    def offer(self, records: Sequence[CallRecord]) -> None:
        """These programs are there from now on, and no others."""
        self._offer(tuple([record.native for record in records]))
        self._records = list(records)  # what they run on
