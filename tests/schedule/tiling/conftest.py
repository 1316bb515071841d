"""Settings under which the smallest of work is cut."""

from __future__ import annotations

import pytest

from retrograd.schedule import cost_model
from retrograd.schedule.tiling import groups, remat
from tests.runtime.fuzz_checks import gather_threads


@pytest.fixture
def tiny(monkeypatch):
    """Have the smallest of work cut in many blocks, on many threads."""
    gather_threads()
    for name, value in (("GRAIN", 0), ("LEAST_ROWS", 2), ("PRODUCT_ROWS", 1), ("ROW", 64)):
        monkeypatch.setattr(groups, name, value)
    monkeypatch.setattr(cost_model, "FAR", 64)
    monkeypatch.setattr(remat, "WORTH", 1e6)
    monkeypatch.setattr(remat, "GAIN", 0)
    return monkeypatch
