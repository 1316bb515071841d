"""Losses of training on the GPU are those of native code: MLP, CNN, GNN, GPT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu
R = np.random.default_rng(0)
ROWS = R.standard_normal((32, 6)).astype(np.float32)
IMAGES = R.standard_normal((8, 1, 8, 8)).astype(np.float32)
TOKENS = R.integers(0, 9, (4, 8))
EDGES = R.integers(0, 10, (2, 30))


def mlp() -> tuple[Any, Any, Any]:
    net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))
    return net, rg.tensor(ROWS), rg.tensor(np.abs(ROWS[:, 0] * 2).astype(np.int64) % 3)


def cnn() -> tuple[Any, Any, Any]:
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 3),
    )  # fmt: skip
    return net, rg.tensor(IMAGES), rg.tensor(np.arange(8) % 3)


class Messages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.send, self.read = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        sent = rg.relu(self.send(x))[rg.tensor(EDGES[0])]
        return self.read(rg.zeros((10, 8)).at[rg.tensor(EDGES[1])].add(sent))


def gnn() -> tuple[Any, Any, Any]:
    return Messages(), rg.tensor(ROWS[:10]), rg.tensor(np.arange(10) % 3)


class Causal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 8)
        self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 9), nn.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        h = self.tokens(x)
        q, k, v = rg.split(self.qkv(self.norm(h)), 3, axis=-1)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(h + attended).reshape(-1, 9)


def gpt() -> tuple[Any, Any, Any]:
    return Causal(), rg.tensor(TOKENS), rg.tensor(np.roll(TOKENS, -1, 1).reshape(-1))


@pytest.mark.parametrize(
    "make",
    [
        mlp,
        gnn,
        pytest.param(cnn, marks=pytest.mark.slow),
        pytest.param(gpt, marks=pytest.mark.slow),
    ],
)
def test_losses_agree(make: Any) -> None:
    expected, found = losses("llvm", make), losses("wgpu", make)
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(found, expected, rtol=2e-4)


def losses(backend: str, make: Any) -> list[float]:
    rg.manual_seed(0)
    with rg.backend(backend):
        net, x, y = make()
        optimizer = rg.optim.AdamW(net.parameters(), lr=1e-2)
        found = []
        for _ in range(10):
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found


@pytest.mark.parametrize("make", [gnn, pytest.param(mlp, marks=pytest.mark.slow), gpt])
def test_what_writes_over_donated_memory_has_the_same_bits(make: Any) -> None:
    (plain, moved), (donated, stays) = trained(make, ()), trained(make, ("state",))
    assert plain == donated
    assert all(stays)
    assert not any(moved)


def trained(make: Any, donate: Any) -> tuple[list[bytes], list[bool]]:
    """The losses and, at the end, the weights; and of each weight whether it stays where it is."""
    with rg.backend("wgpu"), rg.no_grad():
        rg.manual_seed(0)
        net, x, y = make()
        optimizer = rg.optim.AdamW(lr=1e-2)
        leaves, structure = rg.tree.flatten(net)

        def step(state: Any, x: Any, y: Any) -> Any:
            def loss(leaves: Any) -> Any:
                model = rg.tree.unflatten(structure, leaves)
                return nn.functional.cross_entropy(model(x), y)

            value, g = rg.value_and_grad(loss)(state[0])
            return optimizer.update(state[0], g, state[1]), value

        jitted = rg.jit(step, donate=donate)
        state, found = (leaves, optimizer.init(leaves)), []
        for _ in range(4):
            state, value = jitted(state, x, y)
            found.append(value.numpy().tobytes())
        places = [w._known().copy.gpu for w in state[0]]
        state, _ = jitted(state, x, y)
        stays = [w._known().copy.gpu is at for w, at in zip(state[0], places, strict=True)]
        return found + [w.numpy().tobytes() for w in rg.tree.flatten(state)[0]], stays
