"""Sorting is XLA's, stable, with NaN at the end whatever the direction."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import operations, value

X = np.array([[3.0, np.nan, -1.0, 3.0, -0.0], [0.0, 2.0, 2.0, np.inf, -np.inf]])


def test_sort_and_argsort() -> None:
    assert operations(lambda x: rg.sort(x, axis=1), X).count("sort") == 1
    np.testing.assert_array_equal(value(lambda x: rg.sort(x, axis=1), X), np.sort(X, 1))
    for axis in (0, 1):
        found = value(lambda x, axis=axis: rg.argsort(x, axis=axis), X)
        np.testing.assert_array_equal(found, np.argsort(X, axis, kind="stable"))
        assert found.dtype == np.int64


def test_descending_keeps_the_order_of_equal_ones() -> None:
    found = value(lambda x: rg.argsort(x, axis=1, descending=True), X)
    np.testing.assert_array_equal(found, [[0, 3, 4, 2, 1], [3, 1, 2, 0, 4]])
    least = np.array([np.iinfo(np.int64).min, 5, np.iinfo(np.int64).max])  # has no opposite
    down = value(lambda x: rg.sort(x, descending=True), least)
    np.testing.assert_array_equal(down, least[::-1])


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side: Literal["left", "right"]) -> None:
    row = np.array([-1.0, 0.5, 0.5, 2.0, np.nan])
    values = np.array([[0.5, -3.0, np.nan], [2.0, 9.0, -1.0]])
    found = value(lambda r, v: rg.searchsorted(r, v, side=side), row, values)
    np.testing.assert_array_equal(found, np.searchsorted(row, values, side))
    none = value(lambda r, v: rg.searchsorted(r, v, side=side), row[:0], values)
    np.testing.assert_array_equal(none, np.zeros((2, 3)))
