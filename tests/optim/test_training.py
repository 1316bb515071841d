"""Small problems that must be learned, in every form."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim

F = nn.functional
XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
ODD = np.array([[0], [1], [1], [0]], np.float32)


def make_mlp():
    g = rg.random.Generator(1)
    return nn.Sequential(nn.Linear(2, 8, generator=g), nn.Tanh(), nn.Linear(8, 1, generator=g))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.5, momentum=0.9),
        lambda p: optim.Adam(p, lr=0.05),
        lambda p: optim.AdamW(p, lr=optim.schedules.cosine(0.1, 150, warmup=10)),
    ],
    ids=["sgd", "adam", "adamw"],
)
@pytest.mark.sample(1)
def test_xor(make):
    model = make_mlp()
    opt = make(model)
    x, y = rg.tensor(XOR), rg.tensor(ODD)
    for _ in range(150):
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        opt.step()
    assert loss.item() < 0.05
    assert ((model(x).numpy() > 0) == ODD).all()


@pytest.mark.slow
def test_xor_pure_and_compiled():
    model = make_mlp()
    opt = optim.Adam(lr=0.05)

    @rg.jit
    def step(model, state, x, y):
        def loss(model):
            return F.binary_cross_entropy_with_logits(model(x), y)

        value, grads = rg.value_and_grad(loss)(model)
        return *opt.update(model, grads, state), value

    state = opt.init(model)
    for _ in range(150):
        model, state, value = step(model, state, XOR, ODD)
    assert value.item() < 0.05
    assert step.cache_stats()["compilations"] == 1


def test_linear_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3))
    truth = np.array([[1.5, -2.0, 0.5]])
    y = x @ truth.T + 0.7
    model: Any = nn.Linear(3, 1).to(rg.float64)
    opt = optim.SGD(model, lr=0.3)
    for _ in range(100):
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()
    np.testing.assert_allclose(model.weight.numpy(), truth, atol=1e-8)
    assert model.bias.item() == pytest.approx(0.7, abs=1e-8)


@pytest.mark.slow
def test_classification_with_embedding_and_attention():
    g = rg.random.Generator(0)

    class Reverser(nn.Module):
        """Which token came first? Needs attention from the last position to the first."""

        def __init__(self):
            self.tokens = nn.Embedding(4, 16, generator=g)
            self.places = nn.Embedding(5, 16, generator=g)
            self.norm = nn.LayerNorm(16)
            self.attention = nn.MultiHeadAttention(16, 2, causal=True, generator=g)
            self.head = nn.Linear(16, 4, generator=g)

        def forward(self, x):
            h = self.tokens(x) + self.places(np.arange(x.shape[1]))
            h = h + self.attention(self.norm(h))
            return self.head(h[:, -1])

    x = np.random.default_rng(0).integers(0, 4, size=(64, 5))
    model = Reverser()
    opt = optim.AdamW(model, lr=0.02)
    for _ in range(60):
        opt.zero_grad()
        loss = F.cross_entropy(model(rg.tensor(x)), x[:, 0])
        loss.backward()
        optim.clip_grad_norm(model, 1.0)
        opt.step()
    assert loss.item() < 0.1


@pytest.mark.slow
def test_native_code_learns_the_same():
    def losses(backend):
        with rg.backend(backend):
            model = make_mlp()
            opt = optim.AdamW(model, lr=0.05)
            x, y = rg.tensor(XOR), rg.tensor(ODD)
            found = []
            for _ in range(10):
                opt.zero_grad()
                loss = F.binary_cross_entropy_with_logits(model(x), y)
                loss.backward()
                optim.clip_grad_norm(model, 1.0)
                opt.step()
                found.append(loss.item())
        return found

    assert losses("llvm") == pytest.approx(losses("reference"), rel=1e-5)
