"""Contractions against exact sums over all corners: every order is inside, and little more."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from retrograd.ir import complex128, float16, float32, float64, int8, int64
from retrograd.ops.conv import Conv
from retrograd.ops.matmul import DotGeneral
from retrograd.verify.bound_propagation.rules.contraction import MatrixProduct
from tests.verify.bound_propagation.lattices import found, interval, rectangle

INF = np.inf
RNG = np.random.default_rng(0)
DOT = DotGeneral((0,), (0,))


def exact_range(a, b):
    """The least and the greatest sum of products of numbers between ends, as fractions."""
    low = high = Fraction(0)
    for ends in zip(a.lower, a.upper, b.lower, b.upper, strict=True):
        w, x, y, z = (Fraction(float(e)) for e in ends)
        products = [p * q for p in (w, x) for q in (y, z)]
        low, high = low + min(products), high + max(products)
    return low, high


def boxed(n, width, dtype):
    middle = RNG.normal(size=n).astype(dtype.dtype)
    low = (middle - RNG.uniform(0, 1, n) * width).astype(dtype.dtype)
    return interval(np.minimum(low, middle), middle)


@pytest.mark.parametrize("dtype", [float64, float32, float16], ids=str)
@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_exact_range_is_inside(first, second, dtype):
    for n in (1, 5):
        a, b = boxed(n, first, dtype), boxed(n, second, dtype)
        y, (low, high) = found(DOT, dtype, a, b), exact_range(a, b)
        assert Fraction(float(y.lower)) <= low <= high <= Fraction(float(y.upper))
        share = 1.0 if first and second else 0.0  # of two that are not known, 1.5 times
        size = float(a.size @ b.size)
        slack = share * float(high - low) + (3 * n + 12) * float(np.finfo(dtype.dtype).eps) * size
        assert y.lower >= float(low) - slack
        assert y.upper <= float(high) + slack


def test_every_order_is_inside():
    x = np.array([1e8, 1.0, -1e8, 0.25, 3.0], np.float32)
    y = found(DOT, float32, interval(x, x), interval(np.ones(5), np.ones(5)))
    for order in itertools.permutations(x):
        total = np.float32(0)
        for v in order:
            total = np.float32(total + v)
        assert y.lower <= total <= y.upper


def test_whole_numbers_wrap_and_large_ones_are_not_lost():
    one = interval(np.ones(3), np.ones(3))
    x = np.array([2.0**53, 1.0, -(2.0**53)])
    y = found(DOT, int64, interval(x, x), one)
    assert y.lower <= 1 <= y.upper
    y = found(DOT, int64, interval([1, 2, 3], [1, 2, 4]), one)
    assert (y.lower, y.upper) == (6, 7)
    y = found(DOT, int8, interval([100, 20, 3], [100, 20, 9]), one)
    assert (y.lower, y.upper) == (-128, 127)


def test_infinities_and_nan_touch_their_own_row():
    low, high = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[1.0, INF], [1.0, 3.0]])
    y = found(DotGeneral((1,), (0,)), float32, interval(low, high), interval([1.0] * 2, [1.0] * 2))
    assert y.upper[0] == INF
    assert y.nan.tolist() == [True, False]
    assert y.lower[1] == pytest.approx(3)
    assert y.upper[1] == pytest.approx(4)
    big = interval([3e38] * 2, [3e38] * 2)
    y = found(DOT, float32, big, interval([1.0, -1.0], [1.0, -1.0]))
    assert y.lower <= 0 <= y.upper
    y = found(DOT, float32, big, interval([1.0, 1.0], [1.0, 1.0]))
    assert y.upper == INF


def test_nothing_is_summed_to_zero():
    empty = interval(np.zeros((2, 0)), np.zeros((2, 0)))
    y = found(DotGeneral((1,), (1,)), float32, empty, empty)
    assert y.shape == (2, 2)
    assert not y.lower.any()
    assert not y.upper.any()


def test_complex_contractions():
    low, wide = (RNG.normal(size=(2, 4, 2)) @ [1, 1j] for _ in range(2))
    wide = abs(wide.real) + 1j * abs(wide.imag)
    y = found(DOT, complex128, *[rectangle(z, z + w) for z, w in zip(low, wide, strict=True)])
    t = RNG.integers(0, 2, (2, 100, 2, 4))
    z = low + t[0] * wide.real + 1j * t[1] * wide.imag
    values = (z[:, 0] * z[:, 1]).sum(-1)
    for part, exact in ((y.real, values.real), (y.imag, values.imag)):
        assert part.lower <= exact.min()
        assert exact.max() <= part.upper


def test_convolutions():
    """With a kernel that is known the ends are those of each sign."""
    low = RNG.normal(size=(1, 2, 6))
    high, w = low + 1, RNG.normal(size=(3, 2, 3))
    y = found(Conv((1,), (0,), (0,), (1,), (1,)), float64, interval(low, high), interval(w, w))
    for o, p in itertools.product(range(3), range(4)):
        a, b = low[0, :, p : p + 3], high[0, :, p : p + 3]
        assert np.isclose(y.lower[0, o, p], np.minimum(w[o] * a, w[o] * b).sum(), rtol=1e-12)
        assert np.isclose(y.upper[0, o, p], np.maximum(w[o] * a, w[o] * b).sum(), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e140, 5e-324])
def test_norms_are_not_below_the_sums_of_magnitudes(scale):
    """Those of a vector with itself are the same but for rounding, where an error would show."""
    product, n = MatrixProduct((1,), (0,)), 40
    for _ in range(20):
        w = RNG.uniform(0.5, 1.5, n) * scale
        a, b = interval(w[None], w[None]), interval(w[:, None], w[:, None])
        exact = sum(Fraction(x) ** 2 for x in w.tolist())
        assert Fraction(float(product.magnitudes(a, b, n)[0, 0])) >= exact or exact < 5e-324


def test_norms_are_nothing_where_nothing_is_added():
    """A zero among the weights is a place whose term is nothing: then sums are computed."""
    product, n = MatrixProduct((1,), (0,)), 20
    rows = RNG.normal(size=(3, n))
    rows[1] = 0
    w = RNG.normal(size=(n, 2))
    a = interval(rows, rows)
    assert (product.magnitudes(a, interval(w, w), n)[1] == 0).all()
    w[:10, 0] = rows[0, 10:] = 0
    a = interval(rows, rows)
    assert product.magnitudes(a, interval(w, w), n)[0, 0] == 0


@pytest.mark.parametrize("dtype", [float64, float32], ids=str)
def test_long_sums_are_inside_and_little_more(dtype):
    """Sums that are long enough for norms, at random corners, exactly."""
    n = 64
    a, w = boxed(n, 1e-3, dtype), RNG.normal(size=n).astype(dtype.dtype).astype(np.float64)
    y = found(DOT, dtype, a, interval(w, w))
    low, high = exact_range(a, interval(w, w))
    assert Fraction(float(y.lower)) <= low <= high <= Fraction(float(y.upper))
    rounding = 12 * (n + 8) * float(np.finfo(dtype.dtype).eps) * float(a.size @ np.abs(w))
    assert float(y.upper - y.lower) <= float(high - low) + rounding
