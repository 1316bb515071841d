"""Numbers below the smallest normal one: exact, which many processors are slow at, or zero.

That is a mode of the thread's arithmetic unit. Native code, NumPy and BLAS all obey it, and workers
take it over from the thread that they work for.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from retrograd.errors import BackendError
from retrograd.shared import IMPORTING
from retrograd.tuning import TUNING

NEVER = sys.maxsize  # calls
_used = False  # whether any thread ever left the usual mode


class SubnormalCount:
    """The calls of a program in which it met any, and with how many the next is looked into, see
    `subnormal_watch.py`. Native code counts, and makes no call alone that is to be looked into."""

    __slots__ = ("_counts", "address")

    def __init__(self, on: bool = True) -> None:
        self._counts = np.array([0, TUNING.subnormal_calls if on else NEVER], np.int64)
        self.address = self._counts.ctypes.data

    @property
    def calls(self) -> int:
        return int(self._counts[0])

    def wait(self, calls: int, due: int) -> None:
        """So many were made; have the call be looked into that comes after so many."""
        self._counts[:] = calls, due

    @property
    def is_due(self) -> bool:
        """Whether the next call is to be looked into."""
        return bool(self._counts[0] >= self._counts[1])


def flushes(machine: str = platform.machine()) -> bool:
    """Whether a kind of processor can flush them."""
    return machine.lower() in ("x86_64", "amd64", "aarch64", "arm64")


def tells(machine: str = platform.machine()) -> bool:
    """Whether a kind of processor tells, of operations that do not flush them, that one was met."""
    return machine.lower() in ("x86_64", "amd64")


def flush_subnormals(on: bool) -> bool:
    """Have this thread flush them, or not; whether it did so before."""
    with IMPORTING:
        from retrograd.runtime.compiler import engine

    global _used
    if not flushes():
        raise BackendError("subnormal numbers cannot be flushed on this kind of processor")
    _used = _used or on
    return bool(engine().team.flush(on))


def may_flush() -> bool:
    """Whether some thread may flush them."""
    return _used


@contextmanager
def exactly() -> Iterator[None]:
    """Compute as usual inside the block: what is compiled must not depend on the mode."""
    if not _used:
        yield
        return
    before = flush_subnormals(False)
    try:
        yield
    finally:
        flush_subnormals(before)
