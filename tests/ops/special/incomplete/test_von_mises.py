"""How a von Mises sample moves with the concentration, by integrals of the density."""

import math

import numpy as np
import pytest
from scipy import integrate, special

from retrograd.ops.special.incomplete.von_mises import von_mises_slope
from retrograd.ops.special.reference import NumPyIncompleteMath


def slope(k, x):
    with np.errstate(all="ignore"):
        return von_mises_slope(NumPyIncompleteMath(), np.float64(k), np.float64(x))


@pytest.mark.parametrize(("k", "x"), [(0.0, 1.0), (0.5, 2.0), (3.0, 0.7), (200.0, 0.1)])
def test_against_quadrature(k, x):
    """`-(dF / dk) / (dF / dx)`, with dF/dk the integral of the density's derivative from 0 on."""
    ratio = special.i1e(k) / special.i0e(k)

    def moved(t):
        return math.exp(k * (math.cos(t) - math.cos(x))) * (math.cos(t) - ratio)

    expected = -integrate.quad(moved, 0, x, epsabs=1e-14, epsrel=1e-12)[0]
    np.testing.assert_allclose(slope(k, x), expected, rtol=1e-9)
    assert slope(k, -x) == -slope(k, x)


def test_edges():
    np.testing.assert_allclose(slope(2.0, [0.0, math.pi]), [0, 0], atol=1e-15)
    assert np.isnan(slope([-1.0, math.nan, math.inf], [1.0, 1.0, 1.0])).all()
