"""W2: micrograd's demo. Two moons, an MLP 2-16-16-1, hinge loss with L2, full batch, SGD."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Target, Workload, loop, needed, scanned
from benchmarks.workloads.adam import eager

LR, DECAY = 0.01, 1e-4
CHECKS, IN_SCAN = 10, 100


def points() -> tuple[Any, Any]:
    """A hundred points on two interleaved half circles, and their labels, -1 and 1."""
    rng = np.random.default_rng(1337)
    angle = np.tile(np.linspace(0, np.pi, 50), 2)
    upper = np.arange(100) < 50
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    noisy = np.stack([x, y], 1) + rng.normal(0, 0.1, (100, 2))
    return noisy.astype(np.float32), np.where(upper, -1, 1).astype(np.float32)


def weights() -> list[Any]:
    """Weights and biases of three layers, one after the other."""
    rng = np.random.default_rng(0)
    pairs = [(rng.uniform(-1, 1, s), np.zeros(s[1])) for s in ((2, 16), (16, 16), (16, 1))]
    return [a.astype(np.float32) for pair in pairs for a in pair]


def loss_of(p: Any, x: Any, y: Any, relu: Callable[[Any], Any]) -> Any:
    h = relu(x @ p[0] + p[1])
    h = relu(h @ p[2] + p[3])
    h = h @ p[4] + p[5]
    return relu(1 - y * h[:, 0]).mean() + DECAY * sum((w * w).sum() for w in p)


# -- retrograd -----------------------------------------------------------------------------------
def retrograd_step() -> Callable[..., Any]:
    import retrograd as rg

    def step(state: Any, x: Any, y: Any) -> Any:
        value, gradient = rg.value_and_grad(lambda p: loss_of(p, x, y, rg.relu))(state)
        return [p - LR * g for p, g in zip(state, gradient, strict=True)], value

    return step


def with_retrograd() -> Session:
    import retrograd as rg

    step = rg.jit(retrograd_step(), donate=("state",))
    batch = tuple(map(rg.tensor, points()))
    return loop(step, [rg.tensor(w) for w in weights()], [batch], lambda v: v.item())


def with_retrograd_eager() -> Session:
    import retrograd as rg

    p = [rg.tensor(w, requires_grad=True) for w in weights()]
    step = eager(lambda p, x, y: loss_of(p, x, y, rg.relu), p, rg.optim.SGD(p, lr=LR))
    return loop(step, None, [tuple(map(rg.tensor, points()))], lambda v: v.item())


def with_retrograd_scan() -> Session:
    import retrograd as rg

    scan = needed(rg, "scan")
    x, y = map(rg.tensor, points())
    body = retrograd_step()
    steps = rg.jit(
        lambda state, n: scan(lambda s, _: body(s, x, y), state, None, length=n),
        static_argnames=("n",),
        donate=("state",),
    )
    return scanned(steps, [rg.tensor(w) for w in weights()], CHECKS, IN_SCAN)


def with_retrograd_value() -> Session:
    import retrograd as rg

    return scalars(rg.Value, needed(rg, "micrograd").MLP)


def with_retrograd_value_jit() -> Session:
    import retrograd as rg

    return scalars(rg.Value, needed(rg, "micrograd").MLP, rg.jit)


# -- peers ---------------------------------------------------------------------------------------
def jax_step() -> Callable[..., Any]:
    import jax

    def step(state: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(lambda p: loss_of(p, x, y, jax.nn.relu))(state)
        return jax.tree.map(lambda p, g: p - LR * g, state, gradient), value

    return step


def with_jax() -> Session:
    import jax
    import jax.numpy as jnp

    batch = tuple(map(jnp.asarray, points()))
    step = jax.jit(jax_step(), donate_argnums=0)
    return loop(step, list(map(jnp.asarray, weights())), [batch], float)


def with_jax_scan() -> Session:
    import jax
    import jax.numpy as jnp

    x, y = map(jnp.asarray, points())
    body = jax_step()

    def many(state: Any, n: int) -> Any:
        return jax.lax.scan(lambda s, _: body(s, x, y), state, None, length=n)

    steps = jax.jit(many, static_argnums=1, donate_argnums=0)
    return scanned(steps, list(map(jnp.asarray, weights())), CHECKS, IN_SCAN)


def torch_loss(p: Any, x: Any, y: Any) -> Any:
    import torch

    return loss_of(p, x, y, torch.relu)


def with_torch(loss: Callable[..., Any] = torch_loss) -> Session:
    import torch

    p = [torch.tensor(w, requires_grad=True) for w in weights()]
    step = eager(loss, p, torch.optim.SGD(p, lr=LR, fused=True))
    return loop(step, None, [tuple(map(torch.tensor, points()))], lambda v: v.item())


def with_torch_compile() -> Session:
    import torch

    return with_torch(torch.compile(torch_loss, dynamic=False))


def with_autograd() -> Session:
    import autograd
    import autograd.numpy as anp

    value_and_grad = autograd.value_and_grad(
        lambda p, x, y: loss_of(p, x, y, lambda a: anp.maximum(a, 0))
    )
    lr = np.float32(LR)

    def step(state: Any, x: Any, y: Any) -> Any:
        value, gradient = value_and_grad(state, x, y)
        return [p - lr * g for p, g in zip(state, gradient, strict=True)], value

    return loop(step, weights(), [points()], float)


def with_micrograd() -> Session:
    from micrograd.engine import Value
    from micrograd.nn import MLP

    return scalars(Value, MLP)


def scalars(value: Any, mlp: Any, jit: Callable[[Any], Any] = lambda f: f) -> Session:
    """The demo as micrograd has it, with these classes."""
    model = mlp(2, [16, 16, 1])
    w = weights()
    for layer, matrix, bias in zip(model.layers, w[::2], w[1::2], strict=True):
        for j, neuron in enumerate(layer.neurons):
            for a, number in zip(neuron.w, matrix[:, j], strict=True):
                a.data = float(number)
            neuron.b.data = float(bias[j])
    x, y = (a.tolist() for a in points())

    @jit
    def step() -> float:
        scores = [model(list(map(value, row))) for row in x]
        losses = [(1 + -label * s).relu() for label, s in zip(y, scores, strict=True)]
        loss = sum(losses) * (1.0 / len(losses))
        loss = loss + DECAY * sum(p * p for p in model.parameters())
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= LR * p.grad
        return loss.data

    def losses() -> Iterator[float]:
        for _ in range(3):
            yield step()

    return Session(step, losses())


WORKLOAD = Workload(
    "W2",
    "two moons, MLP 2-16-16-1, full batch, SGD",
    {
        "retrograd": with_retrograd,
        "retrograd-eager": with_retrograd_eager,
        "retrograd-scan": with_retrograd_scan,
        "retrograd-value": with_retrograd_value,
        "retrograd-value-jit": with_retrograd_value_jit,
        "jax": with_jax,
        "jax-scan": with_jax_scan,
        "torch": with_torch,
        "torch-compile": with_torch_compile,
        "autograd": with_autograd,
        "micrograd": with_micrograd,
    },
    checks=CHECKS,
    targets=(
        Target("retrograd", 8e-6, "jax", 31e-6),
        Target("retrograd-scan", 6e-6, "jax-scan", 10.5e-6),
    ),
    optional=frozenset({"torch-compile"}),
)
