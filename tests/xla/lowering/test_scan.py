"""Running results along an axis."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import value

X = np.random.default_rng(0).normal(size=(3, 7))


def test_sums_products_extrema() -> None:
    np.testing.assert_allclose(value(lambda x: rg.cumsum(x, axis=1), X), X.cumsum(1), rtol=1e-12)
    np.testing.assert_allclose(value(lambda x: rg.cumprod(x, axis=0), X), X.cumprod(0), rtol=1e-13)
    found = value(lambda x: rg.cummax(x, axis=1), X)
    np.testing.assert_array_equal(found, np.maximum.accumulate(X, 1))
    found = value(lambda x: rg.logcumsumexp(x, axis=1), X)
    np.testing.assert_allclose(found, np.logaddexp.accumulate(X, 1), rtol=1e-12)


def test_long_sums_of_float32_are_rounded_once() -> None:
    """Within half a unit of the last place of the exact sums, all the way."""
    x = np.random.default_rng(1).random(100_000).astype(np.float32)
    exact = x.astype(np.float64).cumsum()
    found = value(lambda x: rg.cumsum(x, axis=0), x).astype(np.float64)
    assert (np.abs(found - exact) <= 0.5000001 * np.spacing(exact.astype(np.float32))).all()


def test_the_gradient_of_a_running_extremum_goes_to_where_it_was_attained() -> None:
    x = np.array([1.0, 3.0, 3.0, 2.0, 9.0])
    found = value(rg.grad(lambda x: (rg.cummax(x) * rg.arange(1, 6)).sum()), x)
    np.testing.assert_array_equal(found, [1, 2 + 3 + 4, 0, 0, 5])


def test_the_gradient_of_a_running_sum() -> None:
    g = value(rg.grad(lambda x: (rg.cumsum(x, axis=1) * rg.arange(7)).sum()), X)
    want = np.broadcast_to(np.arange(7)[::-1].cumsum()[::-1], X.shape)
    np.testing.assert_allclose(g, want, rtol=1e-13)
