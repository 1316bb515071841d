"""Sums in twice the precision: what is rounded off is kept exactly."""

from fractions import Fraction

import numpy as np

from retrograd.codegen.emit.compensated_sum import more, settled, two_product, two_sum
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import float64
from tests.codegen.math.edges import values_of

A = np.array([1.0, 1e16, -1e16, 0.1, 1e-300, 3.0, -0.0, 0.0, 2.0**53, 1e308])
B = np.array([1e-20, 1.0, 0.3, 0.2, 1e300, -3.0, -0.0, -0.0, 1.0, -1e292])


def both(f, part: int):
    return lambda at, x: f(at, *x)[part]


def test_errors_of_sums_and_products_are_exact() -> None:
    total, lost = values_of([both(two_sum, k) for k in (0, 1)], A, B)
    assert total.tobytes() == (A + B).tobytes()
    product, off = values_of([both(two_product, k) for k in (0, 1)], A[:9], B[:9])
    assert product.tobytes() == (A[:9] * B[:9]).tobytes()
    for k, (a, b) in enumerate(zip(A, B, strict=True)):
        assert Fraction(total[k]) + Fraction(lost[k]) == Fraction(a) + Fraction(b)
        if k < 9:
            assert Fraction(product[k]) + Fraction(off[k]) == Fraction(a) * Fraction(b)


def chained(at: OpBuilder, x: list[str]) -> str:
    total, rest = x[0], at.number(0)
    for term in x[1:]:
        total, rest = more(at, total, rest, term)
    return settled(at, total, rest)


def test_what_cancels_is_not_lost() -> None:
    big, small = [1e17, 1e9, 1.0, -0.0], [1.0, 1e-9, 2.0**-60, -0.0]
    (y,) = values_of([chained], big, small, small, np.negative(big))
    np.testing.assert_array_equal(y, [2.0, 2e-9, 2.0**-59, 0.0])


def test_signs_of_zeros_and_infinities_stay() -> None:
    inf = np.inf
    (y,) = values_of([chained], [-0.0, inf, 1e308, inf], [-0.0, 1.0, 1e308, -inf], dtype=float64)
    np.testing.assert_array_equal(y, [-0.0, inf, inf, np.nan])
    assert np.signbit(y[0])
