"""Constants, counters, sizes, and ops that only steer differentiation."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import operations, value


def test_counters_have_their_dtype() -> None:
    for dtype in ("int8", "uint64", "float16", "float32"):
        x = np.zeros(5, dtype)
        found = value(lambda x: x + rg.arange(5, dtype=x.dtype), x)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, np.arange(5))


def test_a_constant_stands_in_the_program() -> None:
    table = np.random.default_rng(0).normal(size=(2, 3))
    f = lambda x: x + rg.tensor(table)
    assert "constant" in operations(f, table)
    np.testing.assert_array_equal(value(f, table), 2 * table)


def test_what_steers_differentiation_computes_nothing() -> None:
    f = lambda x: rg.stop_gradient(x)
    assert [x for x in operations(f, np.ones(3)) if x != "return"] == []
    slope = value(rg.grad(lambda x: (x * rg.stop_gradient(x)).sum()), np.array([3.0, 5.0]))
    np.testing.assert_array_equal(slope, [3.0, 5.0])


def test_what_is_computed_again_stays_apart() -> None:
    """Otherwise XLA would merge it with what was there, and keep that."""
    f = rg.grad(lambda x: rg.checkpoint(lambda x: rg.sin(rg.sin(x)))(x).sum())
    x = np.array([0.3, -2.0])
    assert "optimization_barrier" in operations(f, x)
    np.testing.assert_allclose(value(f, x), np.cos(np.sin(x)) * np.cos(x), rtol=1e-14)
