"""The graph of linear bounds has the values of the program, in operations that have relaxations."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.graph.graph import Graph, trace
from retrograd.ir import TensorType, float32, float64
from retrograd.nn import functional as F
from retrograd.verify.bound_propagation.linear_graph import rewritten, row, unrolled

X = np.random.default_rng(0).normal(size=(3, 4))
TYPE = TensorType(float64, (3, 4))
e = np.exp(X)
# A function, its values by NumPy, and what is not to be left of it.
CASES = {
    "maximum": (lambda x: rg.maximum(x, 0.5), np.maximum(X, 0.5), "max"),
    "minimum": (lambda x: rg.minimum(0.5, x), np.minimum(X, 0.5), "min"),
    "logaddexp": (lambda x: rg.logaddexp(x, x[::-1]), np.logaddexp(X, X[::-1]), "logaddexp"),
    "min": (lambda x: rg.min(x, axis=1), X.min(1), "reduce_min"),
    "quotient": (lambda x: x / (x * x + 1), X / (X * X + 1), "div"),
    "softmax": (lambda x: rg.softmax(x, -1), e / e.sum(1, keepdims=True), "reduce_max"),
    "log_softmax": (
        lambda x: rg.log_softmax(x, 0), X - np.log(e.sum(0)), "reduce_max"),
    "leaky relu": (lambda x: F.leaky_relu(x, 0.1), np.where(X > 0, X, 0.1 * X), "select"),
    "another select": (lambda x: rg.where(x > 0, x, 0.1 + x), np.where(X > 0, X, 0.1 + X), ""),
    "padding": (
        lambda x: rg.pad(x, ((1, 0), (2, 3)), constant_values=2.5),
        np.pad(X, ((1, 0), (2, 3)), constant_values=2.5), "pad"),
    "max_pool": (
        lambda x: F.max_pool1d(x[None], 2, stride=2, padding=1)[0],
        np.stack([X[:, 0], X[:, 1:3].max(1), X[:, 3]], 1), "max_pool"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def by_meaning():
    with rg.backend("reference"):
        yield


@pytest.mark.parametrize("name", CASES)
def test_values_stay_what_they_are(name):
    f, exact, gone = CASES[name]
    found = rewritten(trace(f, TYPE))
    assert gone not in {node.op for node in found.graph.nodes}
    (y,) = found.graph.outputs
    np.testing.assert_allclose(Graph(found.graph.inputs, [y])(X).numpy(), exact, rtol=1e-12)


def test_what_stands_for_a_node_of_the_program_and_what_only_helps():
    found = rewritten(trace(lambda x: rg.sin(rg.maximum(x, 0.5) + x), TYPE))
    program = {node.op: of.op for node, of in found.program.items()}
    assert program == {"add": "max"}
    assert {node.op for node in found.helping} == {"relu", "sub"}
    (node,) = found.program
    assert node in found.graph.nodes
    assert found.helping < set(found.graph.nodes)


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_are_written_out(reverse):
    def step(total, x):
        total = 0.5 * total + x
        return total, total * x

    def f(x):
        return rg.scan(step, 0 * x[0], x, reverse=reverse)

    plain = unrolled(trace(f, TYPE))
    assert not any("scan" in node.op for node in plain.nodes)
    total, rows = np.zeros(4), np.zeros_like(X)
    for t in reversed(range(3)) if reverse else range(3):
        total = 0.5 * total + X[t]
        rows[t] = total * X[t]
    last, stacked = Graph(plain.inputs, plain.outputs)(X)
    np.testing.assert_allclose(last.numpy(), total, rtol=1e-12)
    np.testing.assert_allclose(stacked.numpy(), rows, rtol=1e-12)


def test_a_row():
    (x,) = trace(rg.exp, TYPE).inputs
    assert Graph([x], [row(x, 2)])(X).tolist() == X[2].tolist()


def test_gelu_of_float32_is_seen_in_what_it_is_written_as():
    special = pytest.importorskip("scipy.special")
    found = rewritten(trace(rg.gelu, TensorType(float32, (3, 4)))).graph
    assert {node.op for node in found.body} <= {"constant", "mul", "erfc"}
    y = np.asarray(Graph(found.inputs, found.outputs)(X.astype(np.float32)))
    np.testing.assert_allclose(y, X * special.ndtr(X), rtol=1e-5)
