"""First-order errors against what moving single nodes does to the outputs."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import interpret
from retrograd.verify.rounding_error.first_order import first_order, wide_value
from retrograd.verify.rounding_error.local_error import LocalError, local_error
from retrograd.verify.rounding_error.straight_line import straight_line


def prepared(f, *arrays):
    run = straight_line(rg.trace(f, *arrays), [np.asarray(a) for a in arrays])
    values = run.values
    local = {n: local_error(n, values[n], [values[x] for x in n.inputs]) for n in run.graph.nodes}
    return run, local


def slopes_by_moving(run, node, at, h=1e-6):
    """How the outputs move with an element of a node, by a difference of both sides."""
    arrays = [np.asarray(run.values[x], np.float64) for x in run.graph.inputs]

    def outputs(step):
        def value(n, xs):
            y = np.array(wide_value(n, xs))
            if n is node:
                y[at] += step
            return y

        return interpret(run.graph, arrays, value)

    pairs = zip(outputs(h), outputs(-h), strict=True)
    return [(np.asarray(a) - np.asarray(b)) / (2 * h) for a, b in pairs]


def network(x, w):
    h = rg.tanh(x @ w)
    p = rg.softmax(h)
    return rg.logsumexp(h * p, axis=1) - (h[:, 0] ** 2) * p[:, 1]


def test_bounds_are_sums_of_slopes_times_errors():
    rng = np.random.default_rng(0)
    run, local = prepared(network, rng.standard_normal((2, 3)), rng.standard_normal((3, 4)))
    (y,) = run.graph.outputs
    found = first_order(run, local, y, [0, 1])
    bound, variance = np.zeros(2), np.zeros(2)
    for node in run.graph.body:
        if not node.dtype.is_float:
            continue
        for at in np.ndindex(node.shape):
            (slope,) = slopes_by_moving(run, node, at)
            bound += np.abs(slope) * local[node].bound[at]
            variance += (slope * local[node].std[at]) ** 2
    np.testing.assert_allclose(found.bound, bound, rtol=1e-6)
    np.testing.assert_allclose(found.std, np.sqrt(variance), rtol=1e-6)
    assert sum(found.by_node.values()) == pytest.approx(found.bound)


def test_a_wrong_slope_would_be_seen():
    """The comparison above tells a derivative of the wrong sign of one path."""
    x = np.float64(0.7)
    run, local = prepared(lambda x: rg.exp(x) - rg.exp(x) * x, x)
    (y,) = run.graph.outputs
    found = first_order(run, local, y, [0])
    node = next(n for n in run.graph.body if n.op == "exp")
    uncorrelated = local[node].bound * (1 + 0.7)
    assert found.by_node[node] == pytest.approx(local[node].bound * 0.3, rel=1e-12)
    assert found.by_node[node] < uncorrelated


def test_errors_that_cancel_do():
    shared, local = prepared(lambda x: (lambda s: s - s * 1.0 + x)(rg.sin(x)), np.float64(0.3))
    found = first_order(shared, local, shared.graph.outputs[0], [0])
    assert found.by_node[next(n for n in shared.graph.body if n.op == "sin")] == 0


@pytest.mark.parametrize(
    "f",
    [
        lambda a: rg.abs(a - a * 1),
        lambda a: rg.relu(a - a * 1),
        lambda a: rg.maximum(a, a * 1),
        lambda a: rg.clip(a, a * 1, 9.0),
        lambda a: rg.max(rg.stack([a, a * 1])),
    ],
)
def test_at_kinks_the_largest_slope_counts(f):
    run, _local = prepared(f, np.float64(0.3))
    unit = {n: LocalError(np.ones(n.shape), np.ones(n.shape)) for n in run.graph.nodes}
    found = first_order(run, unit, run.graph.outputs[0], [0])
    product = next(n for n in run.graph.body if n.op == "mul")
    assert found.by_node[product] == 1


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda v: rg.abs(v) + v, -0.3),
        (lambda v: rg.abs(v) - v, 0.3),
        (lambda v: rg.relu(v) - v, 0.3),
        (lambda v: rg.relu(v), -0.3),
        (lambda v: rg.maximum(v, 0.1) - v, 0.3),
        (lambda v: rg.minimum(v, 0.1), 0.3),
        (lambda v: rg.clip(v, -0.5, 0.5) - v, 0.3),
        (lambda v: rg.clip(v, -0.1, 0.1), 0.3),
        (lambda v: rg.max(rg.stack([v, v - 1])) - v, 0.3),
        (lambda v: rg.min(rg.stack([v, v - 1])) - v, 0.3),
    ],
)
def test_beside_kinks_the_slope_is_the_slope(f, x):
    """What comes from `sin` cancels, or does not arrive."""
    run, local = prepared(lambda x: f(rg.sin(x)), np.float64(x))
    found = first_order(run, local, run.graph.outputs[0], [0])
    sine = next(n for n in run.graph.body if n.op == "sin")
    assert local[sine].bound > 0
    assert found.by_node[sine] == 0


def test_an_infinite_slope_counts_where_something_is_off():
    run, local = prepared(lambda x: rg.sqrt(x * 0.0), np.float64(0.3))
    assert first_order(run, local, run.graph.outputs[0], [0]).bound == 0
    run, local = prepared(lambda x: rg.sqrt((x + 0.1) - (x + 0.1)), np.float64(0.3))
    assert first_order(run, local, run.graph.outputs[0], [0]).bound == np.inf


def test_errors_pass_what_stops_gradients():
    run, local = prepared(lambda x: rg.stop_gradient(rg.exp(x)) * 3.0, np.float64(0.3))
    found = first_order(run, local, run.graph.outputs[0], [0])
    assert found.by_node[next(n for n in run.graph.body if n.op == "exp")] > 0


def test_rounded_inputs():
    run, local = prepared(lambda x, y: x * y, np.float32(3.0), np.float32(5.0))
    found = first_order(run, local, run.graph.outputs[0], [0])
    assert found.inputs == 2 * 15 * 2.0**-24


def test_elements_are_counted_in_row_major_order():
    x = np.arange(1.0, 7).reshape(2, 3) / 9.7
    run, local = prepared(lambda x: x * np.array([[1.1, 1.3, 1.7]]), x)
    found = first_order(run, local, run.graph.outputs[0], [0, 4, 5])
    expected = np.abs(run.values[run.graph.outputs[0]]).reshape(-1)[[0, 4, 5]] * 2.0**-53
    np.testing.assert_allclose(found.bound, expected)
