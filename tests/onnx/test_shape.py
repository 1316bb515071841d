"""Ops that move elements: what each becomes, and what needs no operator at all."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, full, int64, spec
from retrograd.ops.leaf import Iota, SizeOf, input_node
from retrograd.ops.shape import Flip, Pad, Slice
from retrograd.ops.windows import Windows

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")

from tests.onnx.evaluator import run

X = np.arange(10.0, dtype=np.float32).reshape(2, 5)


def moved(op, x=X, shape=None):
    node = input_node(spec(shape or x.shape), "x")
    return run(Graph([node], [op(node)]), [x])[0]


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("named", [False, True])
def test_values_around_and_between(length, named):
    x = X[:, :length]
    shape = (2, rg.Dim("N")) if named else None
    y = moved(lambda n: Pad((0, 1), (1, 2), (0, 3))(n, full(-7.0, spec(()))), x, shape)
    expected = np.full((3, 3 + 4 * length - 3), -7, np.float32)
    expected[:2, 1:-2:4] = x
    np.testing.assert_array_equal(y, expected)


def test_slices_with_steps_and_reversals():
    np.testing.assert_array_equal(moved(Slice((0, 1), (2, 5), (1, 2))), X[:, 1:5:2])
    np.testing.assert_array_equal(moved(Flip((1,))), X[:, ::-1])
    np.testing.assert_array_equal(moved(Flip(())), X)
    assert moved(Slice((0, 3), (2, 3), (1, 1))).shape == (2, 0)


def test_leaves_of_named_sizes():
    n = rg.Dim("N")
    x = input_node(spec((n,)), "x")
    graph = Graph([x], [Iota((2, n), 1, int64)(), SizeOf(n * n, int64)(), full(3, spec((n,)))])
    counted, size, threes = run(graph, [np.zeros(3, np.float32)])
    assert counted.tolist() == [[0, 1, 2]] * 2
    assert size == 9
    assert threes.tolist() == [3, 3, 3]


def test_windows_over_two_axes():
    x = np.arange(35.0, dtype=np.float32).reshape(5, 7)
    y = moved(Windows((2, 3), (2, 1), (1, 2)), x)
    expected = [
        [[[x[2 * i + a, j + 2 * b] for b in range(3)] for a in range(2)] for j in range(3)]
        for i in range(2)
    ]
    np.testing.assert_array_equal(y, expected)
