"""Matrices that are well conditioned, and comparisons with them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def general(*shape: int, seed: int = 0) -> Array:
    m, n = shape[-2:]
    x = np.random.default_rng((seed, *shape)).uniform(-1, 1, shape)
    return np.asarray(x + np.eye(m, n) * (2 + np.arange(n)))


def positive(*shape: int) -> Array:
    x = general(*shape)
    return np.asarray(x @ np.swapaxes(x, -1, -2))


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    expected = np.asarray(expected)
    found = found.numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, tolerance, tolerance)
