"""Sorting and searching of what is stored, and of what is computed where it is read."""

from typing import Literal

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, Node, float32, float64, spec
from retrograd.ops.elementwise import neg
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Flip, Permute
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.runtime.executable import Executable


def views(x: Node) -> list[Node]:
    return [x, neg(x), Permute((1, 0))(x), Flip((1,))(x)]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.sample(1)
def test_rows_of_views(dtype) -> None:
    """The words of a float64 and its position need memory of their own."""
    x = input_node(spec((Dim("N"), 5), dtype))
    ops = Sort(1, True), ArgSort(1), ArgSort(1, False, 2)
    outputs = [op(v) for v in views(x) for op in ops]
    program = Executable(Graph([x], outputs))
    for n in (4, 2):
        a = np.random.default_rng(0).integers(0, 4, (n, 5)).astype(dtype.dtype)
        before = a.copy()
        found = program([a])
        for k, v in enumerate((a, -a, a.T, a[:, ::-1])):
            order = np.argsort(v, axis=1, kind="stable")
            np.testing.assert_array_equal(found[3 * k], -np.sort(-v, axis=1))
            np.testing.assert_array_equal(found[3 * k + 1], order)
            np.testing.assert_array_equal(found[3 * k + 2], order[:, :2])
        np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("right", [False, True])
def test_searches_in_one_row_and_in_a_row_each(right: bool) -> None:
    side: Literal["right", "left"] = "right" if right else "left"
    row, rows = np.array([0, 1, 1, 3.0]), np.array([[0, 1, 1, 3], [-2, -2, 5, 9.0]])
    values = np.array([[-1, 0, 1], [2, 3, 4.0]])
    for shared, haystack in ((0, row), (1, rows)):
        x, v = (input_node(spec(a.shape, float64)) for a in (haystack, values))
        (found,) = Executable(Graph([x, v], [SearchSorted(right, shared)(x, neg(neg(v)))]))(
            [haystack, values]
        )
        for k in range(2):
            own = rows[k] if shared else row
            np.testing.assert_array_equal(found[k], np.searchsorted(own, values[k], side))
