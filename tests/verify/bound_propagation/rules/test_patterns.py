"""What several nodes compute together is as tight as it can be."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

Box, bounds = rg.verify.Box, rg.verify.bounds


def test_patterns_are_tighter_than_their_parts():
    box = Box([0.0, 1.0, -1.0], [0.5, 1.5, 0.0])
    low, _ = bounds(rg.softmax, box)
    corner = np.exp([0.0, 1.5, 0.0]) / np.exp([0.0, 1.5, 0.0]).sum()
    assert low[0] == pytest.approx(corner[0], rel=1e-4)  # the least of the first: exact
    logs = bounds(rg.log_softmax, box)
    assert np.exp(logs.lower[0]) == pytest.approx(corner[0], rel=1e-4)
    centred = bounds(lambda x: x - rg.mean(x, -1, keepdims=True), box)
    assert centred.lower[0] == pytest.approx(0 - (0 + 1.5 + 0) / 3, abs=1e-5)
    norm = bounds(rg.linalg.vector_norm, Box([3.0, -1.0], [3.0, 4.0]))
    assert norm.lower == pytest.approx(3, rel=2e-5)  # what backends may round
    assert norm.upper == pytest.approx(5, rel=2e-5)  # what backends may round
