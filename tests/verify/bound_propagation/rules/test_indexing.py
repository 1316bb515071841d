"""Positions that are not known: what is read is one of a range, what is written may be or not."""

from __future__ import annotations

import numpy as np

import retrograd as rg

Box, bounds = rg.verify.Box, rg.verify.bounds
X = np.array([5.0, 1.0, 7.0, 2.0], np.float32)


def test_what_is_read_is_one_of_a_range():
    low, high = bounds(lambda x, i: rg.take(x, i), X, Box([0, -1, 3], [1, -1, 3]))
    assert low.tolist() == [1, 2, 2]
    assert high.tolist() == [5, 2, 2]


def test_a_gradient_goes_to_what_may_be_the_greatest():
    slopes = bounds(rg.grad(lambda x: rg.sort(x)[-1]), Box(X - 1, X + 1.5))
    assert slopes.lower.tolist() == [0, 0, 0, 0]
    assert slopes.upper[0] >= 1
    assert slopes.upper[2] >= 1
    assert slopes.upper[3] == 0  # beyond the range of what may be it
