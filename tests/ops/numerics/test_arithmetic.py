"""What NumPy's functions leave open: zeros of two signs, NaN, shifts, integers that wrap."""

import math

import numpy as np
import pytest

from retrograd.ops.numerics import arithmetic as num

INF, NAN = math.inf, math.nan


def test_zeros_have_signs_in_max_and_min():
    a, b = np.array([0.0, -0.0, -0.0, 0.0]), np.array([-0.0, 0.0, -0.0, 0.0])
    assert np.signbit(num.max(a, b)).tolist() == [False, False, True, False]
    assert np.signbit(num.min(a, b)).tolist() == [True, True, True, False]
    odd = np.array([NAN, 1.0, -INF]), np.array([1.0, NAN, INF])
    np.testing.assert_array_equal(num.max(*odd), [NAN, NAN, INF])
    np.testing.assert_array_equal(num.min(*odd), [NAN, NAN, -INF])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nextafter_of_equal_numbers_is_the_second(dtype):
    y = num.nextafter(np.array([0.0, -0.0, 1.0], dtype), np.array([-0.0, 0.0, 2.0], dtype))
    assert np.signbit(y).tolist() == [True, False, False]
    assert y[2] == 1 + np.finfo(dtype).eps


def test_division_agrees_with_python():
    a, b = np.meshgrid(np.arange(-7, 8), [-3, -2, -1, 1, 2, 3])
    assert num.floor_div(a, b).tolist() == [
        [x // y for x, y in zip(*r, strict=True)] for r in zip(a.tolist(), b.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(num.floor_div(a, b) * b + num.mod(a, b), a)
    low = np.array([-128, 5], np.int8)
    assert num.floor_div(low, np.array([-1, 0], np.int8)).tolist() == [-128, 0]
    assert num.mod(low, np.array([-1, 0], np.int8)).tolist() == [0, 5]


def test_powers_of_integers_with_negative_exponents_are_zero():
    assert num.pow(np.array([2, 3]), np.array([-1, 4])).tolist() == [0, 81]


def test_expm1_at_complex_infinity():
    """exp(-inf + iy) is 0, whatever y is; near 0 no digits are lost."""
    np.testing.assert_array_equal(num.expm1(np.array([complex(-INF, 1.0)])), [-1])
    np.testing.assert_allclose(num.expm1(np.array([1e-12j])), [1e-12j - 5e-25], rtol=1e-15)


def test_sigmoid_does_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        y = num.sigmoid(np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0]))
    np.testing.assert_allclose(y, [0, 1 / (1 + math.e), 0.5, math.e / (1 + math.e), 1], rtol=1e-15)


def test_shifts_by_the_width_move_all_bits_out():
    a, by = np.array([-3, 3, -3, 3], np.int8), np.array([8, 8, -1, 1], np.int8)
    assert num.shift_left(a, by).tolist() == [0, 0, 0, 6]
    assert num.shift_right(a, by).tolist() == [-1, 0, -1, 1]


def test_each_computes_in_double_precision():
    x = np.array([[0.5, 2.0]], np.float32)
    y = num.each(math.erf)(x)
    assert y.dtype == np.float32
    assert y.tolist() == [[np.float32(math.erf(0.5)), np.float32(math.erf(2.0))]]
