"""Denoising diffusion (Ho et al., arXiv:2006.11239) on two moons.

    python -m examples.diffusion [--steps 4000] [--seed 0] [--picture diffusion.svg]

A network learns which noise was added to a point, for every amount of noise. Sampling begins with
noise alone and takes a part of it away, a hundred times: a `rg.scan` backwards over the amounts.
"""

from typing import Any

import retrograd as rg
from examples.flow import moons
from examples.scatter import scatter
from retrograd import nn, optim

TIMES, HIDDEN, BATCH, SCALE = 100, 96, 256, 3.0
BETAS = rg.linspace(1e-4, 0.1, TIMES)
KEPT = rg.cumulative_prod(1.0 - BETAS)  # the share of the point that is left in the variance


class Denoiser(nn.Module):
    """The noise in a point `[n, 2]` at a time `[n]`."""

    def __init__(self, g: rg.random.Generator) -> None:
        self.times = nn.Embedding(TIMES, HIDDEN, generator=g)
        self.inputs = nn.Linear(2, HIDDEN, generator=g)
        self.net = nn.Sequential(
            nn.SiLU(), nn.Linear(HIDDEN, HIDDEN, generator=g),
            nn.SiLU(), nn.Linear(HIDDEN, HIDDEN, generator=g),
            nn.SiLU(), nn.Linear(HIDDEN, 2, generator=g),
        )  # fmt: skip

    def forward(self, x: Any, t: Any) -> Any:
        return self.net(self.inputs(x) + self.times(t))


def loss(model: Denoiser, g: rg.random.Generator) -> Any:
    """The mean square of what is wrong with the noise that the network finds."""
    x, t, noise = SCALE * moons(g, BATCH), g.randint(0, TIMES, (BATCH,)), g.normal((BATCH, 2))
    kept = KEPT[t][:, None]
    return ((model(rg.sqrt(kept) * x + rg.sqrt(1.0 - kept) * noise, t) - noise) ** 2).mean()


@rg.jit(static_argnames="n")
def sample(model: Denoiser, g: rg.random.Generator, n: int) -> Any:
    """n points, from noise, one time after the other."""

    def denoise(carry: Any, t: Any) -> Any:
        x, g = carry
        noise = model(x, rg.full((n,), t))
        x = (x - BETAS[t] / rg.sqrt(1.0 - KEPT[t]) * noise) / rg.sqrt(1.0 - BETAS[t])
        x = x + rg.where(t > 0, rg.sqrt(BETAS[t]), 0.0) * g.normal((n, 2))
        return (x, g), None

    (x, _), _ = rg.scan(denoise, (g.normal((n, 2)), g), rg.arange(TIMES), reverse=True)
    return x / SCALE


def main(steps: int = 4000, seed: int = 0, picture: str = "") -> dict[str, float]:
    """The share of samples near a moon, and how evenly they cover both."""
    g = rg.random.Generator(seed)
    model = Denoiser(g)
    opt = optim.Adam(lr=optim.schedules.cosine(2e-3, steps))

    @rg.jit(donate=("model", "state"))
    def step(model: Denoiser, state: Any, g: rg.random.Generator) -> Any:
        value, grads = rg.value_and_grad(lambda model: loss(model, g))(model)
        return *opt.update(model, grads, state), g, value

    state = opt.init(model)
    for i in range(steps):
        model, state, g, value = step(model, state, g)
        if i % 500 == 0:
            print(f"step {i:4} loss {value.item():.4f}")
    points, curve = sample(model, g, 1000), moons(g, 1000, noise=0.0)
    distance = rg.linalg.vector_norm(points[:, None] - curve, axis=2)
    near = (distance.min(axis=1) < 0.3).mean().item()
    covered = (distance.min(axis=0) < 0.3).mean().item()
    print(f"{100 * near:.1f} % of samples near a moon, {100 * covered:.1f} % of the moons covered")
    if picture:
        scatter(picture, moons(g, 500), points[:500])
    return {"loss": value.item(), "near": near, "covered": covered}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
