"""Powers that are exact, near the ends of the range, and with exponents known or not."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from retrograd.codegen.math import power
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import DType, float32, float64
from tests.codegen.math.edges import assert_ulps, values, values_of

EXPONENTS = (0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_a_known_exponent_has_the_bits_of_one_that_is_not(dtype: DType) -> None:
    x = np.r_[0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1.7, np.linspace(0.1, 9, 41)]

    def by(exponent: float):
        def write(at: OpBuilder, xs: list[str]) -> str:
            return power.pow(at, xs[0], at.number(exponent))

        return write

    known = values_of([by(e) for e in EXPONENTS], x, dtype=dtype)
    for e, y in zip(EXPONENTS, known, strict=True):
        (z,) = values(["pow"], x, np.full(x.size, e), dtype=dtype)
        np.testing.assert_array_equal(y, z, err_msg=str(e))  # any NaN
        assert y[~np.isnan(y)].tobytes() == z[~np.isnan(z)].tobytes(), e


def test_powers_that_can_be_represented() -> None:
    pairs = [(b, e) for b, e in itertools.product(range(-12, 13), range(12)) if abs(b) ** e < 2**53]
    b, e = np.array(pairs, float).T
    np.testing.assert_array_equal(
        values(["pow"], b, e)[0], [float(int(x) ** int(n)) for x, n in pairs]
    )


def test_where_results_are_subnormal_or_overflow() -> None:
    """A large exponent multiplies the error of the logarithm: it is kept in two doubles."""
    x = np.concatenate([1 + 2.0 ** -np.r_[10:53:3], 1 - 2.0 ** -np.r_[10:53:3], [10.0, 1e-200]])
    for target in (-1073.3, -1022.1, -700.0, 1023.9, 1024.1):
        y = target * math.log(2) / np.log(x)
        assert_ulps(values(["pow"], x, y)[0], mpmath.power, 1.4, x, y)


def test_inverse_squares_whose_square_is_out_of_range() -> None:
    x = np.r_[1e-154, 3e-155, 7e-154, 1e154, 5e154, 1.3e155, -2e154, 1e160]
    assert_ulps(values(["pow"], x, np.full(x.size, -2.0))[0], lambda v: v**-2, 1.5, x)


def test_rules_of_signs_and_special_values() -> None:
    """Those of C99, which Python's `math.pow` has too, but for errors in place of poles."""
    special = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -3.0, 2.5, 5.0, 2.0**53)
    grid = list(itertools.product(special, repeat=2))
    x, y = np.array(grid).T
    right = np.array([_power(*pair) for pair in grid])
    (found,) = values(["pow"], x, y)
    np.testing.assert_allclose(found, right, 1e-15)
    plain = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(found[plain]), np.signbit(right[plain]))


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except ValueError:  # a pole, or a root of a negative number
        odd = y % 2 == 1
        return math.copysign(math.inf, x if odd else 1.0) if x == 0 else math.nan
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
