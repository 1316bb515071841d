"""Training loops: the losses of some steps, and the weights at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.nn import functional as F
from scripts.house.programs.case import Array, Way, threaded

STEPS = 25
Weights = dict[str, Array]
Loss = Callable[..., Any]


def loops() -> Iterator[tuple[str, Way]]:
    """Names of loops, and what runs them."""
    optimizers: dict[str, Callable[..., Any]] = {
        "SGD": partial(rg.optim.SGD, lr=0.1, momentum=0.9),
        "Adam": partial(rg.optim.Adam, lr=0.01),
        "AdamW": partial(rg.optim.AdamW, lr=0.01, weight_decay=0.1),
    }
    models = {"MLP": perceptron(), "GPT": transformer(), "CNN": convolutional()}
    for model, (loss, weights, batches) in models.items():
        for name, optimizer in optimizers.items():
            if model != "MLP" and name == "SGD":
                continue
            for kind, train in (("eager", eager), ("jit", jit), ("scan", in_scan)):
                what = f"train {model} {name} {kind}"
                way = bound(train, loss, weights, batches, optimizer)
                yield what, threaded(1, way)
                if name == "AdamW":
                    yield f"{what}, 2 threads", threaded(2, way)
    yield "train module", module
    yield "train scalars", scalars
    yield "train scalars jit", lambda: scalars(rg.jit)


def bound(train: Callable[..., Any], *given: Any) -> Way:
    return lambda: train(*given)


def eager(loss: Loss, weights: Weights, batches: list[Any], optimizer: Any) -> Any:
    p = {k: rg.tensor(v, requires_grad=True) for k, v in weights.items()}
    update = optimizer(list(p.values()))
    losses = []
    for i in range(STEPS):
        value = loss(p, *map(rg.tensor, batches[i % len(batches)]))
        update.zero_grad()
        value.backward()
        update.step()
        losses.append(value.item())
    return losses, list(p.values())


def jit(loss: Loss, weights: Weights, batches: list[Any], optimizer: Any) -> Any:
    p = {k: rg.tensor(v) for k, v in weights.items()}
    step, state = rg.jit(stepping(loss, optimizer())), (p, optimizer().init(p))
    losses = []
    for i in range(STEPS):
        state, value = step(state, tuple(map(rg.tensor, batches[i % len(batches)])))
        losses.append(value.item())
    return losses, list(state[0].values())


def in_scan(loss: Loss, weights: Weights, batches: list[Any], optimizer: Any) -> Any:
    p = {k: rg.tensor(v) for k, v in weights.items()}
    body, state = stepping(loss, optimizer()), (p, optimizer().init(p))
    all_batches = [batches[i % len(batches)] for i in range(STEPS)]
    xs = tuple(rg.tensor(np.stack(a)) for a in zip(*all_batches, strict=True))
    state, losses = rg.jit(lambda s, xs: rg.scan(body, s, xs))(state, xs)
    return losses.tolist(), list(state[0].values())


def stepping(loss: Loss, optimizer: Any) -> Callable[..., Any]:
    def step(state: Any, batch: Any) -> Any:
        p, held = state
        value, slopes = rg.value_and_grad(loss)(p, *batch)
        return optimizer.update(p, slopes, held), value

    return step


def perceptron() -> tuple[Loss, Weights, list[Any]]:
    rng = np.random.default_rng(1)
    sizes = (6, 16, 12, 3)
    weights = {f"w{i}": draw(rng, *s) for i, s in enumerate(pairwise(sizes))}
    batches = [(draw(rng, 10, 6), rng.integers(0, 3, 10)) for _ in range(4)]

    def loss(p: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(rg.relu(rg.tanh(x @ p["w0"]) @ p["w1"]) @ p["w2"], y)

    return loss, weights, batches


def transformer() -> tuple[Loss, Weights, list[Any]]:
    rng = np.random.default_rng(2)
    words, width, length = 11, 8, 6
    shapes = {"e": (words, width), "at": (length, width), "qkv": (width, 3 * width),
              "o": (width, width), "up": (width, 16), "down": (16, width),
              "g": (width,)}  # fmt: skip
    weights = {k: draw(rng, *s) for k, s in shapes.items()}
    tokens = [rng.integers(0, words, (3, length + 1)) for _ in range(4)]
    batches = [(t[:, :-1], t[:, 1:]) for t in tokens]

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = p["e"][x] + p["at"]
        a = rg.layer_norm(h, p["g"]) @ p["qkv"]
        q, k, v = (
            rg.swapaxes(rg.reshape(a[..., i * 8 : i * 8 + 8], (3, length, 2, 4)), 1, 2)
            for i in range(3)
        )
        b = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + rg.reshape(rg.swapaxes(b, 1, 2), (3, length, width)) @ p["o"]
        h = h + rg.gelu(rg.rms_norm(h) @ p["up"]) @ p["down"]
        logits = rg.reshape(h @ rg.matrix_transpose(p["e"]), (3 * length, words))
        return F.cross_entropy(logits, rg.reshape(y, (3 * length,)))

    return loss, weights, batches


def convolutional() -> tuple[Loss, Weights, list[Any]]:
    rng = np.random.default_rng(3)
    weights = {"a": draw(rng, 4, 1, 3, 3), "b": draw(rng, 6, 4, 3, 3), "c": draw(rng, 54, 3)}
    batches = [(draw(rng, 8, 1, 12, 12), rng.integers(0, 3, 8)) for _ in range(3)]

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = rg.max_pool(rg.relu(F.conv2d(x, p["a"], padding=1)), 2)
        h = rg.max_pool(rg.relu(F.conv2d(h, p["b"], padding=1)), 2)
        return F.cross_entropy(rg.reshape(h, (8, 54)) @ p["c"], y)

    return loss, weights, batches


def module() -> Any:
    """As one writes it for PyTorch, with a module and an optimizer."""
    rng = np.random.default_rng(4)
    model = rg.nn.Sequential(rg.nn.Linear(5, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))
    state = {k: np.asarray(v.numpy()) for k, v in model.state_dict().items()}
    model.load_state_dict({k: rg.tensor(draw(rng, *a.shape)) for k, a in state.items()})
    update = rg.optim.Adam(list(model.parameters()), lr=0.01)
    x, y = rg.tensor(draw(rng, 9, 5)), rg.tensor(draw(rng, 9, 1))
    losses = []
    for _ in range(STEPS):
        value = F.mse_loss(model(x), y)
        update.zero_grad()
        value.backward()
        update.step()
        losses.append(value.item())
    return losses, list(model.parameters())


def scalars(compiled: Callable[..., Any] = lambda f: f) -> Any:
    """A neuron of numbers."""
    found = []
    w = [0.3, -0.2, 0.1]

    def error(ws: Any, x: float, y: float) -> Any:
        return ((ws[0] * x + ws[1] * x * x + ws[2]).tanh() - y) ** 2

    for i in range(STEPS):
        x = (i % 7) / 7 - 0.5
        values = [rg.Value(v) for v in w]
        e = compiled(error)(values, x, x * x)
        e.backward()
        w = [v - 0.1 * float(p.grad) for v, p in zip(w, values, strict=True)]
        found.append(float(e.data))
    return found, w


def draw(rng: np.random.Generator, *shape: int) -> Array:
    return (rng.normal(size=shape) / max(shape[0], 1) ** 0.5).astype(np.float32)
