"""Sizes with names, and values that must be known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.interop.onnx import values
from retrograd.interop.onnx.values import NeedsValue, SymbolicSizes, from_sizes
from retrograd.ir import Dim, TensorType, float64

N = Dim("N")


def unknown() -> Any:
    """What an input of a graph is while it is traced."""
    found: list[Any] = []

    def f(x: Any) -> Any:
        found.append(x)
        return x

    rg.trace(f, np.zeros(2))
    return found[0]


def test_sizes_that_are_known_become_numbers() -> None:
    found = from_sizes([[2, 3], [4, 5]])
    assert (found.dtype, found.tolist()) == (rg.int64, [[2, 3], [4, 5]])
    assert values.as_tensor(found) is found
    partly = from_sizes([2, 3 * N + 1])
    assert isinstance(partly, SymbolicSizes)
    assert partly.shape == (2,)
    assert values.sizes(partly, "") == (2, 3 * N + 1)


def test_sizes_with_names_are_computed_when_a_graph_runs() -> None:
    """The tensor of N, N + 2 and 7, beside the shape that an input has then."""

    def f(x: Any) -> Any:
        n = x.shape[0]
        return values.as_tensor(from_sizes(np.array([[n, n + 2], [7, n * n]], object)))

    graph = rg.trace(f, TensorType(float64, (N,)))
    with rg.backend("reference"):
        for n in (1, 4):
            found = graph(np.zeros(n))
            assert (found.dtype, found.tolist()) == (rg.int64, [[n, n + 2], [7, n * n]])


def test_what_is_known_is_read_in_each_form() -> None:
    x = rg.asarray(np.array([[1, 2], [3, 4]]))
    assert values.ints(x, "") == values.sizes(x, "") == (1, 2, 3, 4)
    assert values.known_sizes(x).dtype == object
    np.testing.assert_array_equal(values.array(x, ""), [[1, 2], [3, 4]])
    assert values.number(rg.asarray([[2.5]]), "") == 2.5
    with pytest.raises(ValueError, match="unpack"):
        values.number(x, "")


def test_what_is_not_known_is_said() -> None:
    x = unknown()
    assert values.known(x) is values.known_sizes(x) is None
    assert values.known(from_sizes([N])) is None
    for read in (values.array, values.sizes, values.ints, values.number):
        with pytest.raises(NeedsValue, match="the axes of Op") as error:
            read(x, "the axes of Op")
        assert not error.value.is_placed
    with pytest.raises(NeedsValue, match="axes"):
        values.ints(from_sizes([N]), "axes")


def test_a_parameter_has_its_value() -> None:
    x = unknown()
    values.PARAMETERS[x.node] = np.array([4, 6])
    assert values.sizes(x, "") == (4, 6)
