"""Recordings that are cut after few operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from retrograd.eager import (
    segments,
    trace_buffer,
)
from retrograd.eager.trace_cache import SITES


@contextmanager
def cut_after(n: int) -> Iterator[list[int]]:
    """Cut recordings after so many operations; the lengths of those that were cut."""
    found: list[int] = []
    real = segments.split

    def watched(p: trace_buffer.TraceBuffer, operands: Any) -> bool:
        found.append(p.made())
        return real(p, operands)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_buffer, "FULL", n)
        patch.setattr(segments, "LONGEST", n)
        patch.setattr(segments, "split", watched)
        SITES.clear()
        trace_buffer.CURRENT.buffer.close()
        yield found
    SITES.clear()


def never() -> Any:
    """All in one program."""
    return cut_after(10**6)


def same(a: Any, b: Any) -> None:
    """Equal to the bit."""
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            assert x.tobytes() == y.tobytes()
