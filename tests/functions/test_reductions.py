"""Reductions against NumPy: along every axis, over nothing, and of too few."""

from typing import Any

import numpy as np
import pytest
from scipy import special

import retrograd as rg
from tests.functions.numpy_arrays import B, C, same

pytestmark = pytest.mark.usefixtures("reference")


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, -2, -3)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
@pytest.mark.sample(16)
def test_reductions(name, axis, keepdims):
    x = C > 0.2 if name in ("any", "all") else C
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    same(getattr(rg, name)(x, axis=axis, keepdims=keepdims), expected, 1e-5)


def test_more_reductions():
    same(rg.logsumexp(C, axis=1), special.logsumexp(C, axis=1), 1e-5)
    same(rg.var(C, axis=0, correction=1), C.var(0, ddof=1), 1e-5)
    axes: list[Any] = [None, 0, -1]
    for axis in axes:
        same(rg.argmax(C, axis=axis), C.argmax(axis))
        same(rg.argmin(C, axis=axis, keepdims=True), C.argmin(axis, keepdims=True))
    same(rg.cumulative_sum(C, axis=1), C.cumsum(1), 1e-5)
    same(rg.cumsum(B), B.cumsum(), 1e-5)
    assert rg.sum(rg.tensor([True, True])).item() == 2
    assert rg.sum(rg.tensor([200, 100], dtype="uint8")).item() == 300


def test_reductions_over_nothing():
    empty = rg.zeros((0, 3))
    assert empty.sum().item() == 0
    assert empty.prod(axis=0).tolist() == [1, 1, 1]
    assert empty.logsumexp(axis=0).tolist() == [-np.inf] * 3
    assert np.isnan(empty.mean().item())
    assert rg.all(empty).item() is True
    with pytest.raises(rg.ShapeError, match="no elements"):
        empty.max()


@pytest.mark.parametrize(("n", "correction"), [(0, 0), (0, 1), (1, 1), (2, 3), (1, 0), (3, 1.5)])
def test_variance_of_too_few_is_nan(n, correction):
    x = np.arange(n, dtype=np.float64)
    f = rg.jit(lambda x: rg.var(x, correction=correction), shapes={"x": "N"})
    expected = np.nan if n <= correction else np.sum((x - x.mean()) ** 2) / (n - correction)
    for y in (rg.var(x, correction=correction), f(x), rg.std(x, correction=correction) ** 2):
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)
