"""Spaced numbers, positions, functions along axes: against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import agree, numbers


def test_spaced() -> None:
    a, b = np.array([0.5, -1.0]), np.array([2.0, 3.0])
    for num, endpoint in ((1, True), (4, True), (4, False), (0, True)):
        agree("logspace", a, b, num, endpoint)
        agree("logspace", a, b, num, endpoint, 2.0, axis=1)
        agree("geomspace", np.abs(a), b, num, endpoint, tolerance=1e-12)
        agree("linspace", a, b, num, endpoint=endpoint)
        agree("linspace", a, b[:, None], num, endpoint=endpoint, axis=-1)
    agree("geomspace", -b, -np.abs(a), 3, tolerance=1e-12)
    f = rg.grad(lambda s: rg.geomspace(1.0, s, 3)[1])
    assert f(rg.tensor(9.0, dtype=rg.float64)).item() == pytest.approx(1 / 6)


def test_patterns() -> None:
    agree("tri", 3)
    agree("tri", 2, 4, 1)
    agree("indices", (2, 3))
    agree("indices", (2, 3), sparse=True)
    agree("indices", ())


def test_along_axes() -> None:
    x = numbers(0, (2, 3, 4))
    t = rg.asarray(x)
    for axis in (0, 1, -1):
        for name in ("sum", "sort", "cumsum"):
            found = rg.apply_along_axis(getattr(rg, name), axis, t).numpy()
            np.testing.assert_allclose(found, np.apply_along_axis(getattr(np, name), axis, x))
        found = rg.apply_along_axis(lambda r: rg.outer(r, r), axis, t).numpy()
        right = np.apply_along_axis(lambda r: np.outer(r, r), axis, x)
        np.testing.assert_allclose(found, right)
    found = rg.apply_over_axes(rg.sum, t, (0, 2)).numpy()
    np.testing.assert_allclose(found, np.apply_over_axes(np.sum, x, (0, 2)))
    with pytest.raises(rg.ShapeError, match="no row"):
        rg.apply_along_axis(rg.sum, 0, rg.ones((2, 0)))
