"""A physics-informed network for Burgers' equation: derivatives by the inputs inside the loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Build, Workload
from benchmarks.workloads.libraries import normal, trained

WIDTH, POINTS, VISCOSITY = 64, 1024, 0.01 / np.pi


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = ((WIDTH, 2), (WIDTH, WIDTH), (WIDTH, WIDTH), (1, WIDTH))
    p: dict[str, Any] = {f"w{i}": normal(rng, *shape) for i, shape in enumerate(sizes)}
    return p | {f"b{i}": np.zeros(shape[0], np.float32) for i, shape in enumerate(sizes)}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    x, t = rng.uniform((-1, 0), (1, 1), (4, POINTS, 2)).astype(np.float32).transpose(2, 0, 1)
    return list(zip(x.copy(), t.copy(), strict=True))


def network(lib: Any, p: Any, x: Any, t: Any) -> Any:
    """u(x, t) for one point, or for many; -sin(pi x) at t = 0, and 0 at the sides."""
    F = lib.nn.functional
    h = lib.stack([x, t], -1)
    for i in range(3):
        h = lib.tanh(F.linear(h, p[f"w{i}"], p[f"b{i}"]))
    u = F.linear(h, p["w3"], p["b3"])[..., 0]
    return t * (1 - x**2) * u - lib.sin(np.pi * x)


def by_transforms(lib: Any, p: Any, x: Any, t: Any) -> Any:
    """As in retrograd and JAX: derivatives are functions of one point, mapped over all."""

    def u(x: Any, t: Any) -> Any:
        return network(lib, p, x, t)

    def residual(x: Any, t: Any) -> Any:
        slope = lib.grad(u, 0)
        return lib.grad(u, 1)(x, t) + u(x, t) * slope(x, t) - VISCOSITY * lib.grad(slope)(x, t)

    return (lib.vmap(residual)(x, t) ** 2).mean()


def by_backward(lib: Any, p: Any, x: Any, t: Any) -> Any:
    """As in PyTorch: gradients of sums over points, as parts of the graph."""

    def slopes(y: Any, *by: Any) -> Any:
        return lib.autograd.grad(y.sum(), by, create_graph=True)

    x, t = x.clone().requires_grad_(), t.clone().requires_grad_()
    u = network(lib, p, x, t)
    ux, ut = slopes(u, x, t)
    (uxx,) = slopes(ux, x)
    return ((ut + u * ux - VISCOSITY * uxx) ** 2).mean()


def loss(lib: Any, p: Any, x: Any, t: Any) -> Any:
    return (by_backward if lib.__name__ == "torch" else by_transforms)(lib, p, x, t)


PEERS: dict[str, Build] = trained(weights, batches, loss)
WORKLOAD = Workload(
    "held-pinn",
    "Burgers' equation, network 2-64-64-64-1 at 1,024 points, second derivatives, Adam",
    PEERS,
)
