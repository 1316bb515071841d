"""Settings under which the smallest of work is cut."""

from __future__ import annotations

import pytest

from retrograd.tuning import TUNING
from tests.runtime.fuzz_checks import gather_threads


@pytest.fixture
def tiny(monkeypatch):
    """Have the smallest of work cut in many blocks, on many threads."""
    gather_threads()
    for name, value in (
        ("parallel_grain_ns", 0),
        ("group_rows", 2),
        ("gemm_tile_rows", 1),
        ("row_split_bytes", 64),
    ):
        monkeypatch.setattr(TUNING, name, value)
    monkeypatch.setattr(TUNING, "uncached_bytes", 64)
    monkeypatch.setattr(TUNING, "remat_time_ratio", 1e6)
    monkeypatch.setattr(TUNING, "remat_memory_ratio", 0)
    return monkeypatch
