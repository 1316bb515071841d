"""A physics-informed network (Raissi et al., 2019) that solves Burgers' equation.

    python -m examples.pinn [--steps 4000] [--seed 0]

u_t + u u_x = nu u_xx on -1 < x < 1, 0 < t < 1, with u = -sin(pi x) at t = 0 and u = 0 at the ends.
The network is u(x, t); it never sees a solution, only how far the equation is from holding at
random points. Derivatives with respect to x and t are those of a function of two numbers, made by
`rg.grad`, for all points by `rg.vmap`; the loss is differentiated once more for the weights.
"""

from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn, optim

NU, HIDDEN, INSIDE, EDGE = 0.05, 24, 256, 64


class Solution(nn.Module):
    """u(x, t) of two scalars."""

    def __init__(self, g: rg.random.Generator) -> None:
        self.net = nn.Sequential(
            nn.Linear(2, HIDDEN, generator=g), nn.Tanh(),
            nn.Linear(HIDDEN, HIDDEN, generator=g), nn.Tanh(),
            nn.Linear(HIDDEN, HIDDEN, generator=g), nn.Tanh(), nn.Linear(HIDDEN, 1, generator=g),
        )  # fmt: skip

    def forward(self, x: Any, t: Any) -> Any:
        return self.net(rg.stack([x, t]))[0]


def residual(u: Any, x: Any, t: Any) -> Any:
    """What is left of the equation at one point."""
    u_x = rg.grad(u, argnums=0)
    u_xx, u_t = rg.grad(u_x, argnums=0), rg.grad(u, argnums=1)
    return u_t(x, t) + u(x, t) * u_x(x, t) - NU * u_xx(x, t)


def loss(u: Solution, g: rg.random.Generator) -> Any:
    """Mean squares: of the residual inside, and of what is wrong at the start and at the ends."""
    x, t = g.uniform((INSIDE,), -1.0, 1.0), g.uniform((INSIDE,))
    inside = rg.vmap(lambda x, t: residual(u, x, t))(x, t)
    x, t = g.uniform((EDGE,), -1.0, 1.0), g.uniform((EDGE,))
    start = rg.vmap(lambda x: u(x, 0.0) + rg.sin(rg.pi * x))(x)
    left, right = (rg.vmap(lambda t, x=x: u(x, t))(t) for x in (-1.0, 1.0))
    return (inside**2).mean() + (start**2).mean() + (left**2 + right**2).mean()


def exact(x: np.ndarray, t: float) -> np.ndarray:
    """The solution by the transformation of Cole and Hopf, with Gauss-Hermite quadrature."""
    z, w = np.polynomial.hermite.hermgauss(100)
    y = x[:, None] - np.sqrt(4 * NU * t) * z
    f = w * np.exp(-np.cos(np.pi * y) / (2 * np.pi * NU))
    return -(f * np.sin(np.pi * y)).sum(axis=1) / f.sum(axis=1)


def main(steps: int = 4000, seed: int = 0) -> dict[str, float]:
    """Train on new points at every step; the relative error of the solution at later times."""
    g = rg.random.Generator(seed)
    u = Solution(g)
    opt = optim.Adam(lr=optim.schedules.cosine(5e-3, steps))

    @rg.jit(donate=("u", "state"))
    def step(u: Solution, state: Any, g: rg.random.Generator) -> Any:
        value, grads = rg.value_and_grad(lambda u: loss(u, g))(u)
        return *opt.update(u, grads, state), g, value

    state = opt.init(u)
    for i in range(steps):
        u, state, g, value = step(u, state, g)
        if i % 500 == 0:
            print(f"step {i:4} loss {value.item():.5f}")
    x, times = np.linspace(-1, 1, 101), (0.25, 0.5, 0.75, 1.0)
    expected = np.stack([exact(x, t) for t in times])
    on_grid = rg.vmap(rg.vmap(u, in_axes=(0, None)), in_axes=(None, 0))
    found = on_grid(rg.tensor(x, rg.float32), rg.tensor(times)).numpy()
    error = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    print(f"loss {value.item():.6f}, relative error of the solution {error:.4f}")
    return {"loss": value.item(), "error": error}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
