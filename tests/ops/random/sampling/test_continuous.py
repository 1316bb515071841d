"""Continuous samples have the distributions that SciPy knows, edges included."""

import math

import numpy as np
import pytest
from scipy import stats

from retrograd.ops.random.sampling import FORMULAS, NumPySampleMath, continuous

KEY, M, N = np.array([3, 5], np.uint32), NumPySampleMath(), 4000
LAWS = {
    "unit": ((), stats.uniform()),
    "exponential": ((), stats.expon()),
    "laplace": ((), stats.laplace()),
    "logistic": ((), stats.logistic()),
    "gumbel": ((), stats.gumbel_r()),
    "cauchy": ((), stats.cauchy()),
    "gamma": ((0.3,), stats.gamma(0.3)),
    "log_gamma": ((2.5,), stats.loggamma(2.5)),
    "beta": ((0.5, 2.0), stats.beta(0.5, 2.0)),
    "von_mises": ((1.5,), stats.vonmises(1.5)),
}


def draw(law, *parameters, n=N):
    with np.errstate(all="ignore"):
        return FORMULAS[law].draw(M, KEY, (n,), *[np.full(n, p) for p in parameters])


@pytest.mark.parametrize("law", LAWS)
def test_distributions(law):
    parameters, expected = LAWS[law]
    assert stats.kstest(draw(law, *parameters), expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (3.0, 4.0), (-40.0, -30.0)])
def test_truncated_normal(low, high):
    z = FORMULAS["truncated_normal"].draw(M, KEY, (N,), low, high)
    assert ((z >= low) & (z <= high)).all()
    assert stats.kstest(z, stats.truncnorm(low, high).cdf).pvalue > 1e-3


def test_unit_is_inside_of_its_ends():
    """Odd multiples of 2**-53: never 0 or 1, so that logarithms are finite."""
    u = draw("unit")
    assert 0 < u.min() < u.max() < 1
    assert (np.remainder(u * 2.0**53, 2) == 1).all()


def test_keys_are_independent():
    first, second = continuous.keys(M, KEY, 2)
    assert abs(np.corrcoef(*[continuous.unit(M, k, (N,)) for k in (first, second)])[0, 1]) < 0.05
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_parameters_out_of_range_are_nan(bad):
    assert np.isnan(draw("gamma", bad, n=3)).all()
    assert np.isnan(draw("beta", 1.0, bad, n=3)).all()
    assert np.isnan(draw("von_mises", bad, n=3)).all()


def test_logarithms_of_samples_too_small_for_numbers():
    """A gamma sample of a tiny parameter is 0; its logarithm is about log(u) / a."""
    assert (draw("gamma", 1e-5) == 0).mean() > 0.9
    y = draw("log_gamma", 1e-5)
    assert np.isfinite(y).all()
    assert stats.kstest(-y * 1e-5, stats.expon().cdf).pvalue > 1e-3
