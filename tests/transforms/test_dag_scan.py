"""Tracing cells and messages: what is done for each row, and what once."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, float32, float64
from retrograd.transforms.dag_scan import count_up, dag_order, dag_scan

EDGES = np.array([[0, 0, 1, 2], [1, 2, 3, 3]])
X = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [1.0, 1.0]])
WEIGHT = np.array([1.0, 2.0, -1.0, 0.5])
STATE = TensorType(float64, (2,))


@pytest.fixture(autouse=True)
def interpreted():
    with rg.backend("reference"):
        yield


def run(cell, message, x=X, edge=WEIGHT, state=STATE):
    edges = rg.tensor(EDGES)
    return dag_scan(cell, message, edges, dag_order(edges, 4), 4, x, edge, state)


def expected(cell, message):
    """Node by node, in an order in which edges lead to higher numbers."""
    h = np.zeros((4, 2))
    for v in range(4):
        a = np.zeros(2)
        for u, t, w in zip(*EDGES, WEIGHT, strict=True):
            a += message(h[u], w) if t == v else 0
        h[v] = cell(a, X[v])
    return h


def test_states_follow_from_those_of_predecessors():
    y = run(lambda a, x: rg.tanh(a + x), lambda h, w: h * w[:, None])
    right = expected(lambda a, x: np.tanh(a + x), lambda h, w: h * w)
    np.testing.assert_allclose(y.numpy(), right, rtol=1e-14)


def test_what_has_nothing_to_do_with_rows_is_computed_once_outside():
    m = rg.tensor([[0.5, 1.0], [-1.0, 2.0]], dtype="float64", requires_grad=True)

    def cell(a, x):
        return a @ rg.exp(m) + x

    graph = rg.trace(lambda: run(cell, lambda h, w: h * w[:, None]))
    (scan,) = (n for n in graph.nodes if n.op == "dag_scan")
    assert "exp" in [n.op for n in graph.body]
    assert "exp" not in [n.op for n in scan.attrs["cell"].nodes]
    y = run(cell, lambda h, w: h * w[:, None])
    assert y.requires_grad
    right = expected(lambda a, x: a @ np.exp(m.numpy()) + x, lambda h, w: h * w)
    np.testing.assert_allclose(y.numpy(), right, rtol=1e-13)


def test_states_and_sums_are_trees_that_lie_side_by_side():
    one = TensorType(float64, (1,))

    def cell(a, x):
        return {"s": a["p"] + x[:, :1], "t": a["q"] * 2 + x[:, 1:]}

    def message(h, w):
        return {"p": h["s"] * w[:, None], "q": h["t"]}

    y = run(cell, message, state={"s": one, "t": one})
    right = expected(lambda a, x: a * [1, 2] + x, lambda h, w: h * [w, 1])
    np.testing.assert_allclose(np.hstack([y["s"].numpy(), y["t"].numpy()]), right, rtol=1e-14)


def test_arrays_that_a_function_does_not_use_are_left_out():
    graph = rg.trace(lambda: run(lambda a, x: a + x["x"], lambda h, w: h, {"x": X, "k": X}))
    (scan,) = (n for n in graph.nodes if n.op == "dag_scan")
    assert len(scan.inputs) == 3  # edges, order and x


@pytest.mark.parametrize(
    ("cell", "message", "words"),
    [
        (lambda a, x: a.sum(0), lambda h, w: h, "is given rows of float64 and has to give such"),
        (lambda a, x: a.astype("float32"), lambda h, w: h, "rows of float64"),
        (lambda a, x: a[:, :1], lambda h, w: h, r"gives a state \[1\], but its states are \[2\]"),
    ],
)
def test_functions_that_give_no_rows_of_a_state(cell, message, words):
    with pytest.raises(ShapeError, match=words):
        run(cell, message)


def test_a_state_has_one_dtype():
    with pytest.raises(DTypeError, match="of one floating dtype"):
        run(lambda a, x: a, lambda h, w: h, state=[STATE, TensorType(float32, (2,))])


def test_counting_up_to_a_size_without_value():
    graph = rg.trace(lambda x: count_up(x.shape[0]) * 2, rg.spec((rg.Dim("N"),)))
    assert graph(np.zeros(3, np.float32)).tolist() == [0, 2, 4]
