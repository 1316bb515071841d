"""W3: MLP 784-512-512-10, batch 128, cross-entropy, Adam; eight batches of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Target, Workload, loop
from benchmarks.workloads.adam import eager, jax_adam, jax_state, retrograd_adam

SIZES = ((784, 512), (512, 512), (512, 10))
BATCH, LR = 128, 1e-3


def weights() -> list[Any]:
    """Weights `[in, out]` and biases of the layers, one after the other."""
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(0, (2 / n) ** 0.5, (n, m)), np.zeros(m)) for n, m in SIZES]
    return [a.astype(np.float32) for pair in pairs for a in pair]


def turned() -> list[Any]:
    """The same weights as `[out, in]`, as torch and retrograd keep them."""
    return [np.ascontiguousarray(a.T) for a in weights()]


def batches(convert: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (8, BATCH, SIZES[0][0])).astype(np.float32)
    y = rng.integers(0, SIZES[-1][1], (8, BATCH))
    return [(convert(a), convert(b)) for a, b in zip(x, y, strict=True)]


def layers(p: Any, x: Any, relu: Callable[[Any], Any]) -> Any:
    """Logits, with weights as `[in, out]`."""
    h = relu(x @ p[0] + p[1])
    h = relu(h @ p[2] + p[3])
    return h @ p[4] + p[5]


def loss_of(F: Any, p: Any, x: Any, y: Any) -> Any:
    """The loss with the functions that torch and retrograd both have."""
    h = F.relu(F.linear(x, p[0], p[1]))
    h = F.relu(F.linear(h, p[2], p[3]))
    return F.cross_entropy(F.linear(h, p[4], p[5]), y)


def retrograd_loss(p: Any, x: Any, y: Any) -> Any:
    import retrograd as rg

    return loss_of(rg.nn.functional, p, x, y)


def with_retrograd() -> Session:
    import retrograd as rg

    optimizer = rg.optim.Adam(lr=LR)
    step = rg.jit(retrograd_adam(retrograd_loss, optimizer), donate=("state",))
    p = [rg.tensor(w) for w in turned()]
    return loop(step, (p, optimizer.init(p)), batches(rg.tensor), lambda v: v.item())


def with_retrograd_eager() -> Session:
    import retrograd as rg

    p = [rg.tensor(w, requires_grad=True) for w in turned()]
    step = eager(retrograd_loss, p, rg.optim.Adam(p, lr=LR))
    return loop(step, None, batches(rg.tensor), lambda v: v.item())


def with_jax() -> Session:
    import jax
    import jax.numpy as jnp

    def loss(p: Any, x: Any, y: Any) -> Any:
        logp = jax.nn.log_softmax(layers(p, x, jax.nn.relu))
        return -jnp.take_along_axis(logp, y[:, None], 1).mean()

    step = jax.jit(jax_adam(loss, LR), donate_argnums=0)
    return loop(step, jax_state(weights()), batches(jnp.asarray), float)


def torch_loss(p: Any, x: Any, y: Any) -> Any:
    import torch

    return loss_of(torch.nn.functional, p, x, y)


def with_torch(loss: Callable[..., Any] = torch_loss) -> Session:
    import torch

    p = [torch.tensor(w, requires_grad=True) for w in turned()]
    step = eager(loss, p, torch.optim.Adam(p, lr=LR, fused=True))
    return loop(step, None, batches(torch.tensor), lambda v: v.item())


def with_torch_compile() -> Session:
    import torch

    return with_torch(torch.compile(torch_loss, dynamic=False))


def with_autograd() -> Session:
    import autograd
    import autograd.numpy as anp

    def loss(p: Any, x: Any, hot: Any) -> Any:
        z = layers(p, x, lambda a: anp.maximum(a, 0))
        z = z - anp.max(z, 1, keepdims=True)
        logp = z - anp.log(anp.sum(anp.exp(z), 1, keepdims=True))
        return -anp.mean(anp.sum(logp * hot, 1))

    value_and_grad = autograd.value_and_grad(loss)
    f = np.float32
    b1, b2 = f(0.9), f(0.999)

    def step(state: Any, x: Any, hot: Any) -> Any:
        p, m, v, t = state
        value, gradient = value_and_grad(p, x, hot)
        c1, c2 = f(1 - 0.9**t), f(1 - 0.999**t)
        for w, a, b, g in zip(p, m, v, gradient, strict=True):
            a += (1 - b1) * (g - a)
            b += (1 - b2) * (g * g - b)
            w -= f(LR) / c1 * a / (np.sqrt(b / c2) + f(1e-8))
        return (p, m, v, t + 1), value

    p = weights()
    state = (p, [np.zeros_like(w) for w in p], [np.zeros_like(w) for w in p], 1)
    hot = [(x, np.eye(SIZES[-1][1], dtype=np.float32)[y]) for x, y in batches(np.asarray)]
    return loop(step, state, hot, float)


WORKLOAD = Workload(
    "W3",
    "MLP 784-512-512-10, batch 128, Adam",
    {
        "retrograd": with_retrograd,
        "retrograd-eager": with_retrograd_eager,
        "jax": with_jax,
        "torch": with_torch,
        "torch-compile": with_torch_compile,
        "autograd": with_autograd,
    },
    targets=(Target("retrograd", 2.5e-3, "jax", 3.00e-3),),
    optional=frozenset({"torch-compile"}),
)
