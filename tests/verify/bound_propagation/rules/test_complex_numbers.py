"""Parts of complex numbers, and sums that go by parts."""

from __future__ import annotations

import numpy as np

import retrograd.ops.elementwise as el
from retrograd.ir import complex64, complex128, float64
from retrograd.ops.complex import Complex, Imag, Real
from retrograd.verify.bound_propagation.interval import Rectangle
from retrograd.verify.bound_propagation.rules.complex_numbers import COMPLEX
from tests.verify.bound_propagation.lattices import found, found_of_same, interval, rectangle

Z = rectangle([1 - 2j, -1 + 0j], [2 + 3j, 1 + 1j])
W = rectangle([0 + 1j, 2 - 2j], [4 + 1j, 2 + 2j])


def ends(z):
    return [x.tolist() for part in z for x in part[:2]]


def test_parts_are_taken_and_joined():
    real, imag = found(Real(), complex128, Z), found(Imag(), complex128, Z)
    assert (real, imag) == Z
    z = found(Complex(), float64, real, imag)
    assert isinstance(z, Rectangle)
    assert z == Z


def test_sums_go_by_parts():
    y = found(el.add, complex64, Z, W)
    assert np.allclose(ends(y), [[1, 1], [6, 3], [-1, -2], [4, 3]], rtol=1e-6)
    y = found(el.sub, complex64, Z, W)
    assert np.allclose(ends(y), [[-3, -3], [2, -1], [-3, -2], [2, 3]], rtol=1e-6)
    assert ends(found(el.neg, complex64, Z)) == [[-2, -1], [-1, 1], [-3, -1], [2, 0]]
    assert ends(found_of_same(el.sub, complex64, Z)) == [[0, 0]] * 4


def test_nan_of_one_part_stays_in_it():
    z = Rectangle(interval([0.0], [1.0], np.array([True])), interval([0.0], [1.0]))
    y = found(el.add, complex64, z, rectangle([1 + 1j], [1 + 1j]))
    assert y.real.nan.all()
    assert y.imag.nan is False


def test_a_real_rule_and_a_complex_one_stand_side_by_side():
    """On numbers without an imaginary part both give nearly the same."""
    for name in ("mul", "div", "sqrt", "exp"):
        op = getattr(el, name)
        assert name in COMPLEX
        x, one = interval([1.0], [2.0]), rectangle([1.0], [2.0])
        count = 2 if name in ("mul", "div") else 1
        real, both = found(op, float64, *[x] * count), found(op, complex128, *[one] * count)
        share = 1e-12 if count == 1 else 2.0  # a quotient of rectangles is not its tightest
        assert np.isclose(both.real.lower, real.lower, rtol=share)
        assert np.isclose(both.real.upper, real.upper, rtol=share)
        assert both.real.lower <= real.upper
        assert both.imag.lower <= 0 <= both.imag.upper
