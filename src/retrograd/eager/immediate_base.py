"""The fields of calls that run at once, which C shares with Python: see `eager/immediate/`.

Where a C compiler was found at installation, `accelerate/immediate.c` has the classes of this file,
and serves calls whose kernels it knows.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from retrograd.accelerate import check
from retrograd.eager import fast_path

try:
    if fast_path.compiled is None:
        raise ImportError
    from retrograd.accelerate import _immediate as compiled

    check(compiled)
except ImportError:
    compiled = None  # type: ignore[assignment]

WORD = (1 << 64) - 1


class Run:
    """Operations that run at once, from the first to the gradient or look that ends them: of a
    `TraceSite`.

    `calls` counts them, `work` too, with their elements as nodes, `looked` is that at the last
    look; `what` is a hash of them. Listed are those that somebody holds, for who makes nodes of all
    that was computed.
    """

    __slots__ = (
        "__weakref__", "_made", "_prune", "calls", "looked", "offered", "site", "what", "work",
    )  # fmt: skip

    def __init__(self, site: Any) -> None:
        self.site = site
        self.calls = self.work = self.looked = self.what = 0
        self.offered: Any = None  # the kernel that was found for the call that C asks about
        self._made: list[weakref.ref[Any]] = []
        self._prune = 64

    def mix(self, x: int) -> None:
        """Have a number be part of what tells runs apart."""
        h = ((self.what ^ (x & WORD)) * 0x9E3779B97F4A7C15) & WORD
        self.what = h ^ (h >> 29)

    def enlist(self, call: Any) -> None:
        """List a call that was made; the run lives as long."""
        if len(self._made) >= self._prune:
            self._made = [ref for ref in self._made if ref() is not None]
            self._prune = 2 * len(self._made) + 64
        self._made.append(weakref.ref(call))
        call.run, call.position = self, self.calls

    def alive(self) -> list[Any]:
        """The calls that somebody holds, in order."""
        return [call for ref in self._made if (call := ref()) is not None]

    def forget(self) -> None:
        """List none of those made so far."""
        self._made = []


class CallBase:
    """The fields of a call that has run: see `immediate/function_call.py`."""

    __slots__ = (
        "__weakref__", "code", "edges", "freed", "given", "ints", "kernel", "lasti", "nodes",
        "number", "numbers", "position", "run", "scope",
    )  # fmt: skip


class OutputBase:
    """The fields of a result of a call: see `Output` in `grad_fn.py`."""

    __slots__ = ("_leaf", "array", "call", "freed", "index", "where")


class CallKernel:
    """The programs of a kind of calls, for C; here it only says which kind that is."""

    __slots__ = ("kind",)

    def __init__(self, kind: Any, *facts: Any) -> None:
        self.kind = kind

    def extend(self, reach: Any) -> None:
        """There are more results behind the outputs, from which a gradient goes to operands."""


if compiled is not None and not TYPE_CHECKING:
    Run, CallBase, OutputBase, CallKernel = (
        compiled.Run,
        compiled.CallBase,
        compiled.OutputBase,
        compiled.CallKernel,
    )
