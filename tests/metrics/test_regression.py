"""Errors of numbers, written out."""

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError, ShapeError

M = rg.metrics
P, T = [2.0, 0.0, 6.0], [1.0, 2.0, 3.0]  # errors 1, -2, 3
PP, TT = [[1.0, 2.0], [3.0, 6.0]], [[1.0, 1.0], [1.0, 3.0]]


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (M.mse, 14 / 3),
        (M.rmse, math.sqrt(14 / 3)),
        (M.mae, 2.0),
        (M.mape, 1.0),
        (M.median_absolute_error, 2.0),
        (M.r2, 1 - 14 / 2),
        (M.explained_variance, 1 - (14 - 4 / 3) / 2),
    ],
)
def test_values(f, value):
    assert f(P, T).item() == pytest.approx(value)
    assert f(np.array(P)[:, None], T).item() == pytest.approx(value)


def test_outputs():
    assert M.mse(PP, TT, multioutput="raw_values").tolist() == [2.0, 5.0]
    assert M.mse(PP, TT).item() == 3.5
    assert M.mse(PP, TT, multioutput=[3, 1]).item() == 2.75
    assert M.r2(PP, TT, multioutput="raw_values").tolist() == [0.0, -4.0]
    assert M.r2(PP, TT, multioutput="variance_weighted").item() == -4.0


def test_weights_and_constant_targets():
    assert M.median_absolute_error(P, T, sample_weight=[0, 1, 1]).item() == 2.5
    assert M.r2([1.0, 1.0], [1.0, 1.0]).item() == 1.0
    assert M.r2([1.0, 2.0], [1.0, 1.0]).item() == 0.0
    assert M.r2([1.0, 2.0], [1.0, 1.0], force_finite=False).item() == -math.inf
    assert math.isnan(M.r2([1.0], [1.0]).item())
    assert M.mape([1.0], [0.0]).item() == 2.0**52


def test_r2_far_from_zero_is_as_good_over_batches():
    rng = np.random.default_rng(0)
    t = 1e8 + rng.normal(size=1000)
    p = t + 0.1 * rng.normal(size=1000)
    metric = M.R2()
    for i in range(0, 1000, 10):
        metric.update(p[i : i + 10], t[i : i + 10])
    centred = M.r2(p - 1e8, t - 1e8).item()
    assert metric.compute().item() == pytest.approx(centred, abs=1e-9)


def test_what_is_refused():
    cases: list[tuple[Any, dict[str, Any]]] = [
        (M.mse, {"multioutput": "variance_weighted"}),
        (M.mse, {"multioutput": [1.0]}),
        (M.mse, {"multioutput": [0.0, 0.0]}),
        (M.r2, {"multioutput": "mean"}),
    ]
    for f, options in cases:
        with pytest.raises(OptionError, match="multioutput"):
            f(PP, TT, **options)
    with pytest.raises(ShapeError, match="make them"):
        M.mse(PP, T[:2])
    with pytest.raises(ShapeError, match="num_outputs=1"):
        M.MSE(num_outputs=1).update(PP, TT)
    with pytest.raises(OptionError, match="num_outputs"):
        M.MSE(num_outputs=0)
