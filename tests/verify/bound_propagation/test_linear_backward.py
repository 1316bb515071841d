"""A backward pass alone: a plan made by hand, and the least values that matrices give."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import GradientError
from retrograd.graph.graph import Graph, trace
from retrograd.ir import TensorType, float64
from retrograd.ops.matmul import DotGeneral
from retrograd.verify.bound_propagation.linear_backward import Planes, PropagationPlan, backward

R = np.random.default_rng(0)
W, V = R.normal(size=(3, 4)), R.normal(size=(4, 2))
LOW, HIGH = -R.uniform(size=3), R.uniform(size=3)
C = R.normal(size=(5, 2))


def plan(graph, norms=None, **roles):
    """Every node by the name of its op: "linear" where nothing else is said."""
    moving = set(graph.inputs)
    for node in graph.body:
        if any(x in moving for x in node.inputs):
            moving.add(node)
    role = {n: roles.get(n.op, "linear") if n in moving else "interval" for n in graph.nodes}
    role[graph.inputs[0]] = "interval"
    return PropagationPlan(
        graph, role, frozenset(moving),
        {n: Planes(n.inputs) for n in graph.nodes if role[n] == "relaxed"},
        frozenset(n for n in graph.nodes if isinstance(n.prim, DotGeneral) or n.op == "mul"),
        frozenset(), {}, norms or {},
    )  # fmt: skip


def run(program, c, values):
    """`values(node, what)` says what a key stands for."""
    given = [np.asarray(values(*key[:2]), np.float64) for key in program.keys]
    with rg.backend("reference"):
        return np.asarray(Graph(program.graph.inputs, program.graph.outputs)(c, *given))


def ends(node, what):
    if node.op == "constant":
        return node.prim.value
    return {"low": LOW, "high": HIGH, "centre": LOW / 2 + HIGH / 2, "radius": 0.3}[what]


def least(a, low=LOW, high=HIGH):
    """Of functions `a . x` of a box."""
    return np.minimum(a * low, a * high).sum(-1)


def test_a_linear_function_of_a_box():
    graph = trace(lambda x: (x @ W) @ V, TensorType(float64, (3,)))
    found = run(backward(plan(graph), graph.outputs[0]), C, ends)
    np.testing.assert_allclose(found, least(C @ (W @ V).T), rtol=1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_in_a_ball_by_the_dual_norm(norm):
    graph = trace(lambda x: x @ W, TensorType(float64, (3,)))
    c = R.normal(size=(5, 4))
    steps = plan(graph, {graph.inputs[0]: norm})
    found = run(backward(steps, graph.outputs[0]), c, ends)
    a = c @ W.T
    dual = {1.0: np.inf, 2.0: 2.0, 3.0: 1.5}[norm]
    ball = a @ (LOW + HIGH) / 2 - 0.3 * np.linalg.norm(a, dual, axis=1)
    np.testing.assert_allclose(found, np.maximum(ball, least(a)), rtol=1e-9)


@pytest.mark.parametrize("own", [False, True])
def test_planes_are_taken_by_the_sign_of_a_coefficient(own):
    """With slopes of their own, each function is that of its planes alone."""
    graph = trace(lambda x: rg.exp(x @ W), TensorType(float64, (3,)))
    c = R.normal(size=(5, 4))
    shape = (5, 4) if own else (4,)
    planes = {
        f"{s} {w}": R.normal(size=shape) for s in ("lower", "upper") for w in ("slope", "bias")
    }

    def values(node, what):
        return planes[what] if what in planes else ends(node, what)

    program = backward(plan(graph, exp="relaxed"), graph.outputs[0], own)
    found = run(program, c, values)
    side = {
        w: np.where(c > 0, planes[f"lower {w}"], planes[f"upper {w}"]) for w in ("slope", "bias")
    }
    expected = (c * side["bias"]).sum(1) + least((c * side["slope"]) @ W.T)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rounding_costs_what_it_can():
    graph = trace(lambda x: x @ W, TensorType(float64, (3,)))
    (y,) = graph.outputs
    steps = plan(graph)._replace(rounds=frozenset([y]))
    c, error = R.normal(size=(5, 4)), R.uniform(size=4)
    found = run(backward(steps, y), c, lambda n, what: error if what == "error" else ends(n, what))
    np.testing.assert_allclose(found, least(c @ W.T) - np.abs(c) @ error, rtol=1e-12)


def test_samples_are_summed_apart_and_never_with_others():
    graph = trace(lambda x: x * 2.0, TensorType(float64, (3, 2)))
    steps = plan(graph)
    steps = steps._replace(batch=dict.fromkeys(graph.nodes, 0))
    c, low = R.normal(size=(5, 3, 2)), R.normal(size=(3, 2))
    high = low + 1.0
    box = {"low": low, "high": high}

    def values(node, what):
        two = np.full(node.shape, 2.0)
        return two if node is not graph.inputs[0] else box[what]

    found = run(backward(steps, graph.outputs[0]), c, values)
    np.testing.assert_allclose(found, least(2 * c, low, high), rtol=1e-12)
    two = trace(lambda x: x + rg.exp(x), TensorType(float64, (3, 2)))
    mixed = plan(two, exp="interval")._replace(batch={two.inputs[0]: 0})
    with pytest.raises(GradientError, match="not of one sample"):
        backward(mixed, two.outputs[0])
