"""Ends, weights and types of edges: the first that is wrong is named."""

from typing import Any

import numpy as np
import pytest

from retrograd.errors import FormatError, IndexKindError, IndexRangeError, ShapeError
from retrograd.gnn.checks import check_ends, check_types, check_weights, edge_numbers

ENDS = np.array([[0, 1, 2], [1, 2, 0]])


def test_ends() -> None:
    check_ends(ENDS, 3)
    check_ends(np.zeros((2, 0), int), 0)
    with pytest.raises(IndexRangeError, match=r"edge 1 leads from node 1 to node 2, .* 2 nodes"):
        check_ends(ENDS, 2)
    with pytest.raises(IndexRangeError, match="edge 0 leads from node -1"):
        check_ends(np.array([[-1], [0]]), 3)


def test_edge_numbers() -> None:
    chosen: Any
    for chosen, expected in (([2, -1], [2, -1]), ([], []), ([True, False, True], [0, 2])):
        found = edge_numbers(chosen, 3)
        assert found.tolist() == expected
        assert found.dtype == np.int64
    for chosen, error, message in (
        ([0, 3], IndexRangeError, "edge 3 of a graph with 3 edges"),
        ([-4], IndexRangeError, "edge -4"),
        ([True], ShapeError, "3 booleans"),
        (1, ShapeError, r"shape \(\)"),
        ([0.5], IndexKindError, "float64"),
    ):
        with pytest.raises(error, match=message):
            edge_numbers(chosen, 3)


def test_weights() -> None:
    weights = np.array([1.0, -2.0, np.inf])
    check_weights(weights[:2], ENDS[:, :2], negative=True)
    check_weights(weights, ENDS, negative=True, finite=False)
    with pytest.raises(
        FormatError, match=r"edge 2, from node 2 to node 0, .*have to be finite here"
    ):
        check_weights(weights, ENDS, negative=True)
    with pytest.raises(FormatError, match=r"edge 1, .* -2\.0; .*finite and not negative"):
        check_weights(weights, ENDS, negative=False)
    with pytest.raises(FormatError, match="edge 1"):  # several numbers for each edge
        check_weights(np.array([[1.0, 1.0], [1.0, np.nan]]), ENDS[:, :2], negative=True)
    with pytest.raises(FormatError, match="edge 0"):  # neither negative nor not
        check_weights(np.array([np.nan]), ENDS[:, :1], negative=False, finite=False)


def test_types() -> None:
    check_types(np.array([0, 1, 1]), ENDS, 2)
    with pytest.raises(IndexRangeError, match="edge 2, from node 2 to node 0, has the type 2"):
        check_types(np.array([0, 1, 2]), ENDS, 2)
    with pytest.raises(IndexRangeError, match=r"edge 0, .* type -1, but there are 3 types"):
        check_types(np.array([-1, 1, 2]), ENDS, 3)
