"""A neural ordinary differential equation (Chen et al., arXiv:1806.07366) that learns a pendulum.

    python -m examples.neural_ode [--steps 1000] [--seed 0]

The right-hand side of dy/dt = f(y) is a network; `rg.odeint` integrates it with steps of its own
choice, and gradients go through these steps. What is learned from are short pieces of one motion of
a pendulum with friction, a spiral in the plane of angle and velocity; the test is the whole motion
from its beginning, which was never seen as one.
"""

from typing import Any

import retrograd as rg
from retrograd import nn, optim

POINTS, PIECE, BATCH, HIDDEN, FRICTION = 200, 20, 16, 32, 0.15
TOLERANCE: Any = {"rtol": 1e-4, "atol": 1e-5}


class Field(nn.Module):
    """The right-hand side: the velocity and the acceleration."""

    def __init__(self, g: rg.random.Generator) -> None:
        self.net = nn.Sequential(
            nn.Linear(2, HIDDEN, generator=g), nn.Tanh(),
            nn.Linear(HIDDEN, HIDDEN, generator=g), nn.Tanh(), nn.Linear(HIDDEN, 2, generator=g),
        )  # fmt: skip

    def forward(self, t: Any, y: Any) -> Any:
        return self.net(y)


def pendulum() -> tuple[Any, Any]:
    """Times, and the states `[POINTS, 2]` of the true equation."""

    def field(t: Any, y: Any) -> Any:
        return rg.stack([y[1], -rg.sin(y[0]) - FRICTION * y[1]])

    times = rg.linspace(0.0, 20.0, POINTS)
    return times, rg.odeint(field, rg.tensor([2.5, 0.0]), times)


def main(steps: int = 1000, seed: int = 0) -> dict[str, float]:
    """The loss at the end, and how far the whole motion is from the true one."""
    g = rg.random.Generator(seed)
    times, truth = pendulum()
    model = Field(g)
    opt = optim.Adam(lr=optim.schedules.cosine(1e-2, steps))

    def loss(model: Field, starts: Any) -> Any:
        """The mean distance of the pieces that begin at these points, integrated all at once."""
        pieces = truth[starts[None, :] + rg.arange(PIECE)[:, None]]
        found = rg.odeint(model, pieces[0], times[:PIECE], **TOLERANCE)
        return rg.abs(found - pieces).mean()

    @rg.jit(donate=("model", "state"))
    def step(model: Field, state: Any, g: rg.random.Generator) -> Any:
        value, grads = rg.value_and_grad(loss)(model, g.randint(0, POINTS - PIECE, (BATCH,)))
        return *opt.update(model, grads, state), g, value

    state = opt.init(model)
    for i in range(steps):
        model, state, g, value = step(model, state, g)
        if i % 100 == 0:
            print(f"step {i:3} loss {value.item():.5f}")
    whole = rg.odeint(model, truth[0], times, **TOLERANCE)
    error = rg.abs(whole - truth).mean() / rg.abs(truth).mean()
    print(f"the whole motion differs by {100 * error.item():.1f} %")
    return {"loss": value.item(), "error": error.item()}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
