"""A deep equilibrium model (Bai et al., arXiv:1909.01377): a layer that is a fixed point.

    python -m examples.deq [--steps 300] [--seed 0]

The state z of the layer solves z = tanh(W z + U x + b). `rg.fixed_point` iterates until nothing
changes, and gradients come from the implicit function theorem, not from the iterations: memory does
not grow with their number. The data are two spirals, which no straight line divides.
"""

from typing import Any

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

HIDDEN, POINTS = 32, 200


def spirals(g: rg.random.Generator, n: int) -> tuple[Any, Any]:
    """Points `[2 n, 2]` on two arms of a spiral, and labels 0 and 1."""
    radius = rg.sqrt(g.uniform((n,), 0.02, 1.0))
    angle = 2.0 * rg.pi * radius
    arm = radius * rg.stack([rg.cos(angle), rg.sin(angle)])
    points = rg.concat([arm, -arm], axis=1).T + 0.02 * g.normal((2 * n, 2))
    return points, rg.concat([rg.zeros((n,)), rg.ones((n,))])


class Equilibrium(nn.Module):
    """The z with z = tanh(W z + U x + b). W is scaled to a norm below 1, so there is one such z,
    and the iteration finds it."""

    def __init__(self, inputs: int, size: int, g: rg.random.Generator) -> None:
        self.inputs = nn.Linear(inputs, size, generator=g)
        self.weight = nn.Parameter(nn.init.normal((size, size), std=size**-0.5, generator=g))

    def forward(self, x: Any) -> Any:
        norm = rg.linalg.matrix_norm(self.weight)
        w = self.weight * (0.95 / rg.maximum(norm, 0.95))
        u = self.inputs(x)
        return rg.fixed_point(lambda z: rg.tanh(z @ w.T + u), rg.zeros(u.shape), tol=1e-4)


def main(steps: int = 300, seed: int = 0) -> dict[str, float]:
    g = rg.random.Generator(seed)
    x, y = spirals(g, POINTS)
    model = nn.Sequential(
        nn.Linear(2, HIDDEN, generator=g), nn.Tanh(),
        Equilibrium(HIDDEN, HIDDEN, g), nn.Linear(HIDDEN, 1, generator=g),
    )  # fmt: skip
    opt = optim.Adam(lr=optim.schedules.cosine(1e-2, steps))

    def loss(model: Any) -> Any:
        logits = model(x)[:, 0]
        right = ((logits > 0) == (y > 0.5)).mean()
        return F.binary_cross_entropy_with_logits(logits, y), right

    @rg.jit(donate=("model", "state"))
    def step(model: Any, state: Any) -> Any:
        (value, right), grads = rg.value_and_grad(loss, has_aux=True)(model)
        return *opt.update(model, grads, state), value, right

    state = opt.init(model)
    for i in range(steps):
        model, state, value, right = step(model, state)
        if i % 50 == 0:
            print(f"step {i:3} loss {value.item():.4f} accuracy {right.item():.3f}")
    x, y = spirals(g, 500)
    accuracy = ((model(x)[:, 0] > 0) == (y > 0.5)).mean().item()
    print(f"loss {value.item():.4f}, accuracy on other points {accuracy:.3f}")
    return {"loss": value.item(), "accuracy": accuracy}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
