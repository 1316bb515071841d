"""Comparisons, bits and casts are exact: NumPy on all boxes of a lattice gives the very ends."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd.ops.elementwise as el
from retrograd.ir import bool_, complex64, float16, float32, float64, int8, int32, int64, uint8
from retrograd.ops.elementwise import Cast
from tests.verify.bound_propagation.lattices import (
    assert_holds,
    assert_tight,
    boxes,
    found,
    found_of,
    found_of_same,
    interval,
    ranges,
    rectangle,
)

INF = np.inf
REAL = [-INF, -1.5, -1.0, 0.0, 1.0, 2.0, INF]
COMPARED = [
    (el.lt, np.less), (el.le, np.less_equal), (el.gt, np.greater), (el.ge, np.greater_equal),
    (el.eq, np.equal), (el.ne, np.not_equal), (el.max, np.maximum), (el.min, np.minimum),
]  # fmt: skip
BITS = [(el.bitwise_and, np.bitwise_and), (el.bitwise_or, np.bitwise_or),
        (el.bitwise_xor, np.bitwise_xor)]  # fmt: skip
UNSURE = np.array([True])


@pytest.mark.parametrize(("op", "exact"), COMPARED, ids=lambda x: getattr(x, "name", ""))
def test_comparisons_are_exact(op, exact):
    y, true = found(op, float32, *boxes(REAL, REAL)), ranges(exact, float32, REAL, REAL)
    assert_holds(y, true)
    assert_tight(y, true, 0)


def test_nan_is_not_less_and_not_equal():
    x, one = interval([1.0], [1.0], UNSURE), interval([1.0], [1.0])
    for op in (el.le, el.ge, el.eq):
        y = found(op, float32, x, one)
        assert (y.lower, y.upper) == (0, 1)
        y = found_of_same(op, float32, x)
        assert (y.lower, y.upper) == (0, 1)
        assert found_of_same(op, float32, one).lower == 1
    assert found_of_same(el.lt, float32, x).upper == 0
    assert found_of_same(el.ne, float32, one).upper == 0
    assert found(el.isnan, float32, one).upper == 0
    assert found(el.isnan, float32, x).upper == 1
    assert found(el.isfinite, float32, x).lower == 0
    assert found(el.relu, float32, x).nan.all()
    z = rectangle([1 + 1j], [1 + 2j])
    assert found(el.eq, complex64, z, rectangle([1 + 3j], [1 + 3j])).upper == 0
    assert found(el.eq, complex64, z, rectangle([1 + 1j], [1 + 1j])).lower == 0


def test_of_one_number():
    for op, exact in (
        (el.isinf, np.isinf),
        (el.isfinite, np.isfinite),
        (el.relu, lambda x: np.maximum(x, 0)),
    ):
        y, true = found(op, float32, *boxes(REAL)), ranges(exact, float32, REAL)
        assert_holds(y, true)
        assert_tight(y, true, 0)
    y = found(el.signbit, float32, interval([-2.0, 0.0, 1.0], [-1.0, 0.0, 2.0]))
    assert y.lower.tolist() == [1, 0, 0]  # a zero may have either sign
    assert y.upper.tolist() == [1, 1, 0]


def test_select_takes_what_may_be_chosen():
    a = interval([0.0] * 3, [1.0] * 3, np.array([True] * 3))
    b = interval([5.0] * 3, [6.0] * 3)
    c = interval([1.0, 0.0, 0.0], [1.0, 0.0, 1.0])
    y = found_of([bool_, float32, float32], el.select, c, a, b)
    assert y.lower.tolist() == [0, 5, 0]
    assert y.upper.tolist() == [1, 6, 6]
    assert y.nan.tolist() == [True, False, True]


@pytest.mark.parametrize(("op", "exact"), BITS, ids=lambda x: getattr(x, "name", ""))
def test_bits(op, exact):
    for dtype, values in ((bool_, [0, 1]), (uint8, [0, 1, 6, 9, 128, 255]),
                          (int8, [-128, -5, -1, 0, 6, 127])):  # fmt: skip
        given = boxes(values, values)
        y, true = found(op, dtype, *given), ranges(exact, dtype, values, values)
        assert_holds(y, true)
        points = (given[0].lower == given[0].upper) & (given[1].lower == given[1].upper)
        assert_tight(y, true, 0, points)
    y = found(el.bitwise_or, int32, interval([0], [5]), interval([2], [8]))
    assert (y.lower, y.upper) == (0, 15)
    y = found(el.bitwise_not, int8, interval([-128], [3]))
    assert (y.lower, y.upper) == (-4, 127)


def test_shifts():
    values, counts = [-128, -7, 0, 1, 5, 127], [0, 1, 2, 7]
    for op, exact in ((el.shift_left, np.left_shift), (el.shift_right, np.right_shift)):
        y, true = found(op, int8, *boxes(values, counts)), ranges(exact, int8, values, counts)
        assert_holds(y, true)
        wide = ranges(exact, int64, values, counts)
        assert_tight(y, wide, 0, (wide.low >= -128) & (wide.high <= 127))
    y = found(el.shift_right, int8, interval([-7], [100]), interval([3], [40]))
    assert (y.lower, y.upper) == (-1, 12)
    y = found(el.shift_right, int8, interval([-100], [100]), interval([-5], [3]))
    assert (y.lower, y.upper) == (-100, 100)
    y = found(el.shift_left, int8, interval([1], [1]), interval([7], [8]))
    assert (y.lower, y.upper) == (-128, 127)


def test_casts():
    y = found(Cast(int8), float32, interval([-1e9, -1.9, -INF], [0.9, 200.0, INF]))
    assert y.lower.tolist() == [-128, -1, -128]
    assert y.upper.tolist() == [0, 127, 127]
    y = found(Cast(int32), float32, interval([3.0], [4.0], UNSURE))
    assert (y.lower, y.upper) == (0, 4)
    y = found(Cast(uint8), int32, interval([3, 3], [255, 256]))
    assert y.lower.tolist() == [3, 0]
    assert y.upper.tolist() == [255, 255]
    y = found(Cast(bool_), float32, interval([0.0, -1.0, 0.5], [0.0, 1.0, 1.0]))
    assert y.lower.tolist() == [0, 0, 1]
    assert y.upper.tolist() == [0, 1, 1]
    y = found(Cast(float16), float64, interval([1 / 3, 1e6], [2 / 3, 1e6]))
    assert y.lower.tolist() == [np.float64(np.float16(1 / 3)), 1e6]
    assert np.float16(2 / 3) <= y.upper[0] < 0.6668
    assert y.upper[1] == INF
    z = found(Cast(complex64), float32, interval([1.0], [2.0]))
    assert (z.real.lower, z.real.upper, z.imag.lower, z.imag.upper) == (1, 2, 0, 0)
