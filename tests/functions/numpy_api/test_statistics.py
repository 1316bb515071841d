"""Weighted means, covariances, and statistics without NaN: against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.functions.sorting import METHODS
from tests.functions.numpy_api.sweeps import agree, numbers

NAN = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanmedian", "nanvar", "nanstd"]
PLACES = ["nanargmax", "nanargmin"]


def holed(seed: int, shape: tuple[int, ...], share: float = 0.4) -> Any:
    x = numbers(seed, shape)
    return np.where(np.random.default_rng(seed).random(shape) < share, np.nan, x)


@pytest.mark.parametrize("name", NAN)
@pytest.mark.sample(2)
def test_without_nan(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shape in ((5,), (3, 4), (2, 3, 4)):
            for share in (0.0, 0.4, 1.0):
                x = holed(len(shape), shape, share)
                for axis in (None, 0, -1, (0,), tuple(range(len(shape)))):
                    agree(name, x, axis=axis)
                    agree(name, x, axis=axis, keepdims=True)
        agree(name, numbers(1, (4,), "int64"))
        agree(name, np.array([1.0, np.nan, np.inf, 2.0]))
    if name in ("nanvar", "nanstd"):
        x = holed(4, (3, 5), 0.2)
        found = getattr(rg, name)(rg.asarray(x), axis=1, correction=1).numpy()
        np.testing.assert_allclose(found, getattr(np, name)(x, axis=1, ddof=1), 1e-13)


@pytest.mark.parametrize("name", PLACES)
def test_places(name: str) -> None:
    x = holed(2, (4, 5), 0.3)
    x[:, 0] = 1.0
    x[0] = 1.0
    for axis in (None, 0, 1):
        agree(name, x, axis=axis)
    assert getattr(rg, name)([rg.nan, rg.nan]).item() == -1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(2)
def test_quantiles(method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for share in (0.0, 0.4, 1.0):
            x = holed(3, (3, 6), share)
            for q in (0.0, 0.35, [0.1, 0.5, 1.0], [[0.2], [0.9]]):
                for axis in (None, 0, 1):
                    agree("nanquantile", x, q, axis=axis, method=method)
        agree("nanpercentile", holed(3, (3, 6)), [10, 70], axis=1, method=method, keepdims=True)
    with pytest.raises(rg.OptionError, match="between 0 and 1"):
        rg.nanquantile([1.0], 2.0)
    with pytest.raises(rg.OptionError, match="method is one of"):
        rg.nanquantile([1.0], 0.5, method="cubic")


def test_running() -> None:
    for axis in (None, 0, 1):
        agree("nancumsum", holed(1, (3, 4)), axis=axis)
        agree("nancumprod", holed(1, (3, 4)), axis=axis)


def test_gradients_leave_nan_out() -> None:
    x = rg.tensor([1.0, rg.nan, 3.0], dtype=rg.float64, requires_grad=True)
    total: Any = rg.nanvar(x) + rg.nanmean(x) + rg.nanquantile(x, 0.25) + rg.nanmax(x)
    total.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [-1 + 0.5 + 0.75, 0, 1 + 0.5 + 0.25 + 1], 1e-12)
    alike = rg.tensor([2.0, 2.0, rg.nan], requires_grad=True)
    rg.nanstd(alike).backward()
    assert alike.grad is not None
    assert alike.grad.tolist() == [0.0, 0.0, 0.0]


def test_averages() -> None:
    x, w = numbers(0, (3, 4)), np.abs(numbers(1, (3, 4))) + 0.5
    for axis in (None, 0, 1, (0, 1), (1, 0)):
        for weights in (None, w):
            agree("average", x, axis, weights, True)
            agree("average", x, axis, weights, keepdims=True)
    agree("average", x, 1, w[0])
    agree("average", x, (1, 0), w.T.copy())
    agree("average", numbers(0, (3, 4), "int64"), 0)
    agree("average", x, None, w[0])
    for axis in (None, 0, 1, (0, 1)):
        agree("ptp", x, axis)
        agree("ptp", x, axis, keepdims=True)


def test_covariances() -> None:
    x, y = numbers(0, (3, 5)), numbers(1, (2, 5))
    choices: list[dict[str, Any]] = [{}, {"bias": True}, {"ddof": 0}, {"ddof": 2, "bias": True}]
    for options in choices:
        agree("cov", x, **options)
        agree("cov", x, y, **options)
        agree("cov", x.T.copy(), rowvar=False, **options)
    f, a = np.array([1, 2, 1, 3, 1]), np.array([0.5, 1.0, 2.0, 1.0, 0.25])
    weights: list[dict[str, Any]] = [
        {"fweights": f},
        {"aweights": a},
        {"fweights": f, "aweights": a},
    ]
    for weighted in weights:
        for ddof in (None, 0, 1):
            agree("cov", x, ddof=ddof, **weighted)
    agree("cov", x + 1j * numbers(2, (3, 5)))
    agree("corrcoef", x, y)
    agree("corrcoef", x[0], x[1])
    agree("corrcoef", x[0])
    with pytest.raises(rg.ShapeError, match="weights"):
        rg.cov(rg.asarray(x), fweights=[1, 2])
    with pytest.raises(rg.ShapeError, match="vector or a matrix"):
        rg.cov(rg.ones((2, 2, 2)))
