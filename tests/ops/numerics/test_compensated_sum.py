"""Errors of additions and products, kept, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from retrograd.ops.numerics import compensated_sum as cs

RNG = np.random.default_rng(0)
A, B = (RNG.standard_normal(50) * 10.0 ** RNG.integers(-9, 9, 50) for _ in range(2))


def exact(a, b):
    return Fraction(float(a)), Fraction(float(b))


def test_a_sum_and_what_it_rounds_off_is_exact():
    for a, b, total, rest in zip(A, B, *cs.two_sum(A, B), strict=True):
        assert sum(exact(a, b)) == sum(exact(total, rest))


def test_a_product_and_what_it_rounds_off_is_exact():
    for a, b, whole, rest in zip(A, B, *cs.two_product(A, B), strict=True):
        x, y = exact(a, b)
        assert x * y == sum(exact(whole, rest))


def test_running_sums_are_those_of_fractions():
    terms = np.concatenate([A, -A, [1e-9]])
    expected = [float(sum(map(Fraction, terms[: i + 1].tolist()))) for i in range(len(terms))]
    np.testing.assert_allclose(cs.cumulative(terms, 0), expected, rtol=1e-15, atol=1e-24)
    assert abs(np.cumsum(terms)[-1] - 1e-9) > 1e-12  # by plain additions it is far off
    z = terms + 1j * terms[::-1]
    np.testing.assert_array_equal(cs.cumulative(z[None], 1)[0].real, cs.cumulative(terms, 0))


def test_sums_that_are_not_finite_or_zero_stay():
    y = cs.settled(np.array([np.inf, np.nan, -0.0, 1.0]), np.array([np.nan, 0.0, 0.0, 2**-53]))
    np.testing.assert_array_equal(y, [np.inf, np.nan, 0, 1])
    assert np.signbit(y[2])
    with np.errstate(invalid="ignore"):
        endless = cs.cumulative(np.array([1.0, np.inf, 2.0]), 0)
    np.testing.assert_array_equal(endless, [1, np.inf, np.inf])
    assert cs.cumulative(np.zeros((0, 3)), 0).shape == (0, 3)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 33])
def test_running_values_as_a_tree(n):
    x = RNG.integers(-9, 9, (n, 2))
    np.testing.assert_array_equal(cs.by_halves(np.add, x), np.add.accumulate(x))
    np.testing.assert_array_equal(cs.by_halves(np.maximum, x), np.maximum.accumulate(x))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_scattered_updates_are_added_up(dtype, wide):
    rows = np.arange(6).reshape(3, 2).astype(dtype)
    places, updates = RNG.integers(0, 3, 90), RNG.integers(-9, 9, (90, 2)).astype(dtype)
    expected = rows.copy()
    np.add.at(expected, places, updates)
    cs.scattered(rows, places, updates, wide)
    np.testing.assert_array_equal(rows, expected)  # small integers are exact in any order


def test_many_updates_of_one_place_have_the_error_of_a_block():
    rows = np.zeros((1, 1), np.float32)
    cs.scattered(rows, np.zeros(100_000, np.int64), np.full((100_000, 1), np.float32(0.1)), False)
    np.testing.assert_allclose(rows[0, 0], 100_000 * float(np.float32(0.1)), rtol=16 * 6e-8)
