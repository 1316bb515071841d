"""`DagNet`: networks built node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd import gnn
from retrograd.errors import CycleError, FormatError, GradientError, OptionError, ShapeError

FUNCTIONS: dict[str, Any] = {
    "linear": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "softplus": lambda z: np.log1p(np.exp(z)),
    "sin": np.sin,
}


def random_net(seed: int, width: int = 2) -> tuple[Any, Any]:
    """A network, and the same in NumPy as a function of weights, inputs and shifts of states."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    net = gnn.DagNet(width, dtype="float64")
    kinds = rng.choice(list(FUNCTIONS), n)
    values = rng.normal(size=(n, width))
    for v in range(n):
        net.add_node(v, str(kinds[v]), value=values[v])
    for _ in range(2 * n):
        u, v = np.sort(rng.choice(n, 2, replace=False))
        net.add_edge(int(u), int(v), rng.normal())

    def states(w: Any, x: Any, shift: Any) -> Any:
        h = np.zeros((n, width))
        for v in range(n):
            a = sum((w[e] * h[u] for e, (u, t) in enumerate(net._ends) if t == v), np.zeros(width))
            h[v] = FUNCTIONS[kinds[v]](a + x[v]) + shift[v]
        return h

    return net, lambda *parts: states(*parts)


@pytest.mark.slow
def test_states_and_gradients_against_differences() -> None:
    for seed in range(6):
        net, states = random_net(seed)
        rng = np.random.default_rng(seed)
        w, x = net.weights.copy(), np.array(net._bias)
        shift = np.zeros_like(x)
        found = net.forward()
        np.testing.assert_allclose(np.array(list(found.values())), states(w, x, shift), rtol=1e-11)
        c = rng.normal(size=x.shape)
        grads = net.backward(dict(enumerate(c)))
        for k, part in enumerate((grads.weights, grads.inputs, grads.states)):
            for i in np.ndindex(part.shape):
                ends = []
                for h in (1e-6, -1e-6):
                    moved = [w.copy(), x.copy(), shift.copy()]
                    moved[k][i] += h
                    ends.append((states(*moved) * c).sum())
                assert part[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@pytest.mark.slow
def test_gradients_add_up_clip_and_vanish() -> None:
    net, _ = random_net(3)
    c = {1: 1.0}
    net.forward()
    one, two = net.backward(c), net.backward(c)
    before = {k: v.copy() for k, v in one.nodes.items()}
    one.accumulate(two)
    for name, g in one.nodes.items():
        np.testing.assert_allclose(g, 2 * before[name])
    norm = np.sqrt((one.weights**2).sum() + (one.inputs**2).sum())
    assert one.clip_norm(0.5 * norm) == pytest.approx(norm)
    assert one.norm() == pytest.approx(0.5 * norm)
    two.clip_value(0.01)
    assert np.abs(two.weights).max() <= 0.01
    one.zero()
    one.add_l2(net, 0.1)
    np.testing.assert_allclose(one.weights, 0.1 * net.weights)
    other, _ = random_net(4)
    other.forward()
    with pytest.raises(ShapeError, match="other nodes or edges"):
        one.accumulate(other.backward({0: 1.0}))


def test_it_learns_and_may_change_at_any_time() -> None:
    net = gnn.DagNet()
    for name in ("x", "y"):
        net.add_node(name)
    net.add_node("h", "tanh")
    net.add_node("out")
    for u, v in (("x", "h"), ("y", "h"), ("h", "out")):
        net.add_edge(u, v, 0.3)
    rng = np.random.default_rng(0)

    def error(steps: int) -> float:
        total = 0.0
        for _ in range(steps):
            x, y = rng.uniform(-1, 1, 2)
            out = net.forward({"x": x, "y": y})["out"][0]
            gap = out - (0.5 * x - 0.25 * y)
            total += gap**2 / steps
            net.backward_and_update({"out": 2 * gap}, 0.1)
        return total

    first = error(50)
    net.add_edge("x", "out", 0.0)
    net.add_edge("y", "out", 0.0)
    error(400)
    assert error(50) < 0.02 * first


def test_labels_have_vectors_that_learn() -> None:
    embedding = gnn.LabelEmbedding(3, seed=1)
    net = gnn.DagNet(3, embedding=embedding)
    net.add_node("a", label="and")
    net.add_node("b", label="or")
    net.add_node("c", label="and")
    net.add_edge("a", "c", 2.0)
    states = net.forward()
    np.testing.assert_allclose(states["c"], 3 * embedding.lookup(["and"])[0], rtol=1e-6)
    net.backward({"c": np.ones(3)})
    rows = embedding.numbers(["and", "or"])
    assert embedding.grad[rows].tolist() == [[3.0] * 3, [0.0] * 3]
    before = embedding.weight.copy()
    embedding.step(0.1)
    np.testing.assert_allclose(embedding.weight[rows[0]], before[rows[0]] - 0.3, rtol=1e-5)
    embedding.zero_grad()
    assert not embedding.grad.any()


def test_bad_input() -> None:
    net = gnn.DagNet(2)
    net.add_node("a")
    net.add_node("b", "relu")
    with pytest.raises(OptionError, match=r"'c': activation is one of linear, .* not 'step'"):
        net.add_node("c", "step")
    with pytest.raises(FormatError, match="a node 'a' already"):
        net.add_node("a")
    with pytest.raises(FormatError, match="'a' -> 'z': there is no node 'z'"):
        net.add_edge("a", "z")
    with pytest.raises(FormatError, match="weight nan"):
        net.add_edge("a", "b", float("nan"))
    with pytest.raises(ShapeError, match=r"node 'a' is \(3,\), the width 2"):
        net.forward({"a": np.ones(3)})
    with pytest.raises(FormatError, match="'q', which is not there"):
        net.forward({"q": 1.0})
    with pytest.raises(GradientError, match="forward"):
        gnn.DagNet().backward({})
    with pytest.raises(OptionError, match="no embedding"):
        net.add_node("d", label="x")
    net.add_edge("a", "b")
    net.add_edge("b", "a")
    with pytest.raises(CycleError, match="cycle of 2 nodes: 'a' -> 'b' -> 'a'"):
        net.forward()


@pytest.mark.slow
def test_an_empty_network_and_one_without_edges() -> None:
    assert gnn.DagNet().forward() == {}
    net = gnn.DagNet()
    net.add_node("a", "sigmoid", value=0.0)
    assert net.forward()["a"].tolist() == [0.5]
    assert net.backward({"a": 4.0}).inputs.tolist() == [[1.0]]
