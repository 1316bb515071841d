"""Counts have the probabilities that SciPy knows, by both methods; edges are exact."""

import math

import numpy as np
import pytest
from scipy import stats

from retrograd.ops.random.sampling import FORMULAS, NumPySampleMath

KEY, M, N = np.array([7, 1], np.uint32), NumPySampleMath(), 2000


def draw(law, *parameters, n=N):
    with np.errstate(all="ignore"):
        return FORMULAS[law].draw(M, KEY, (n,), *[np.full(n, p) for p in parameters])


def agrees(counts, law):
    """Whether frequencies between quantiles are those of a law."""
    edges = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
    own = np.bincount(np.searchsorted(edges, counts), minlength=len(edges) + 1)
    return stats.chisquare(own, np.diff([0, *law.cdf(edges), 1]) * len(counts)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("law", "parameters", "expected"),
    [
        ("geometric", (0.2,), stats.geom(0.2)),
        ("poisson", (3.5,), stats.poisson(3.5)),
        ("poisson", (40.0,), stats.poisson(40)),
        ("binomial", (20.0, 0.3), stats.binom(20, 0.3)),
        ("binomial", (200.0, 0.8), stats.binom(200, 0.8)),
    ],
)
def test_distributions(law, parameters, expected):
    counts = draw(law, *parameters)
    assert agrees(counts, expected)
    assert not agrees(counts + 1, expected)


@pytest.mark.parametrize(
    ("law", "parameters", "expected"),
    [
        ("geometric", (1.0,), 1), ("poisson", (0.0,), 0), ("binomial", (9.0, 1.0), 9),
        ("binomial", (9.0, 0.0), 0), ("binomial", (0.0, 0.5), 0),
        ("geometric", (0.0,), -1), ("geometric", (1.5,), -1), ("poisson", (-1.0,), -1),
        ("poisson", (math.nan,), -1), ("binomial", (-1.0, 0.5), -1), ("binomial", (9.0, 1.5), -1),
    ],
)  # fmt: skip
def test_edges_and_parameters_out_of_range(law, parameters, expected):
    assert set(draw(law, *parameters, n=20)) == {expected}


def test_counts_stay_within_the_trials():
    for trials, chance in ((3.0, 0.999), (100.0, 0.5)):
        counts = draw("binomial", trials, chance)
        assert 0 <= counts.min() <= counts.max() <= trials
        assert (counts == np.floor(counts)).all()
