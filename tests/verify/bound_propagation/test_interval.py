"""Ends of intervals are moved outward, by enough and by little."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from retrograd.ir import DTYPES, float16, float32, float64, int32
from retrograd.verify.bound_propagation.interval import (
    Interval,
    computed,
    format_of,
    hull,
    meet,
    point,
    rounded,
    widened,
)

FLOATS = [d for d in DTYPES if d.is_float]


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_between_two_numbers_is_rounded_to_what_is_inside(dtype):
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=(200, 2)) * 10.0 ** rng.integers(-50, 50, (200, 1)), axis=1)
    found = rounded(x[:, 0], x[:, 1], dtype)
    for t in (0, 0.3, 1):
        exact = x[:, 0] * (1 - t) + x[:, 1] * t
        exact = np.clip(exact, x[:, 0], x[:, 1])
        with np.errstate(all="ignore"):
            own = exact.astype(np.float32 if dtype.is_half else dtype.dtype).astype(dtype.dtype)
        for y in (
            exact,
            own.astype(np.float64),
            np.where(abs(exact) < format_of(dtype).tiny, 0, exact),
        ):
            assert (found.lower <= y).all()
            assert (y <= found.upper).all()


def test_signs_and_zeros_remain():
    found = widened(np.array([0.0, 1e-45, -1e-45]), np.array([1.0, 1.0, 0.0]), float32, 16)
    assert found.lower[0] == 0
    assert found.lower[1] == 0
    assert found.upper[2] == 0
    assert computed(2.0, 2.0, float64).lower == np.nextafter(2, 0)


def test_overflow_is_infinite_beside_the_exact_value():
    found = rounded(np.array([1e5]), np.array([1e5]), float16)
    assert found.lower == 1e5
    assert found.upper == math.inf
    found = widened(np.array([math.inf]), np.array([math.inf]), float32, 4)
    assert 1e308 < found.lower[0] < math.inf
    assert found.upper == math.inf


def test_integers_that_float64_lacks_lie_between_neighbours():
    x = np.array([2**53 + 1, -(2**62) - 3, 7], np.int64)
    found = point(x)
    for low, high, n in zip(found.lower, found.upper, x, strict=True):
        assert Fraction(low) <= int(n) <= Fraction(high)
    assert found.lower[2] == found.upper[2] == 7
    assert point(np.array([1, 2], np.int32)).is_point
    assert not found.is_point
    assert rounded(np.array([1.5]), np.array([1.5]), int32).lower == 1.5


def test_unions_and_sections():
    a, b = (
        Interval(np.array([0.0]), np.array([2.0])),
        Interval(np.array([1.0]), np.array([3.0]), True),
    )
    assert hull(a, b).lower == 0
    assert hull(a, b).upper == 3
    assert hull(a, b).nan
    assert meet(a, b).lower == 1
    assert meet(a, b).upper == 2
    assert meet(a, b).nan is False
