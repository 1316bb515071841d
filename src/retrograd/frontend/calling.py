"""Calls of compiled functions: from arguments to results by the shortest way.

A call that is like an earlier one (the same structure of arguments, the same kinds of leaves, the
same shapes) needs no look at types or signatures: its *site* has a function that finds the arrays
(`walking.py`), and for their shapes the program, which compares the arrays with what it was made
for in native code. Where anything is different, nothing was done, and `jit` goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.backends import Array, LLVMProgram, Program, Wrap, wrapper
from retrograd.frontend import tree
from retrograd.frontend.ready import Gone, ready, strip
from retrograd.frontend.recording import Lazy
from retrograd.frontend.signature import Static
from retrograd.frontend.walking import Gather, builder

SHAPES = 128  # combinations of shapes that a site tells apart

COMPUTED = object()  # stands for a result that is computed


class Call:
    """Arguments of one call, taken apart."""

    __slots__ = ("arrays", "donated", "keys", "leaves", "structure")

    def __init__(self, arguments: Any) -> None:
        self.leaves, self.structure = tree.flatten(arguments)
        self.keys: list[Any] = []  # of the leaves: what a program depends on
        self.donated = [False] * len(self.leaves)
        self.arrays: list[Array] = []  # of the leaves that are not `Static`

    @property
    def donors(self) -> list[tuple[int, Any]]:
        """Donated leaves, with the numbers of their arrays."""
        given = [
            (x, gone)
            for x, key, gone in zip(self.leaves, self.keys, self.donated, strict=True)
            if not isinstance(key, Static)
        ]
        return [(i, x) for i, (x, gone) in enumerate(given) if gone]


_WRAPS: dict[int, Wrap | None] = {}  # by the address of the code


def wrap_of(program: Program) -> Wrap | None:
    """What makes tensors of arrays natively, where there is such a thing."""
    address = program.wrap if isinstance(program, LLVMProgram) else 0
    if address and address not in _WRAPS:
        _WRAPS[address] = wrapper(address, Lazy.handle_class, "_ready")
    return _WRAPS.get(address)


class Traced:
    """One compiled signature: program, what it takes from around it, structure of the result."""

    def __init__(
        self,
        program: Program,
        captured: Sequence[Any],
        structure: Any,
        fixed: Sequence[Any],
    ) -> None:
        self.program = program
        self.captured = list(captured)  # arrays, or handles on leaves, whose value may be replaced
        self.needs_grad = any(isinstance(c, Lazy) for c in captured)
        # `fixed`: results that are no tensors, by position; others are computed.
        self.build = builder(structure, fixed, COMPUTED, wrap_of(program))

    def run(self, call: Call, gone: Gone) -> Any:
        """The result of a call, whose donated tensors are gone afterwards, unless it fails."""
        arrays = call.arrays
        arrays += [c.value() if isinstance(c, Lazy) else c for c in self.captured]
        handles = hand_over(call, gone)
        try:
            if isinstance(self.program, LLVMProgram):
                results = self.program.consume(arrays)
            else:
                results = self.program(arrays)
        except BaseException:
            if arrays:  # not interrupted too late, see `LLVMProgram.enter`
                for i, h in handles:
                    h._ready = arrays[i]
            raise
        return self.build(results)


def hand_over(call: Call, gone: Gone) -> list[tuple[int, Lazy]]:
    """Make donated tensors gone, so that nothing but the call has their arrays. Tensors that may
    want a gradient stay, and what is no tensor is the user's: the call gets a copy."""
    handles = []
    for i, x in call.donors:
        if not isinstance(x, Lazy):
            call.arrays[i] = np.array(call.arrays[i])
        elif ready(x):
            handles.append((i, x))
    for _, h in handles:
        strip(h)
        h._ready = gone
    return handles


class Entry:
    """A program at known sizes, ready to be called.

    `donors` are positions of donated arrays, in the order of their handles; `loose` are those of
    the handles whose memory the program takes for nothing.
    """

    __slots__ = ("build", "captured", "donors", "loose", "quick")

    def __init__(
        self, traced: Traced, quick: Callable[[list[Array]], list[Array] | None],
        donors: Sequence[int],
    ) -> None:  # fmt: skip
        program = traced.program
        taken = program.donated.values() if isinstance(program, LLVMProgram) else ()
        self.quick = quick
        self.captured = traced.captured
        self.build = traced.build
        self.donors = donors
        self.loose = [k for k, i in enumerate(donors) if i not in taken]

    def consume(self, arrays: list[Array], handles: Sequence[Lazy], gone: Gone) -> Any:
        """`quick` with donated tensors, which are gone afterwards, unless it fails.

        They are gone before it runs: only then nobody else can come by the arrays.
        """
        for h in handles:
            h._ready = gone
        try:
            results = self.quick(arrays)
        except BaseException:
            if arrays:  # not interrupted too late, see `LLVMProgram.enter`
                self._restore(arrays, handles)
            raise
        if results is None:
            self._restore(arrays, handles)
            return None
        for k in self.loose:
            strip(handles[k])
        return results

    def _restore(self, arrays: list[Array], handles: Sequence[Lazy]) -> None:
        for h, i in zip(handles, self.donors, strict=True):
            h._ready = arrays[i]


class Site:
    """Calls with arguments of one structure and kinds of leaves, on one backend.

    Their programs are told apart by the shapes of the arrays that differ, `vary`.
    """

    __slots__ = ("_known", "backend", "donors", "entries", "gather", "vary")

    def __init__(self, gather: Gather, backend: str, donors: Sequence[int]) -> None:
        self.gather = gather
        self.backend = backend
        self.donors = donors  # positions of donated arrays that are tensors'
        self.vary: tuple[int, ...] = ()
        self.entries: dict[tuple[Any, ...], Entry] = {}
        self._known: dict[tuple[Any, ...], Entry] = {}  # by all shapes

    def learn(self, traced: Traced, call: Call) -> None:
        """Remember the program of a call."""
        program = traced.program
        if not isinstance(program, LLVMProgram):
            return
        shapes = tuple([a.shape for a in call.arrays])
        known = self._known.get(shapes)
        if known is not None and known.build is traced.build:
            return
        shaped = program.shaped_for([*call.arrays, *traced.captured])
        if not shaped.plain:
            return
        if len(self._known) >= SHAPES:
            self._known = {}
        self._known[shapes] = Entry(traced, shaped.quick, self.donors)
        columns = [set(c) for c in zip(*self._known, strict=True)]
        vary = tuple([i for i, c in enumerate(columns) if len(c) > 1])
        entries = {tuple([s[i] for i in vary]): e for s, e in self._known.items()}
        # Other threads may be looking: what does not fit together is found not to fit.
        self.entries, self.vary = entries, vary
