"""Summaries of arrays, compared with NumPy."""

import json

import numpy as np
import pytest

from retrograd.viz import strict, summary


def test_a_number_is_itself():
    assert summary(np.asarray(1.5, np.float32)) == {"data": [1.5]}
    assert summary(np.array([[7]])) == {"data": [7]}
    assert summary(np.array(True)) == {"data": [True]}
    assert strict(summary(np.array(np.inf))) == {"data": ["inf"]}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "bool"])
def test_agrees_with_numpy(dtype):
    a = (np.random.default_rng(0).normal(size=(7, 11)) * 3).astype(dtype)
    found, flat = summary(a), np.asarray(a, np.float64)
    for name in ("min", "max", "mean"):
        assert found[name] == pytest.approx(getattr(flat, name)())
    assert found["norm"] == pytest.approx(np.linalg.norm(flat))
    assert found["zeros"] == np.count_nonzero(a == 0)
    assert sum(found["hist"]) == found["size"] == a.size
    counts, _ = np.histogram(flat, len(found["hist"]))
    assert np.abs(np.cumsum(counts) - np.cumsum(found["hist"])).max() <= 1  # rounding at an edge
    assert json.loads(json.dumps(found)) == found


def test_what_is_not_finite_is_counted_and_placed():
    a = np.ones((4, 50))
    a[1, 2], a[3, 0], a[2, 7] = np.nan, np.inf, -np.inf
    found = summary(a)
    assert (found["nan"], found["inf"], found["bad"]) == (1, 2, [1, 2])
    assert (found["min"], found["max"]) == (1, 1)
    assert sum(found["hist"]) == 197


def test_extremes():
    assert summary(np.zeros((0, 3))) == {"size": 0}
    assert summary(np.full(20, np.nan))["nan"] == 20
    huge = summary(np.full(100, 1e308))
    assert huge["mean"] == pytest.approx(1e308)
    assert np.isfinite(huge["norm"])
    wide = summary(np.array([-1.7e308, 1.7e308] * 20))
    assert sum(wide["hist"]) == 40
    assert summary(np.full(30, 3 + 4j))["max"] == 5
