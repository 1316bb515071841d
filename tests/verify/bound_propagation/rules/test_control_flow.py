"""Branches that may go both ways, loops of which it is not known when they end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

Box, bounds = rg.verify.Box, rg.verify.bounds


def test_loops_and_branches():
    def halved(x: Any) -> Any:
        return rg.while_loop(lambda x: x > 1.0, lambda x: x / 2, x)

    low, high = bounds(halved, Box(np.float32(3.0), np.float32(5.0)))
    assert 0.3 <= low <= 0.75
    assert 1.0 <= high <= 1.25 + 1e-5

    def branch(x: Any) -> Any:
        return rg.cond(x > 0, lambda x: x + 10, lambda x: x - 10, x)

    low, high = bounds(branch, Box(np.float32(-1), np.float32(2)))
    assert low == pytest.approx(-11)
    assert high == pytest.approx(12)
    low, high = bounds(branch, Box(np.float32(1), np.float32(2)))
    assert low == pytest.approx(11)
    assert high == pytest.approx(12)


def test_a_loop_that_may_never_end_comes_to_rest():
    def grows(x: Any) -> Any:
        return rg.while_loop(lambda x: x < 100.0, lambda x: x * 1.0, x)

    low, high = bounds(grows, Box(np.float32(50), np.float32(150)))
    assert low <= 100
    assert high >= 150
