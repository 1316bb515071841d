"""Functions of one variable as a whole: where they are seen, and dense samples between planes."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.graph.graph import trace
from retrograd.ir import TensorType, float64
from retrograd.verify.bound_propagation.composite import between, slopes
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.linear import BoundedGraph
from retrograd.verify.bound_propagation.propagation import interval_of

LOW = np.array([-3.0, -0.5, 0.1, 1.0, -40.0, 2.0])
HIGH = np.array([2.0, 0.4, 6.0, 1.0, 30.0, 2.0 + 1e-9])
ONES = {
    "swish": (lambda x: x * rg.sigmoid(x), lambda x: x / (1 + np.exp(-x))),
    "wave": (lambda x: x * rg.sin(x) + x * x, lambda x: x * np.sin(x) + x * x),
    "rational": (lambda x: x / (1 + x * x), lambda x: x / (1 + x * x)),
    "by cases": (
        lambda x: rg.where(x > 0.2, x * rg.exp(-x * x), rg.tanh(x) * x),
        lambda x: np.where(x > 0.2, x * np.exp(-x * x), np.tanh(x) * x)),
}  # fmt: skip


def graph_of(f):
    return BoundedGraph(trace(f, TensorType(float64, LOW.shape)), [True], {})


def known_of(network):
    """Intervals of all nodes by interval arithmetic."""
    found = {network.graph.inputs[0]: Interval(LOW, HIGH)}
    for node in network.graph.body:
        found[node] = interval_of(node, [found[x] for x in node.inputs])
    return found


@pytest.mark.parametrize("name", ONES)
def test_planes_and_intervals_hold_and_are_tighter(name):
    f, exact = ONES[name]
    network = graph_of(f)
    (y,) = network.graph.outputs
    known = known_of(network)
    planes, whole = network.composites[y].relaxed(known, known[y])
    x = LOW + (HIGH - LOW) * np.linspace(0, 1, 5001)[:, None]
    values = exact(x)
    off = 1e-13 * (1 + np.abs(values))
    assert ((whole.lower <= values + off) & (values - off <= whole.upper)).all()
    for side, part in ((1, planes.lower), (-1, planes.upper)):
        for plane in part:
            assert (side * (values - plane.slopes[0] * x - plane.bias) >= -off).all()
    assert (whole.upper - whole.lower)[0] < 0.8 * (known[y].upper - known[y].lower)[0]
    spread = values.max(0) - values.min(0)
    assert ((whole.upper - whole.lower)[:3] < 2.5 * spread[:3]).all()


@pytest.mark.parametrize("f", [
    rg.exp, lambda x: rg.tanh(rg.exp(x)), lambda x: x + 2.0 * x, lambda x: rg.exp(x) + x,
    lambda x: x * x[::-1], lambda x: rg.exp(x) * rg.sum(rg.sin(x)),
])  # fmt: skip
def test_what_is_no_composite(f):
    """One way only, one curve only, or not of the same element."""
    assert not graph_of(f).composites


def test_only_what_something_else_reads_is_bounded():
    """The inner product is a part of the sum, unless it is an output itself."""
    network = graph_of(lambda x: rg.sin(x * rg.sigmoid(x)) * x)
    assert list(network.composites) == list(network.graph.outputs)
    both = graph_of(lambda x: (x * rg.sigmoid(x), rg.sin(x * rg.sigmoid(x)) * x))
    assert set(both.composites) == set(both.graph.outputs)


def test_nodes_between():
    graph = trace(lambda x: rg.sin(x * 2.0) + rg.exp(x), TensorType(float64, (3,)))
    moving = {n for n in graph.nodes if n.op != "constant"}
    found = between(graph.outputs[0], graph.inputs[0], moving)
    assert sorted(n.op for n in found) == ["add", "exp", "mul", "sin"]
    assert found[-1] is graph.outputs[0]


def test_slopes_of_a_line_are_its_own():
    m = np.linspace(0, 1, 33)[:-1, None] + 1 / 64
    for side in (-1, 1):
        best, chord, flat = slopes(np.zeros(1), np.ones(1), m, side * (3 * m - 1), side)
        assert (best.item(), chord.item()) == (pytest.approx(3), pytest.approx(3))
        assert flat.item() == 0
