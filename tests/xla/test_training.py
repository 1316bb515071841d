"""Runs of a few steps: the losses on xla are those on the other backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.runtime.device_array import DeviceArray

pytest.importorskip("jax", reason="the extra xla is not installed")


def weights(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rg.tensor(rng.normal(0, 0.3, s).astype(np.float32)) for s in shapes]


def losses(loss: Callable[..., Any], p: list[Any], *batch: Any) -> list[float]:
    """Of five steps of Adam."""
    optimizer = rg.optim.Adam(lr=1e-2)

    def step(state: Any, *batch: Any) -> Any:
        p, moments = state
        value, g = rg.value_and_grad(loss)(p, *batch)
        return optimizer.update(p, g, moments), value

    jitted = rg.jit(step)
    state, found = (p, optimizer.init(p)), []
    for _ in range(5):
        state, value = jitted(state, *batch)
        found.append(value.item())
    return found


def perceptron(p: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(F.relu(x @ p[0] + p[1]) @ p[2], y)


def convolutional(p: Any, x: Any, y: Any) -> Any:
    h = F.max_pool2d(F.relu(F.conv2d(x, p[0], p[1], padding=1)), 2)
    return F.cross_entropy(h.reshape((x.shape[0], -1)) @ p[2], y)


def on_graph(p: Any, x: Any, edges: Any, y: Any) -> Any:
    sent = rg.segment_sum((x @ p[0])[edges[0]], edges[1], 6)
    return F.cross_entropy(F.relu(sent) @ p[1], y)


def language(p: Any, tokens: Any, y: Any) -> Any:
    h = F.embedding(tokens, p[0])
    q, k, v = ((h @ w).reshape((2, 1, 5, 8)) for w in p[1:4])
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape((2, 5, 8))
    h = F.layer_norm(h + F.gelu(a), (8,))
    return F.cross_entropy((h @ p[4]).reshape((10, 7)), y.reshape((10,)))


def case(name: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    numbers = lambda *s: rg.tensor(np.asarray(rng.normal(size=s), np.float32))
    labels = lambda n, *s: rg.tensor(rng.integers(0, n, s))
    if name == "MLP":
        return perceptron, weights((6, 8), (8,), (8, 3)), numbers(5, 6), labels(3, 5)
    if name == "CNN":
        return (
            convolutional,
            weights((4, 1, 3, 3), (4,), (36, 3)),
            numbers(5, 1, 6, 6),
            labels(3, 5),
        )
    if name == "GNN":
        return on_graph, weights((4, 8), (8, 3)), numbers(6, 4), labels(6, 2, 12), labels(3, 6)
    return (
        language,
        weights((7, 8), (8, 8), (8, 8), (8, 8), (8, 7)),
        labels(7, 2, 5),
        labels(7, 2, 5),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MLP", "CNN", "GNN", "GPT"])
def test_losses_agree(name: str) -> None:
    found = {}
    for backend in ("reference", "llvm", "xla"):
        with rg.backend(backend):
            found[backend] = losses(*case(name))
    assert found["reference"][-1] < found["reference"][0]
    for backend in ("llvm", "xla"):
        np.testing.assert_allclose(found[backend], found["reference"], rtol=2e-5)


def test_eager_steps_leave_parameters_on_the_device() -> None:
    x, y = np.ones((4, 3), np.float32), np.array([0, 1, 1, 0])
    found = {}
    for name in ("reference", "xla"):
        with rg.backend(name):
            model = rg.nn.Linear(3, 2, generator=rg.random.Generator(0))
            optimizer = rg.optim.AdamW(model.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
            kept = model.weight.computed()
            assert (type(kept) is DeviceArray and not kept.is_fetched) is (name == "xla")
            found[name] = model.weight.detach().numpy(), loss.item()
    np.testing.assert_allclose(found["xla"][0], found["reference"][0], rtol=1e-5)
    assert found["xla"][1] == pytest.approx(found["reference"][1], rel=1e-6)
