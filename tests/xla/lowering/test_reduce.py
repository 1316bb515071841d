"""Reductions, and where extrema are."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from scipy.special import logsumexp

from tests.xla.lowering.programs import operations, value

X = np.random.default_rng(0).normal(size=(3, 5, 4))


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (lambda x: x.sum(axis=(0, 2)), lambda x: x.sum((0, 2))),
        (lambda x: x.prod(axis=1), lambda x: x.prod(1)),
        (lambda x: x.max(axis=2), lambda x: x.max(2)),
        (lambda x: x.min(axis=(0, 1)), lambda x: x.min((0, 1))),
        (lambda x: rg.logsumexp(x, axis=1), lambda x: logsumexp(x, 1)),
        (lambda x: (x > 1.5).any(axis=1), lambda x: (x > 1.5).any(1)),
        (lambda x: (x < 2.0).all(axis=(1, 2)), lambda x: (x < 2.0).all((1, 2))),
        (lambda x: x.argmax(axis=1), lambda x: x.argmax(1)),
        (lambda x: x.argmin(axis=2), lambda x: x.argmin(2)),
    ],
)
def test_as_in_numpy(f, g) -> None:
    assert "reduce" in operations(f, X)
    np.testing.assert_allclose(value(f, X), g(X), rtol=1e-13)


def test_halves_are_added_up_in_float32() -> None:
    x = np.full(5000, 1.0, np.float16)
    found = value(lambda x: x.sum(), x)
    assert found.dtype == np.float16
    assert found == 5000


def test_logsumexp_of_infinities_and_of_nothing() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 0.0], [800.0, 800.0], [np.nan, 1.0]])
    found = value(lambda x: rg.logsumexp(x, axis=1), x)
    np.testing.assert_allclose(found, [-np.inf, np.inf, 800 + np.log(2), np.nan], rtol=1e-15)
    none = value(lambda x: rg.logsumexp(x, axis=1), np.ones((2, 0)))
    np.testing.assert_array_equal(none, [-np.inf, -np.inf])


def test_the_first_extremum_and_the_first_nan() -> None:
    x = np.array([[1.0, 4.0, 4.0], [2.0, np.nan, np.nan]])
    np.testing.assert_array_equal(value(lambda x: x.argmax(axis=1), x), [1, 1])
