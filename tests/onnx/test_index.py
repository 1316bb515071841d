"""Indexing by data, sorting, searching and random bits."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.random.threefry import RandomBits
from retrograd.runtime.executors.reference import ReferenceProgram

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")

from tests.onnx.evaluator import agrees, run

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5, 4)).astype(np.float32)


def traced(f, *arrays):
    return rg.trace(f, *[rg.spec(a.shape, a.dtype.name) for a in arrays])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gathers_along_an_axis_and_along_rows(axis):
    index = np.array([[2, 0], [1, -1]])
    (found,) = run(traced(lambda x, i: rg.take(x, i % x.shape[axis], axis), X, index), [X, index])
    np.testing.assert_array_equal(found, np.take(X, index, axis))
    at = np.argsort(X, axis)
    graph = traced(lambda x, i: rg.take_along_axis(x, i, axis), X, at)
    np.testing.assert_array_equal(run(graph, [X, at])[0], np.sort(X, axis))


def test_updates_that_meet_are_added_up():
    index = np.array([1, 1, 4])
    updates = RNG.normal(size=(3, 3, 4)).astype(np.float32)
    expected = X.copy()
    for k, i in enumerate(index):
        expected[:, i] += updates[:, k]
    graph = traced(lambda x, i, u: rg.scatter_add(x, i, u, axis=1), X, index, updates)
    np.testing.assert_allclose(run(graph, [X, index, updates])[0], expected, rtol=1e-6)


@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_last_in_both_directions_and_equal_elements_keep_their_places(descending):
    x = np.array([2, np.nan, 1, 2, -np.inf, np.nan, np.inf, 1], np.float32)
    graph = traced(
        lambda x: (rg.sort(x, descending=descending), rg.argsort(x, descending=descending)), x
    )
    values, places = run(graph, [x])
    order = [6, 0, 3, 2, 7, 4, 1, 5] if descending else [4, 2, 7, 0, 3, 6, 1, 5]
    assert places.tolist() == order
    np.testing.assert_array_equal(values, x[order])


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_a_sorted_row(side):
    row = np.array([1, 2, 2, 3, np.nan], np.float32)
    values = np.array([[0, 2, 3], [4, np.nan, 1]], np.float32)
    graph = traced(lambda a, v: rg.searchsorted(a, v, side=side), row, values)
    (found,) = run(graph, [row, values])
    np.testing.assert_array_equal(found, np.searchsorted(row, values, side))


def test_overlapping_windows_are_added_up_where_they_lie():
    x = RNG.normal(size=(1, 2 * 3 * 2, 4)).astype(np.float32)
    kinds = agrees(lambda x: rg.nn.functional.fold(x, (4, 3), (3, 2), dilation=(1, 1)), x)
    assert "ScatterND" in kinds


def test_random_bits_are_those_of_the_library():
    key = np.array([3, 5], np.uint32)
    x = input_node(spec((2,), "uint32"), "key")
    graph = Graph([x], [RandomBits((3, 2))(x)])
    found = run(graph, [key])[0]
    np.testing.assert_array_equal(found, ReferenceProgram(graph)([key])[0])
    assert len(set(found.reshape(-1).tolist())) == 6
