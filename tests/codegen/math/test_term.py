"""Operators of terms: one instruction each, rounded by itself."""

import numpy as np
import pytest

from retrograd.codegen.math.term import (
    DOUBLE,
    SINGLE,
    Term,
    at_least,
    at_most,
    bits_of,
    choose,
    either,
    fma,
    polynomial,
    quartic,
)
from retrograd.ir import DType, float32, float64
from tests.codegen.emit.fused import fused
from tests.codegen.math.edges import formulas

rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_each_operator_rounds(dtype: DType) -> None:
    x, y, z = (rng.standard_normal(400).astype(dtype.dtype) for _ in range(3))
    plain, once, chain = formulas(
        [
            lambda x, y, z: x * y + z,
            fma,
            lambda x, y, z: (2.0 - x) / y * -z + abs(x).sqrt(),
        ],
        x, y, z, dtype=dtype,
    )  # fmt: skip
    assert plain.tobytes() == (x * y + z).tobytes()
    assert once.tobytes() == fused(x, y, z).tobytes() != plain.tobytes()
    assert chain.tobytes() == ((2 - x) / y * -z + np.sqrt(abs(x))).tobytes()


@pytest.mark.parametrize("form", [SINGLE, DOUBLE], ids=["float32", "float64"])
def test_bits(form) -> None:
    x = np.array([1.0, -2.5, 3e-30, -0.0, 7.0, 8.5], form.dtype.dtype)
    whole = x.view(form.integer.dtype)
    flipped, exponent, shifted, magic = formulas(
        [
            lambda x: (x.bits() ^ 1).floats(),
            lambda x: ((x.bits() >> form.mantissa) & 0xFF).rounded(),
            lambda x: (~x.bits()).shifted(3).floats(),
            lambda x: (x + form.magic) - form.magic,
        ],
        x, dtype=form.dtype,
    )  # fmt: skip
    np.testing.assert_array_equal(flipped.view(whole.dtype), whole ^ 1)
    np.testing.assert_array_equal(exponent, (whole >> form.mantissa) & 0xFF)
    unsigned = (~whole).view(f"u{whole.itemsize}") >> 3
    np.testing.assert_array_equal(shifted.view(unsigned.dtype), unsigned)
    np.testing.assert_array_equal(magic, np.rint(x))
    assert [bits_of(float(v), form) for v in x] == whole.tolist()
    assert bits_of(1.0, form) == form.one
    assert bits_of(np.inf, form) == form.infinity


def test_comparisons_of_nan() -> None:
    x = np.array([1.0, np.nan, 3.0, -np.inf])
    one_where = [
        lambda x: choose(x < 2.0, x.like(1), 0.0),
        lambda x: choose(x.above(2.0), x.like(1), 0.0),
        lambda x: choose(x.is_nan(), x.like(1), 0.0),
        lambda x: choose(~(x >= 2.0), x.like(1), 0.0),
        lambda x: at_most(x, 2.0),
        lambda x: at_least(x, 2.0),
    ]
    right = [
        [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 0], [1, 1, 0, 1],
        [1, np.nan, 2, -np.inf], [2, np.nan, 3, 2],
    ]  # fmt: skip
    np.testing.assert_array_equal(formulas(one_where, x), right)


def test_polynomials_and_choices_between_computations() -> None:
    x = np.linspace(-3, 3, 24)
    c = (1.0, -2.0, 0.5, 3.0, 0.25)

    def halves(x: Term) -> Term:
        far = (abs(x) > 2.0).anywhere()
        return either(x.at, far, lambda: [x * 2.0], lambda: [x * 3.0])[0]

    horner, steps, doubled = formulas(
        [lambda x: polynomial(x, c), lambda x: quartic(x, c), halves], x
    )
    np.testing.assert_allclose(horner, np.polyval(c[::-1], x), 1e-14, 1e-14)
    np.testing.assert_allclose(steps, np.polyval(c[::-1], x), 1e-14, 1e-14)
    lots = x.reshape(-1, 4)  # lanes that are computed at once
    far = (abs(lots) > 2).any(1, keepdims=True)
    np.testing.assert_array_equal(doubled, np.where(far, lots * 2, lots * 3).ravel())
