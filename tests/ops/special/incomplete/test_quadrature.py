"""Gauss's rule in panels, and how cases are chosen."""

import math

import numpy as np
import pytest
from scipy import special

from retrograd.ops.special.incomplete import quadrature as q
from retrograd.ops.special.reference import NumPyIncompleteMath

M = NumPyIncompleteMath()


def test_nodes_and_weights_are_those_of_gauss():
    nodes, weights = np.polynomial.legendre.leggauss(12)
    np.testing.assert_allclose(q.NODES, nodes[6:], rtol=1e-14)
    np.testing.assert_allclose(q.WEIGHTS, weights[6:], rtol=1e-14)


def test_integrals_of_decays():
    width = np.array([0.5, 3.0, 40.0])
    found = q.integrals(M, width, lambda w: (np.exp(-w), w**23), 2)
    np.testing.assert_allclose(found[0], -np.expm1(-width), rtol=1e-14)
    np.testing.assert_allclose(found[1], width**24 / 24, rtol=1e-13)  # exact to degree 23


def test_all_places_at_once_are_the_same_to_the_bit():
    half = np.array([0.3, 1.7])

    def point(w):
        return (np.exp(-w), np.sin(w))

    one_by_one = q.one_by_one(M, half, half * 0.0, point, 2)
    places = q.Panels.places(half)
    assert len(places) == q.Panels.count
    for total, values in zip(one_by_one, point(places), strict=True):
        assert q.Panels.total(half * 0.0, values).tobytes() == total.tobytes()


@pytest.mark.parametrize(("x", "a"), [(3.0, 3.0 + 1e-12), (1.0, 50.0), (80.0, 1e-3)])
def test_log_ratio_does_not_cancel(x, a):
    x, a = np.float64(x), np.float64(a)
    expected = math.log1p((x - a) / a) if abs(x - a) < a / 2 else math.log(x / a)
    np.testing.assert_allclose(q.log_ratio(M, x - a, x, a), expected, rtol=1e-14)


@pytest.mark.parametrize("a", [1e-9, 0.5, 1.0, 7.0])
def test_squared_score(a):
    """`kappa^2 - psi'(a)`: for small a, squares of 1 / a would cancel."""
    a, rest = np.float64(a), np.float64(0.25)
    kappa = rest - special.digamma(a)
    above = rest - special.digamma(a + 1)  # kappa = above + 1 / a, psi'(a) = psi'(a + 1) + 1 / a^2
    expected = above**2 + 2 * above / a - special.polygamma(1, a + 1)
    np.testing.assert_allclose(q.squared_score(M, kappa, rest, a), expected, rtol=1e-12)


def test_the_first_case_that_holds_counts():
    y, yes = np.array([1.0, 2.0, 3.0]), np.array([True, True, True])
    good, first = np.array([True, False, False]), np.array([True, True, False])
    np.testing.assert_array_equal(q.chosen(M, good, y, (first, 7.0), (yes, 8.0)), [1, 7, 8])
    np.testing.assert_array_equal(q.chosen(M, good, y, (first, 7.0)), [1, 7, math.nan])
