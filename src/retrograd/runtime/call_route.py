"""Calls of programs in C: which programs serve arguments of one structure.

A `CallRoute` belongs to one structure of arguments and offers the function; its `CallRecord`s are
the programs for arrays of different shapes. What the steps of a call are says `fast_call.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from retrograd.runtime import fast_call
from retrograd.runtime.executable import SpecializedExecutable
from retrograd.runtime.fast_call import (
    CONSTANT,
    INSTANCE,
    OWNED,
    READABLE,
    UNSHARED,
    Array,
    OutputClass,
    Pending,
    Put,
    Serve,
    Take,
)


class CallRecord:
    """A program at known sizes, as calls see it.

    `numbers` are inputs that come as numbers and not as arrays, `donors` those that are donated,
    `captured` the last inputs, which no call brings. `puts` make the result of the outputs, which
    are in the first registers; it is in the register `root`. For programs that are not to be run at
    once, and where `owner` has more to do (`unfinished`), the result is a `Pending`. `classes` are
    those of outputs that are not just tensors.
    """

    def __init__(
        self, shaped: SpecializedExecutable, numbers: Collection[int], donors: Sequence[int],
        captured: Sequence[Array], puts: Sequence[Put], root: int, owner: object,
        unfinished: bool, classes: Mapping[int, OutputClass],
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
            own_class = classes.get(k, ())
            row = (dtype, -1, shape) if donor is None else (None, donor, ())
            made.append((*row, *own_class))
        outputs = {j: k for k, j in program.donated.items()}
        gone = [(j, outputs.get(j, -1)) for j in donors]
        # No two calls use its frame at a time.
        self._kept = captured, None if later else shaped.frame_in_common(), program.subnormals
        frame = self._kept[1]
        watch = program.subnormals.address
        run = (0, 0, 0) if frame is None else (program.address, frame.address, watch)
        addresses = [a.ctypes.data for a in captured]
        self.native = fast_call.compiled.CallRecord(
            given, addresses, made, listed, gone, first, place(root), *run
        )

    def arrange(self, vary: Collection[int]) -> None:
        """Have the arrays looked at in an order, those in `vary` first."""
        listed: list[Any] = []
        order = [j for j in range(self._given) if j not in self._numbers]
        for j in sorted(order, key=lambda j: j not in vary):
            rule = (OWNED, UNSHARED) if j in self._taken else (READABLE, sys.maxsize)
            listed.append((j, *self._inputs[j], *rule))
        self.native.arrange(fast_call.compiled.ArraySpecs(listed))


class CallRoute:
    """Calls with arguments of one structure. `serve(args, kwargs, gone, untracked)` is the
    function in C: its result, or `MISSED`; donated tensors have `gone` in the place of their array
    afterwards, and `untracked` calls, in which gradients are off, take tensors that require
    them."""

    def __init__(self, takes: Sequence[Take]) -> None:
        native = fast_call.compiled.CallRoute(list(takes))
        self._offer = native.offer
        self.serve: Serve = native.serve
        self._records: list[CallRecord] = []

    def offer(self, records: Sequence[CallRecord]) -> None:
        """These programs are there from now on, and no others."""
        self._offer(tuple([record.native for record in records]))
        self._records = list(records)  # what they run on
