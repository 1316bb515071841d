"""Running statistics equal NumPy's of all numbers at once."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import NonFiniteError, OptionError, ShapeError

M = rg.metrics


@pytest.mark.parametrize("seed", range(5))
def test_batches(seed):
    rng = np.random.default_rng(seed)
    x, w = 1e6 + rng.normal(size=(5, 3, 4)), rng.random((5, 3, 4))
    parts = [
        M.RunningStatistics(correction=1).update(x[0]).update(x[1]),
        M.RunningStatistics(correction=1),
    ]
    for i in (2, 3, 4):
        parts[1].update(x[i])
    found = {k: v.item() for k, v in parts[0].merge(parts[1]).compute().items()}
    assert found == pytest.approx(
        {"count": 60, "mean": x.mean(), "var": x.var(ddof=1), "std": x.std(ddof=1),
         "min": x.min(), "max": x.max()}, rel=1e-9,
    )  # fmt: skip
    mean, weighed = M.Mean(), M.RunningStatistics()
    for i in range(5):
        mean.update(x[i], w[i])
        weighed.update(x[i], w[i])
    expected = np.average(x, weights=w)
    assert mean.compute().item() == pytest.approx(expected, rel=1e-14)
    assert weighed.compute()["mean"].item() == pytest.approx(expected, rel=1e-14)
    variance = np.average((x - expected) ** 2, weights=w)
    assert weighed.compute()["var"].item() == pytest.approx(variance, rel=1e-9)


def test_the_pure_form():
    metric = M.RunningStatistics()
    x = rg.tensor([[1.0, 2.0], [3.0, 6.0]])
    with rg.backend("reference"):
        state = rg.jit(metric.step)(rg.jit(metric.step)(metric.init(), x[0]), x[1])
        found = {k: v.item() for k, v in metric.result(state).items()}
        assert found["mean"] == 3.0
        assert found["var"] == 3.5
        assert (found["min"], found["max"]) == (1.0, 6.0)
        assert math.isnan(metric.result(metric.init())["mean"].item())


def test_what_is_refused():
    with pytest.raises(NonFiniteError):
        M.Mean().update([1.0, math.nan])
    with pytest.raises(ShapeError):
        M.Mean().update([])
    with pytest.raises(OptionError):
        M.RunningStatistics(correction=-1)
    assert math.isnan(M.Mean().update([1.0], [0.0]).compute().item())
    assert math.isnan(M.RunningStatistics(correction=1).update([1.0]).compute()["var"].item())
