"""The run of a graph without loops has the values of the graph, to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import nested
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.verify.rounding_error.straight_line import straight_line
from tests.sampling import sampled

X = np.linspace(0.1, 0.9, 6, dtype=np.float32)


def cumulated(x):
    return rg.scan(lambda c, t: (c * 0.5 + rg.sin(t), c * t), rg.tensor(1.0), x)


def halved(x):
    return rg.while_loop(lambda v: v.sum() > 0.01, lambda v: v * 0.5, x)


def chosen(x):
    return rg.cond(x.sum() > 1, lambda v: rg.exp(v), lambda v: -v, x)


@rg.custom_vjp
def straight_through(x):
    return rg.round(x * 4) / 4


straight_through.defvjp(lambda x: (straight_through(x), None), lambda res, g: (g,))

PROGRAMS: dict[str, Callable[..., Any]] = {
    "scan": cumulated,
    "reverse": lambda x: rg.scan(lambda c, t: (c + t, c), rg.tensor(0.0), x, reverse=True),
    "while": halved,
    "cond": chosen,
    "custom": lambda x: straight_through(x) + rg.stop_gradient(x),
    "gradient of a scan": rg.grad(lambda x: cumulated(x)[1].sum()),
    "gradient of a while": rg.grad(lambda x: halved(x).sum()),
    "checkpoint": rg.grad(lambda x: rg.checkpoint(lambda v: rg.sin(v) * v)(x).sum()),
    "empty scan": lambda x: rg.scan(lambda c, t: (c + t, c), rg.tensor(0.0), x[:0]),
}


def same(graph, arrays):
    run = straight_line(graph, arrays)
    expected = ReferenceProgram(graph)(arrays)
    for y, value in zip(run.graph.outputs, expected, strict=True):
        assert np.array_equal(run.values[y], value, equal_nan=True)
        assert run.values[y].dtype == value.dtype
    return run


@pytest.mark.parametrize("name", sampled(PROGRAMS, 2))
def test_loops_are_written_out(name):
    run = same(rg.trace(PROGRAMS[name], rg.spec((6,))), [X])
    assert nested(run.graph) == []
    names = {n.op for n in run.graph.nodes}
    assert not names & {"scan", "while_loop", "cond", "sized", "custom", "stop_gradient"}


def test_steps_of_a_loop_belong_to_the_node_of_its_body():
    graph = rg.trace(cumulated, rg.spec((6,)))
    run = same(graph, [X])
    (body,) = nested(graph)
    sines = [n for n in run.graph.body if n.op == "sin"]
    assert len(sines) == 6
    assert {run.home[n] for n in sines} == {n for n in body.body if n.op == "sin"}


def test_named_sizes_are_put_in_and_nodes_belong_to_those_of_the_graph():
    graph = rg.trace(lambda x: cumulated(x)[1].mean(), rg.spec((rg.Dim("N"),)))
    run = same(graph, [X])
    assert all(home in graph.nodes or home in nested(graph)[0].nodes for home in run.home.values())


@pytest.mark.slow
def test_states_of_a_dag():
    edges = np.array([[0, 0, 1, 2], [1, 2, 3, 3]])
    graph = rg.gnn.Graph(4, edges)
    w = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)

    def states(x, w):
        return rg.gnn.dag_scan(lambda a, v: rg.tanh(a @ w + v), graph, x)

    x = np.ones((4, 3), np.float32)
    same(rg.trace(states, x, w), [x, w])
    loss = rg.grad(lambda x, w: states(x, w).sum(), argnums=(0, 1))
    graph_of_gradient = rg.trace(loss, x, w)
    run = straight_line(graph_of_gradient, [x, w])
    expected = ReferenceProgram(graph_of_gradient)([x, w])
    for y, value in zip(run.graph.outputs, expected, strict=True):
        np.testing.assert_allclose(run.values[y], value, rtol=1e-5)


def test_a_function_of_python_is_refused():
    def host(x):
        return np.sin(x)

    graph = rg.trace(lambda x: rg.pure_callback(host, rg.spec((6,)), x), rg.spec((6,)))
    with pytest.raises(rg.BackendError, match="function of Python's"):
        straight_line(graph, [X])


def test_more_steps_than_a_loop_may_take():
    graph = rg.trace(
        lambda x: rg.while_loop(lambda v: v.sum() > 0, lambda v: v, x, max_steps=3), rg.spec((6,))
    )
    with pytest.raises(rg.RetrogradError, match="after 3 steps"):
        straight_line(graph, [X])
