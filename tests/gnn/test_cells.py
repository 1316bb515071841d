"""Cells by their formulas in NumPy, on rows of nodes."""

import numpy as np
from scipy.special import expit as sigmoid

import retrograd as rg
from retrograd import gnn

N, S, F = 4, 3, 2
rng = np.random.default_rng(0)
A, X = rng.normal(size=(N, S)), rng.normal(size=(N, F))


def linear(layer, x):
    y = x @ layer.weight.numpy().T
    return y if layer.bias is None else y + layer.bias.numpy()


def test_sum_cell() -> None:
    cell = gnn.SumCell(F, S, rg.relu, dtype="float64")
    expected = np.maximum(linear(cell.from_sum, A) + linear(cell.from_input, X), 0)
    np.testing.assert_allclose(cell(A, X).numpy(), expected, rtol=1e-12)


def test_gru() -> None:
    """The update gate keeps of the sum of what predecessors send."""
    cell = gnn.GRU(F, S, dtype="float64")
    u, v = (
        np.split(linear(f, y), 3, axis=1) for f, y in ((cell.from_input, X), (cell.from_state, A))
    )
    r, z = sigmoid(u[0] + v[0]), sigmoid(u[1] + v[1])
    n = np.tanh(u[2] + r * v[2])
    np.testing.assert_allclose(cell(A, X).numpy(), (1 - z) * n + z * A, rtol=1e-12)


def test_a_tree_lstm_forgets_each_child_by_itself() -> None:
    cell = gnn.TreeLSTM(F, S, dtype="float64")
    tree = gnn.Graph(3, [[0, 1], [2, 2]], edge_weight=np.array([0.5, 2.0]))
    x = X[:3]

    def node(x, h_sum, c_sum):
        i, o, u = np.split(linear(cell.from_input, x) + linear(cell.from_sum, h_sum), 3, axis=1)
        c = sigmoid(i) * np.tanh(u) + c_sum
        return sigmoid(o) * np.tanh(c), c

    h, c = node(x[:2], np.zeros((2, S)), 0.0)
    forget = sigmoid(linear(cell.forget_input, x[2:]) + linear(cell.forget_state, h))
    weight = np.array([[0.5], [2.0]])
    top = node(x[2:], (weight * h).sum(0, keepdims=True), (weight * forget * c).sum(0))
    found = gnn.dag_scan(cell, tree, rg.tensor(x), tree.edge_weight)
    np.testing.assert_allclose(found["h"].numpy(), np.concatenate([h, top[0]]), rtol=1e-12)
    np.testing.assert_allclose(found["c"].numpy(), np.concatenate([c, top[1]]), rtol=1e-12)
