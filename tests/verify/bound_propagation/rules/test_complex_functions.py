"""Complex functions against NumPy on points of rectangles, and how wide they are."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd.ops.elementwise as el
from retrograd.ir import complex64, complex128
from retrograd.ops.fft import Fft
from retrograd.ops.reduce import ReduceProd
from tests.verify.bound_propagation.lattices import found, found_of_same, rectangle

FUNCTIONS = [
    (el.exp, np.exp), (el.exp2, np.exp2), (el.expm1, np.expm1), (el.log, np.log),
    (el.log2, np.log2), (el.log10, np.log10), (el.log1p, np.log1p), (el.sqrt, np.sqrt),
    (el.sin, np.sin), (el.cos, np.cos), (el.tan, np.tan), (el.sinh, np.sinh), (el.cosh, np.cosh),
    (el.tanh, np.tanh), (el.asin, np.arcsin), (el.acos, np.arccos), (el.atan, np.arctan),
    (el.asinh, np.arcsinh), (el.acosh, np.arccosh), (el.atanh, np.arctanh),
    (el.reciprocal, np.reciprocal),
]  # fmt: skip
RNG = np.random.default_rng(0)


def rectangles(count, width):
    low = RNG.uniform(-2, 2, (count, 2)) @ [1, 1j]
    return low, low + RNG.uniform(0, width, (count, 2)) @ [1, 1j]


def points(low, high, count):
    """Corners first, then anywhere."""
    t = RNG.random((2, count, len(low)))
    t[:, :4] = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])[:, :, None]
    wide = high - low
    z = low + t[0] * wide.real + 1j * t[1] * wide.imag
    return np.clip(z.real, low.real, high.real) + 1j * np.clip(z.imag, low.imag, high.imag)


def assert_inside(y, values):
    for part, exact in ((y.real, values.real), (y.imag, values.imag)):
        inside = (part.lower <= exact) & (exact <= part.upper)
        assert (inside | (np.isnan(exact) & part.nan)).all()


@pytest.mark.parametrize(("op", "exact"), FUNCTIONS, ids=lambda x: getattr(x, "name", ""))
def test_points_of_rectangles_are_inside(op, exact):
    for width in (2.0, 1e-3, 0.0):
        low, high = rectangles(12, width)
        y = found(op, complex128, rectangle(low, high))
        z = points(low, high, 40)
        with np.errstate(all="ignore"):
            assert_inside(y, exact(z))
        if width == 0:
            size = 1 + np.abs(exact(low))
            assert (y.real.upper - y.real.lower <= 1e-12 * size**2).all()
            assert (y.imag.upper - y.imag.lower <= 1e-12 * size**2).all()


@pytest.mark.parametrize(
    ("op", "exact"), [(el.mul, np.multiply), (el.div, np.divide)], ids=("mul", "div")
)
def test_products_and_quotients(op, exact):
    low, high = rectangles(20, 1.0)
    more, most = rectangles(20, 1.0)
    z, w = points(low, high, 60), points(more, most, 60)
    assert_inside(found(op, complex128, rectangle(low, high), rectangle(more, most)), exact(z, w))
    assert_inside(found_of_same(op, complex128, rectangle(low, high)), exact(z, z))
    y = found(op, complex64, rectangle(low, low), rectangle(more, more))
    assert (y.real.upper - y.real.lower <= 1e-4 * (1 + np.abs(exact(low, more)))).all()


def test_the_ends_of_a_product_are_those_of_corners():
    y = found(el.mul, complex128, rectangle([1 + 1j], [2 + 3j]), rectangle([-1 + 2j], [1 + 2j]))
    ends = [x[0] for part in y for x in part[:2]]
    assert np.allclose(ends, [-2 - 6, 2 - 2, 2 - 3, 4 + 3], rtol=1e-12)


def test_cuts_zeros_and_infinities():
    y = found(el.log, complex128, rectangle([-2 - 1j], [-1 + 1j]))
    assert y.imag.lower <= -np.pi
    assert np.pi <= y.imag.upper < 3.1416
    y = found(el.sqrt, complex128, rectangle([-4 + 0j], [-4 + 0j]))
    assert y.imag.lower <= -2
    assert 2 <= y.imag.upper < 2.0001
    y = found(el.reciprocal, complex128, rectangle([-1 - 1j], [1 + 1j]))
    assert y.real.nan.all()
    assert y.imag.upper == np.inf
    y = found(el.exp, complex64, rectangle([1000 + 0j], [1000 + 1j]))
    assert y.real.upper == np.inf
    assert y.real.nan.all()


def test_fourier_transforms_and_products_of_many():
    low = RNG.normal(size=(8, 2)) @ [1, 1j]
    high = low + RNG.uniform(0, 0.1, (8, 2)) @ [1, 1j]
    z = points(low, high, 60)
    y = found(Fft(0), complex128, rectangle(low, high))
    assert_inside(y, np.fft.fft(z, axis=-1))
    wide = high - low  # the zeroth is a sum
    assert np.isclose((y.real.upper - y.real.lower)[0], wide.real.sum(), rtol=1e-9)
    assert np.isclose((y.imag.upper - y.imag.lower)[0], wide.imag.sum(), rtol=1e-9)
    y = found(ReduceProd((0,)), complex128, rectangle(low, high))
    assert_inside(y, np.prod(z, axis=-1))
    y = found(ReduceProd((0,)), complex128, rectangle(low, low))
    assert y.real.upper - y.real.lower < 1e-11
