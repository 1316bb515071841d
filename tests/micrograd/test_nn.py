"""micrograd's modules: initial weights, outputs and training as in micrograd's own code."""

import itertools
import random

import pytest

import retrograd as rg
from retrograd.micrograd import MLP, Layer, Neuron


def mlp(seed, *sizes):
    random.seed(seed)
    return MLP(*sizes)


def by_hand(weights, x):
    """The same in plain Python, from numbers drawn in the same order."""
    for i, (matrix, bias) in enumerate(weights):
        x = [
            sum(w * a for w, a in zip(row, x, strict=True)) + b
            for row, b in zip(matrix, bias, strict=True)
        ]
        if i < len(weights) - 1:
            x = [max(a, 0.0) for a in x]
    return x


def test_weights_are_drawn_as_micrograd_draws_them():
    model = mlp(1337, 3, [4, 4, 1])
    random.seed(1337)
    sizes = [3, 4, 4, 1]
    weights = [
        ([[random.uniform(-1, 1) for _ in range(n)] for _ in range(m)], [0.0] * m)
        for n, m in itertools.pairwise(sizes)
    ]
    x = [2.0, 3.0, -1.0]
    assert model(x).data == pytest.approx(by_hand(weights, x)[0], rel=1e-14)
    flat = [
        a
        for matrix, bias in weights
        for row, b in zip(matrix, bias, strict=True)
        for a in [*row, b]
    ]
    assert [p.data for p in model.parameters()] == flat


def test_the_sizes_of_the_demo():
    assert len(mlp(0, 2, [16, 16, 1]).parameters()) == 337


def test_descriptions():
    assert repr(Neuron(3)) == "ReLUNeuron(3)"
    assert repr(Layer(2, 1, nonlin=False)) == "Layer of [LinearNeuron(2)]"
    assert repr(MLP(1, [1])) == "MLP of [Layer of [LinearNeuron(1)]]"


def test_a_wrong_number_of_inputs():
    with pytest.raises(ValueError, match="3 inputs was given 2"):
        Neuron(3)([1.0, 2.0])


def test_training_to_a_small_loss():
    model = mlp(3, 3, [4, 4, 1])
    xs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
    ys = [1.0, -1.0, -1.0, 1.0]
    losses = []
    for _ in range(100):
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys, strict=True))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.02 * p.grad
        losses.append(loss.data)
    assert losses[-1] < 0.05 * losses[0]


def test_against_micrograd_step_by_step():
    nn = pytest.importorskip("micrograd.nn", reason="micrograd is not installed")
    random.seed(5)
    theirs = nn.MLP(2, [8, 8, 1])
    ours = mlp(5, 2, [8, 8, 1])
    rng = random.Random(0)
    points = [[rng.uniform(-1, 1), rng.uniform(-1, 1)] for _ in range(12)]
    for _ in range(5):
        found = []
        for model in (ours, theirs):
            losses = [(1 + -(1 if x[0] > x[1] else -1) * model(x)).relu() for x in points]
            loss = sum(losses) * (1.0 / len(losses))
            loss = loss + 1e-4 * sum(p * p for p in model.parameters())
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= 0.1 * p.grad
            found.append(loss.data)
        assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_checkpoints(tmp_path):
    one, other = mlp(0, 2, [3, 1]), mlp(1, 2, [3, 1])
    rg.io.save_checkpoint(tmp_path / "a", model=one)
    rg.io.load_checkpoint(tmp_path / "a", model=other)
    values = [p.data for p in one.parameters()]
    assert [p.data for p in other.parameters()] == values
    rg.io.save_safetensors(tmp_path / "b", one.state_dict())
    third = mlp(2, 2, [3, 1])
    third.load_state_dict(rg.io.load_safetensors(tmp_path / "b"))
    assert [p.data for p in third.parameters()] == values
    assert third([0.5, -2.0]).data == one([0.5, -2.0]).data
    for layer in (one.layers[0], one.layers[1].neurons[0]):
        layer.load_state_dict(layer.state_dict())
    wrong = [mlp(0, 3, [3, 1]).state_dict(), {}, [], {"parameters": values, "more": 1}]
    for state in wrong:
        with pytest.raises(rg.RetrogradError):
            other.load_state_dict(state)
    assert [p.data for p in other.parameters()] == values
