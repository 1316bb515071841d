"""Sums hold what any order gives; places in an order are ranges."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

import retrograd as rg

Box, bounds = rg.verify.Box, rg.verify.bounds


def test_every_order_of_a_sum_is_inside():
    x = np.array([1e8, 1.0, -1e8, 0.25, 3.0], np.float32)
    low, high = bounds(rg.sum, x)
    exact = sum(Fraction(float(v)) for v in x)
    assert Fraction(float(low)) <= exact <= Fraction(float(high))
    for order in itertools.permutations(x):
        total = np.float32(0)
        for v in order:
            total = np.float32(total + v)
        assert low <= total <= high


def test_the_greatest_is_one_of_those_that_may_be():
    low, high = bounds(rg.argmax, Box([0.0, 2.0, 1.0, 5.0], [1.0, 4.0, 3.0, 6.0]))
    assert low == high == 3
    low, high = bounds(rg.argmax, Box([0.0, 2.0, 1.0, 0.0], [1.0, 4.0, 3.0, 1.0]))
    assert (low, high) == (1, 2)
