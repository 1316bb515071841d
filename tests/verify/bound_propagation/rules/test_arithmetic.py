"""Arithmetic against NumPy on all boxes of a lattice: held, and no wider than rounding allows."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd.ops.elementwise as el
from retrograd.ir import float16, float32, float64, int8, int64, uint8
from tests.verify.bound_propagation.lattices import (
    assert_holds,
    assert_tight,
    boxes,
    found,
    found_of_same,
    interval,
    ranges,
)

INF = np.inf
REAL = [-INF, -3.0, -1.0, -0.375, 0.0, 0.375, 1.0, 2.5, INF]
FINITE = [-3.0, -1.0, -0.375, 0.375, 1.0, 2.5]
SMALL = [-128, -127, -9, -1, 0, 1, 3, 100, 127]
OPS = [
    (el.add, np.add, 1),
    (el.sub, np.subtract, 1),
    (el.mul, np.multiply, 1),
    (el.div, np.divide, 3),
]
WHOLE = [*OPS[:3], (el.floor_div, np.floor_divide, 0), (el.mod, np.mod, 0), (el.pow, np.power, 0)]


def power(a, b):
    return np.power(a, np.maximum(b, 0))


@pytest.mark.parametrize("dtype", [float64, float32, float16], ids=str)
@pytest.mark.parametrize(("op", "exact", "units"), OPS, ids=lambda x: getattr(x, "name", ""))
def test_real_numbers(op, exact, units, dtype):
    assert_holds(found(op, dtype, *boxes(REAL, REAL)), ranges(exact, dtype, REAL, REAL))
    given, true = boxes(FINITE, FINITE), ranges(exact, dtype, FINITE, FINITE)
    y = found(op, dtype, *given)
    pole = (given[1].lower <= 0) & (given[1].upper >= 0) & (op is el.div)
    assert_tight(y, true, (units + 6) * float(np.finfo(dtype.dtype).eps), ~pole)
    assert_holds(y, true)


@pytest.mark.parametrize("dtype", [int8, uint8], ids=str)
@pytest.mark.parametrize(("op", "exact", "units"), WHOLE, ids=lambda x: getattr(x, "name", ""))
def test_whole_numbers_wrap(op, exact, units, dtype):
    values = SMALL if dtype is int8 else [0, 1, 3, 9, 100, 254, 255]
    exact = power if op is el.pow else exact
    given, true = boxes(values, values), ranges(exact, dtype, values, values)
    zero = (given[1].lower <= 0) & (given[1].upper >= 0) & (op in (el.floor_div, el.mod))
    y = found(op, dtype, *given)
    assert_holds(y, true._replace(low=np.where(zero, INF, true.low),
                                  high=np.where(zero, -INF, true.high)))  # fmt: skip
    if op in (el.add, el.sub, el.mul):
        with np.errstate(all="ignore"):
            wide = ranges(exact, int64, values, values)
        ends = np.iinfo(dtype.dtype)
        assert_tight(y, wide, 0, (wide.low >= ends.min) & (wide.high <= ends.max))


def test_large_whole_numbers_lie_between_neighbours():
    y = found(el.add, int64, interval([2.0**53], [2.0**53]), interval([1], [1]))
    assert int(y.lower[0]) <= 2**53 + 1 <= int(y.upper[0])
    y = found(el.mul, int64, interval([2.0**52 + 1], [2.0**52 + 1]), interval([3], [3]))
    assert int(y.lower[0]) <= 3 * 2**52 + 3 <= int(y.upper[0])


def test_what_underflows_keeps_its_sign_and_is_not_zero():
    tiny, zero = [-1e-300, 0.0, 0.0], [0.0, 0.0, 1e-300]
    y = found(el.div, float64, interval(tiny, zero), interval([1e300] * 3, [1e301] * 3))
    assert y.lower[0] < 0
    assert y.upper[0] == y.lower[1] == y.upper[1] == y.lower[2] == 0
    assert y.upper[2] > 0
    y = found(el.mul, float64, interval([-1e-300], [0.0]), interval([1e-300], [1.0]))
    assert y.lower[0] <= -1e-300
    assert y.upper[0] == 0
    y = found(el.floor_div, float64, interval([-1.0], [0.0]), interval([INF], [INF]))
    assert y.lower[0] == -1


def test_one_node_twice():
    x = interval([-2.0, 1.0, -INF], [3.0, 2.0, 1.0])
    y = found_of_same(el.sub, float32, x)
    assert (y.lower == 0).all()
    assert (y.upper == 0).all()
    assert y.nan.tolist() == [False, False, True]
    y = found_of_same(el.mul, float32, x)
    assert y.lower.tolist()[::2] == [0, 0]
    assert 1 - 1e-6 < y.lower[1] <= 1
    assert y.upper[0] == pytest.approx(9)
    y = found_of_same(el.div, float32, x)
    assert (abs(y.lower - 1) < 1e-6).all()
    assert y.nan.tolist() == [True, False, True]


def test_zeros_in_divisors_and_products_with_zero():
    y = found(el.reciprocal, float32, interval([0.0, 1.0, -2.0], [1.0, INF, -1.0]))
    assert (y.lower[0], y.upper[0]) == (-INF, INF)
    assert y.lower[1] == 0
    assert y.upper[2] == pytest.approx(-0.5)
    zero, any_number = interval([0.0], [0.0]), interval([-INF], [INF], np.array([True]))
    assert found(el.mul, float32, zero, any_number).nan.all()
    y = found(el.zzmul, float32, zero, any_number)
    assert not np.any(y.nan)
    assert y.lower == y.upper == 0


@pytest.mark.parametrize(
    ("op", "exact"),
    [(el.neg, np.negative), (el.abs, np.abs), (el.floor, np.floor), (el.ceil, np.ceil),
     (el.trunc, np.trunc), (el.round, np.rint), (el.sign, np.sign)],
    ids=lambda x: getattr(x, "name", ""),
)  # fmt: skip
def test_what_does_not_round(op, exact):
    y, true = found(op, float32, *boxes(REAL)), ranges(exact, float32, REAL)
    assert_holds(y, true)
    whole_steps = op is not el.abs  # 0 is reached, and is on the lattice
    assert_tight(y, true, 0, whole_steps | (true.low >= 0))


def test_roots_and_powers():
    values = [-INF, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, INF]
    assert_holds(found(el.pow, float32, *boxes(values, values)),
                 ranges(np.power, float32, values, values))  # fmt: skip
    above = values[5:9]
    true = ranges(np.power, float32, above, values[1:9])
    given = boxes(above, values[1:9])
    assert_tight(found(el.pow, float32, *given), true, 3e-6, ranges(
        lambda a, b: (a == 1) | (b == 0), float32, above, values[1:9]).high == 1)  # fmt: skip
    for op, exact in ((el.sqrt, np.sqrt), (el.rsqrt, lambda x: 1 / np.sqrt(x))):
        assert_holds(found(op, float32, *boxes(values)), ranges(exact, float32, values))
        y = found(op, float32, *boxes(above))
        assert_tight(y, ranges(exact, float32, above), 3e-6)
    y = found(el.nextafter, float32, interval([1.0], [2.0]), interval([-INF], [INF]))
    assert y.lower <= np.nextafter(np.float32(1), np.float32(0))
    assert y.upper >= np.nextafter(np.float32(2), np.float32(3))
    y = found(
        el.copysign, float32, interval([-3.0] * 2, [2.0] * 2), interval([1.0, 0.0], [2.0] * 2)
    )
    assert y.lower.tolist() == [0, -3]
    assert y.upper.tolist() == [3, 3]
