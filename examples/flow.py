"""A normalising flow, RealNVP (Dinh et al., arXiv:1605.08803), whose density is two moons.

    python -m examples.flow [--steps 1000] [--seed 0] [--picture flow.svg]

Layers that change one coordinate by a scale and a shift that depend on the other are invertible,
and the determinant of their Jacobian is the scale. So the density of the data is known exactly, and
is what is maximised. All steps between two lines of progress are one program, a `rg.scan`.
"""

from typing import Any

import retrograd as rg
from examples.scatter import scatter
from retrograd import nn, optim

LAYERS, HIDDEN, BATCH, EVERY = 8, 32, 128, 100


def moons(g: rg.random.Generator, n: int, noise: float = 0.1) -> Any:
    """Points `[n, 2]` on two interleaved half circles."""
    angle, lower = g.uniform((n,), 0.0, rg.pi), g.bernoulli(0.5, (n,))
    x = rg.where(lower, 1.0 - rg.cos(angle), rg.cos(angle)) - 0.5
    y = rg.where(lower, 0.5 - rg.sin(angle), rg.sin(angle)) - 0.25
    return rg.stack([x, y], axis=1) + noise * g.normal((n, 2))


class Coupling(nn.Module):
    """y_i = x_i exp(s(x_j)) + t(x_j) for one coordinate, and x_j stays."""

    def __init__(self, at: int, g: rg.random.Generator) -> None:
        self.at = at
        self.net = nn.Sequential(
            nn.Linear(1, HIDDEN, generator=g), nn.Tanh(),
            nn.Linear(HIDDEN, HIDDEN, generator=g), nn.Tanh(), nn.Linear(HIDDEN, 2, generator=g),
        )  # fmt: skip

    def scale_and_shift(self, other: Any) -> tuple[Any, Any]:
        s, t = rg.unstack(self.net(other[:, None]), axis=1)
        return rg.tanh(s), t

    def forward(self, x: Any) -> tuple[Any, Any]:
        """From data to noise, and the logarithm of the determinant."""
        s, t = self.scale_and_shift(x[:, 1 - self.at])
        return x.at[:, self.at].set(x[:, self.at] * rg.exp(s) + t), s

    def inverse(self, y: Any) -> Any:
        s, t = self.scale_and_shift(y[:, 1 - self.at])
        return y.at[:, self.at].set((y[:, self.at] - t) * rg.exp(-s))


class Flow(nn.Module):
    def __init__(self, g: rg.random.Generator) -> None:
        self.layers = nn.ModuleList(Coupling(i % 2, g) for i in range(LAYERS))

    def log_density(self, x: Any) -> Any:
        total = 0.0
        for layer in self.layers:
            x, s = layer(x)
            total = total + s
        return total - 0.5 * (x**2).sum(axis=1) - rg.log(rg.tensor(2.0 * rg.pi))

    def sample(self, g: rg.random.Generator, n: int) -> Any:
        x = g.normal((n, 2))
        for layer in reversed(self.layers):
            x = layer.inverse(x)
        return x


def main(steps: int = 1000, seed: int = 0, picture: str = "") -> dict[str, float]:
    """The mean log-density of other points, and the share of samples that lie near a moon."""
    g = rg.random.Generator(seed)
    flow = Flow(g)
    opt = optim.Adam(lr=optim.schedules.cosine(3e-3, steps))

    def step(carry: Any, _: None) -> Any:
        flow, state, g = carry
        x = moons(g, BATCH)
        value, grads = rg.value_and_grad(lambda flow: -flow.log_density(x).mean())(flow)
        return (*opt.update(flow, grads, state), g), value

    @rg.jit
    def train(carry: Any) -> Any:
        return rg.scan(step, carry, length=min(EVERY, steps))

    carry = (flow, opt.init(flow), g)
    for i in range(0, steps, EVERY):
        carry, losses = train(carry)
        print(f"step {i:4} negative log-density {losses.mean().item():.4f}")
    flow, _, g = carry
    density = flow.log_density(moons(g, 2000)).mean().item()
    samples, curve = flow.sample(g, 1000), moons(g, 2000, noise=0.0)
    distance = rg.linalg.vector_norm(samples[:, None] - curve, axis=2).min(axis=1)
    near = (distance < 0.3).mean().item()
    print(f"log-density {density:.3f}, {100 * near:.1f} % of samples near a moon")
    if picture:
        scatter(picture, moons(g, 500), samples[:500])
    return {"log_density": density, "near": near}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
