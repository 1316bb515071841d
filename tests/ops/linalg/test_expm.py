"""Exponentials of matrices against SciPy, and where they are known exactly."""

import math

import numpy as np
import pytest

from retrograd.ops.linalg.expm import PADE, Expm
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 40.0])
def test_against_scipy(scale, dtype):
    linalg = pytest.importorskip("scipy.linalg")
    x = scale * general(4, 4, dtype) / 4
    expected = linalg.expm(x)
    tolerance = 1e-11 * np.abs(expected).max()
    np.testing.assert_allclose(check_result(Expm(), [x]), expected, rtol=0, atol=tolerance)


def test_known_exponentials():
    nilpotent = np.diag([1.0, 1.0], 1)
    expected = np.array([[1, 1, 0.5], [0, 1, 1], [0, 0, 1]])
    np.testing.assert_allclose(check_result(Expm(), [nilpotent]), expected, atol=1e-15)
    turn = check_result(Expm(), [np.array([[0.0, -30.0], [30.0, 0.0]])])
    c, s = math.cos(30), math.sin(30)
    np.testing.assert_allclose(turn, [[c, -s], [s, c]], atol=1e-13)
    assert check_result(Expm(), [np.zeros((0, 0))]).shape == (0, 0)
    assert np.isnan(check_result(Expm(), [np.array([[np.inf]])])).all()


def test_the_approximation_is_that_of_exp():
    """Degree 13 over 13: `p(1) / p(-1) = e`."""
    signs = (-1.0) ** np.arange(14)
    assert math.fsum(PADE) / math.fsum(signs * PADE) == pytest.approx(math.e, rel=1e-15)


def test_the_gradient_of_a_weighted_sum():
    """The derivative along t is the integral of exp(s x) t exp((1 - s) x)."""
    x, t = general(3, 3, "float64") / 2, general(4, 4, "float64")[:3, :3]
    _, g = vector_gradient(lambda x: total(Expm()(x)), x)
    h = 1e-5
    up, down = (check_result(Expm(), [x + s * h * t]).sum() for s in (1, -1))
    np.testing.assert_allclose(np.sum(g * t), (up - down) / (2 * h), rtol=1e-8)
