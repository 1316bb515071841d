"""Precision, recall and F-scores, written out."""

import math

import pytest

import retrograd as rg
from retrograd.errors import OptionError

M = rg.metrics
P, T = [1, 1, 1, 0, 0, 1], [1, 0, 1, 1, 0, 0]  # 2 hits, 2 that are none, 1 missed


@pytest.mark.parametrize(
    ("f", "options", "value"),
    [
        (M.precision, {}, 2 / 4),
        (M.recall, {}, 2 / 3),
        (M.f1, {}, 4 / 7),
        (M.fbeta, {"beta": 2.0}, 10 / 16),
        (M.fbeta, {"beta": 0}, 2 / 4),
        (M.fbeta, {"beta": math.inf}, 2 / 3),
        (M.jaccard, {}, 2 / 5),
    ],
)
def test_values(f, options, value):
    assert f(P, T, **options).item() == pytest.approx(value, abs=1e-16)


def test_beta():
    for beta in [-1.0, math.nan, "1"]:
        with pytest.raises(OptionError, match="beta"):
            M.fbeta(P, T, beta=beta)  # type: ignore[arg-type]
        with pytest.raises(OptionError, match="beta"):
            M.FBeta(beta)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="beta"):
        M.FBeta(2.0).merge(M.FBeta(1.0))
