"""Numbers below the smallest normal one: exact, which many processors are slow at, or zero.

That is a mode of the thread's arithmetic unit. Native code, NumPy and BLAS all obey it, and workers
take it over from the thread that they work for.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

from retrograd.errors import BackendError
from retrograd.shared import IMPORTING

_used = False  # whether any thread ever left the usual mode


def flushes(machine: str = platform.machine()) -> bool:
    """Whether a kind of processor can flush them."""
    return machine.lower() in ("x86_64", "amd64", "aarch64", "arm64")


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
