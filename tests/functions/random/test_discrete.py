"""Counts drawn: by chi squared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import retrograd as rg

COUNT = 4000
Draw = Callable[[rg.random.Generator, Any], rg.Tensor]
COUNTS: dict[str, tuple[Draw, Any]] = {
    "poisson": (lambda g, n: g.poisson(3.0, n), stats.poisson(3)),
    "poisson 10": (lambda g, n: g.poisson(10.0, n), stats.poisson(10)),
    "poisson 40": (lambda g, n: g.poisson(40.0, n), stats.poisson(40)),
    "binomial": (lambda g, n: g.binomial(10, 0.3, n), stats.binom(10, 0.3)),
    "binomial large": (lambda g, n: g.binomial(200, 0.8, n), stats.binom(200, 0.8)),
    "geometric": (lambda g, n: g.geometric(0.2, n), stats.geom(0.2)),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.sample(3)
def test_counts(name: str) -> None:
    """By chi squared."""
    draw, law = COUNTS[name]
    x = draw(rg.random.Generator(3), (COUNT,)).numpy()
    with rg.backend("reference"):
        assert x.tobytes() == draw(rg.random.Generator(3), (COUNT,)).numpy().tobytes()
    assert x.dtype == np.int64
    k = np.arange(x.min(), x.max() + 1)
    expected = law.pmf(k) * COUNT
    found = np.bincount(x - x.min(), minlength=len(k))
    often = expected > 5
    chi = ((found - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2(often.sum() - 1).sf(chi) > 1e-3
