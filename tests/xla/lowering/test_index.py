"""Reading by positions: counted from the end, checked, of every integer dtype."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from retrograd.xla.graph_function import GraphFunction, x64
from tests.xla.lowering.programs import operations, traced, value

X = np.random.default_rng(0).normal(size=(5, 3))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_gather(dtype: str) -> None:
    at = np.array([[4, 0], [2, 2]]).astype(dtype)
    found = operations(lambda x, i: x[i], X, at)
    assert found.count("gather") == 1
    np.testing.assert_array_equal(value(lambda x, i: x[i], X, at), X[at])


def test_from_the_end_and_on_two_axes() -> None:
    i, j = np.array([-1, 0, -5]), np.array([2, -3, 1])
    np.testing.assert_array_equal(value(lambda x, i, j: x[i, j], X, i, j), X[i, j])


@pytest.mark.parametrize("bad", [5, -6, 2**40, -(2**62)])
def test_out_of_range(bad: int) -> None:
    with pytest.raises(rg.IndexRangeError, match=f"the index {bad} on axis 0 of size 5"):
        value(lambda x, i: x[i], X, np.array([0, bad]))


def test_what_is_known_to_be_inside_is_not_checked() -> None:
    known = GraphFunction(traced(lambda x: x[rg.tensor(np.array([4, 0]))], X))
    asked = GraphFunction(traced(lambda x, i: x[i], X, np.array([4, 0])))
    with x64():
        known(X)
        asked(X, np.array([4, 0]))
    assert (known.has_checks, asked.has_checks) == (False, True)


def test_no_positions() -> None:
    assert value(lambda x, i: x[i], X, np.zeros((0, 2), np.int64)).shape == (0, 2, 3)
