"""W5: conv 5x5x32, ReLU, pool 2, conv 5x5x64, ReLU, pool 2, linear to 10; 28x28, batch 64, Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Target, Workload, loop, needed
from benchmarks.workloads.adam import eager, jax_adam, jax_state, retrograd_adam

BATCH, LR = 64, 1e-3


def weights() -> list[Any]:
    """Kernels `[out, in, height, width]`, the last matrix `[out, in]`, each with its bias."""
    rng = np.random.default_rng(0)
    shapes = ((32, 1, 5, 5), (64, 32, 5, 5), (10, 64 * 4 * 4))
    pairs = [(rng.normal(0, (2 / np.prod(s[1:])) ** 0.5, s), np.zeros(s[0])) for s in shapes]
    return [a.astype(np.float32) for pair in pairs for a in pair]


def batches(convert: Callable[[Any], Any], axes: tuple[int, ...] = (0, 1, 2, 3)) -> list[Any]:
    """Images, batch first and channels next unless `axes` says otherwise, and labels."""
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (4, BATCH, 1, 28, 28)).astype(np.float32)
    y = rng.integers(0, 10, (4, BATCH))
    images = [np.ascontiguousarray(a.transpose(axes)) for a in x]
    return [(convert(a), convert(b)) for a, b in zip(images, y, strict=True)]


def loss_of(F: Any, p: Any, x: Any, y: Any) -> Any:
    """The loss with the functions that torch and retrograd both have."""
    h = F.max_pool2d(F.relu(F.conv2d(x, p[0], p[1])), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p[2], p[3])), 2)
    return F.cross_entropy(F.linear(h.reshape((BATCH, -1)), p[4], p[5]), y)


def retrograd_loss(p: Any, x: Any, y: Any) -> Any:
    import retrograd as rg

    return loss_of(rg.nn.functional, p, x, y)


def with_retrograd() -> Session:
    import retrograd as rg

    needed(rg.nn.functional, "conv2d")
    optimizer = rg.optim.Adam(lr=LR)
    step = rg.jit(retrograd_adam(retrograd_loss, optimizer), donate=("state",))
    p = [rg.tensor(w) for w in weights()]
    return loop(step, (p, optimizer.init(p)), batches(rg.tensor), lambda v: v.item())


def with_retrograd_eager() -> Session:
    import retrograd as rg

    needed(rg.nn.functional, "conv2d")
    p = [rg.tensor(w, requires_grad=True) for w in weights()]
    step = eager(retrograd_loss, p, rg.optim.Adam(p, lr=LR))
    return loop(step, None, batches(rg.tensor), lambda v: v.item())


def with_jax() -> Session:
    """Channels last, and pooling by reshape and maximum: the fastest ways in JAX on a CPU."""
    import jax
    import jax.numpy as jnp

    def convolve(x: Any, w: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=layout)

    def pool(x: Any) -> Any:
        n, height, width, channels = x.shape
        return x.reshape(n, height // 2, 2, width // 2, 2, channels).max((2, 4))

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = pool(jax.nn.relu(convolve(x, p[0]) + p[1]))
        h = pool(jax.nn.relu(convolve(h, p[2]) + p[3]))
        logp = jax.nn.log_softmax(h.reshape(BATCH, -1) @ p[4] + p[5])
        return -jnp.take_along_axis(logp, y[:, None], 1).mean()

    p = weights()
    p[0], p[2] = (w.transpose(2, 3, 1, 0) for w in (p[0], p[2]))
    # The inputs of the last layer come as height, width, channel here.
    p[4] = p[4].reshape(10, 64, 4, 4).transpose(2, 3, 1, 0).reshape(-1, 10)
    step = jax.jit(jax_adam(loss, LR), donate_argnums=0)
    return loop(step, jax_state(p), batches(jnp.asarray, (0, 2, 3, 1)), float)


def torch_loss(p: Any, x: Any, y: Any) -> Any:
    import torch

    return loss_of(torch.nn.functional, p, x, y)


def with_torch(loss: Callable[..., Any] = torch_loss) -> Session:
    """Channels last, the faster layout in PyTorch on a CPU."""
    import torch

    def convert(a: Any) -> Any:
        t = torch.tensor(a)
        return t.to(memory_format=torch.channels_last) if t.ndim == 4 else t

    p = [convert(w).requires_grad_() for w in weights()]
    step = eager(loss, p, torch.optim.Adam(p, lr=LR, fused=True))
    return loop(step, None, batches(convert), lambda v: v.item())


def with_torch_compile() -> Session:
    import torch

    return with_torch(torch.compile(torch_loss, dynamic=False))


WORKLOAD = Workload(
    "W5",
    "CNN after LeNet, 28x28, batch 64, Adam",
    {
        "retrograd": with_retrograd,
        "retrograd-eager": with_retrograd_eager,
        "jax": with_jax,
        "torch": with_torch,
        "torch-compile": with_torch_compile,
    },
    # No first gradient is off by more than 3e-6, but ReLU and pooling choose, and Adam divides
    # by small numbers, so rounding grows tenfold in every two or three steps.
    tolerance=1e-3,
    targets=(Target("retrograd", 11e-3, "torch", 15e-3),),
    optional=frozenset({"torch-compile"}),
)
