"""Patterns of what is read and written at positions, known or not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.transforms.sparse.covering import assert_covers, pattern_of

INDEX = np.array([3, 0, 3, 5])

# Functions of a vector of six elements, and whether the pattern is exact.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "gather": (lambda x: rg.take(x, INDEX) ** 2, True),
    "scatter": (lambda x: rg.zeros(6, dtype="float64").at[INDEX].add(x[:4] ** 2), True),
    "set": (lambda x: x.at[np.array([1, 2])].set(x[:2] * 2), False),
    "rows at positions that are not known": (
        lambda x: rg.take_along_axis(x.reshape(2, 3), rg.argsort(x.reshape(2, 3), axis=1), axis=1),
        False,
    ),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(4)
def test_what_is_left_out_is_zero(name, backend):
    f, exact = FUNCTIONS[name]
    assert_covers(f, exact, backend)


def test_at_a_known_position_one_element_is_read():
    found = pattern_of(
        lambda x: rg.take(x.reshape(2, 3), np.array([2, 2]), 1).reshape(-1), np.ones(6)
    )
    right = np.zeros((4, 6), bool)
    right[[0, 1, 2, 3], [2, 2, 5, 5]] = True
    np.testing.assert_array_equal(found, right)


def test_at_an_unknown_position_it_may_be_any_of_the_line_and_of_no_other():
    def f(x):
        at = rg.argsort(x.reshape(2, 3), axis=1)
        return rg.take_along_axis(x.reshape(2, 3), at, axis=1).reshape(-1)

    found = pattern_of(f, np.arange(6.0))
    np.testing.assert_array_equal(found, np.kron(np.eye(2), np.ones((3, 3))) != 0)


@pytest.mark.parametrize("known", [True, False])
def test_updates_reach_their_positions_or_all_of_the_line(known):
    index = np.array([3, 1])

    def f(x):
        at = index if known else rg.argsort(x[:2])
        return rg.zeros(4, dtype="float64").at[at].add(x)

    found = pattern_of(f, np.array([2.0, 1.0]))
    right = np.ones((4, 2), bool)
    if known:
        right = np.zeros((4, 2), bool)
        right[index, [0, 1]] = True
    np.testing.assert_array_equal(found, right)
