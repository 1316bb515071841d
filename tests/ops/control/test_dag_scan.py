"""States along a graph by a loop over its nodes, with and against the edges."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Graph, TensorType, float32, float64, int64
from retrograd.ops.control.dag_scan import DagScan
from retrograd.ops.control.row_functions import ROWS
from retrograd.ops.elementwise import tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.toposort import DagOrder
from retrograd.verify.rule_checks import check_gradient, check_result

EDGES = np.array([[0, 0, 1, 3, 3, 0], [1, 2, 2, 2, 4, 1]])
N, S = 5, 2
RNG = np.random.default_rng(0)
WEIGHTS, INPUTS, W = RNG.normal(size=(6, S)), RNG.normal(size=(N, S)), RNG.normal(size=(S, S))
ROW = TensorType(float64, (ROWS, S))


def scan(reverse=False):
    """Messages `h * e`, cells `tanh(a W + x)`."""
    h, e, a, x = (input_node(ROW) for _ in range(4))
    w = input_node(TensorType(float64, (S, S)))
    message, cell = Graph([h, e], [h * e]), Graph([a, x, w], [tanh(matmul(a, w) + x)])
    return DagScan(N, message, cell, 1, 0, 1, reverse)


def arrays(edges=EDGES):
    order = DagOrder(N).reference(edges)
    return [edges, order, WEIGHTS[: edges.shape[1]], INPUTS, W]


@pytest.mark.parametrize("reverse", [False, True])
def test_states_by_a_loop(reverse):
    op = scan(reverse)
    y = check_result(op, arrays())
    source, target = EDGES[::-1] if reverse else EDGES
    h, a = np.zeros((N, S)), np.zeros((N, S))
    for v in (2, 4, 1, 3, 0) if reverse else (0, 3, 1, 4, 2):
        for e in np.flatnonzero(target == v):
            a[v] += h[source[e]] * WEIGHTS[e]
        h[v] = np.tanh(a[v] @ W + INPUTS[v])
    np.testing.assert_allclose(y, np.concatenate([h, a], axis=1), atol=1e-14)
    check_gradient(op, arrays(), [2, 3, 4])


def test_without_edges_every_node_is_alone():
    y = check_result(scan(), arrays(np.zeros((2, 0), np.int64)))
    np.testing.assert_allclose(y[:, :S], np.tanh(INPUTS))
    assert (y[:, S:] == 0).all()


def test_what_does_not_fit():
    op = scan()
    types = [TensorType(int64, a.shape) for a in arrays()[:2]]
    types += [TensorType(float64, a.shape) for a in arrays()[2:]]

    def of(k, type):
        return [input_node(type if i == k else t) for i, t in enumerate(types)]

    with pytest.raises(ShapeError, match="is no order of them"):
        op(*of(1, TensorType(int64, (7,))))
    with pytest.raises(ShapeError, match="it must have 6 rows"):
        op(*of(2, TensorType(float64, (7, S))))
    with pytest.raises(ShapeError, match="a body takes"):
        op(*of(4, TensorType(float64, (S, 3))))
    with pytest.raises(DTypeError, match="edges as int64"):
        op(*of(0, TensorType(float32, (2, 6))))
    with pytest.raises(ShapeError, match="goes through one graph"):
        op(*of(0, TensorType(int64, (3, 2, 6))))
