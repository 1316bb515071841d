"""Regression: a straight line beside the normal equations, then a curve by a small network.

    python -m examples.regression [--steps 2000] [--seed 0]

The line has two parameters, a dict of tensors, and is fitted by gradient descent: the loss of a
tree of parameters is a function, and `rg.grad` gives a tree of the same structure. Of the network,
all steps are one compiled program: `rg.scan` carries the model and the optimizer's state.
"""

from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn, optim

Numbers = dict[str, float]


def line(steps: int, g: rg.random.Generator) -> Numbers:
    """y = 2 x - 1 with noise, by gradient descent, and how far it is from the exact solution."""
    x = g.uniform((200,), -2.0, 2.0)
    y = 2.0 * x - 1.0 + 0.3 * g.normal((200,))

    def loss(p: dict[str, Any]) -> Any:
        return ((p["slope"] * x + p["offset"] - y) ** 2).mean()

    @rg.jit
    def step(p: dict[str, Any]) -> dict[str, Any]:
        return rg.tree.map(lambda w, g: w - 0.1 * g, p, rg.grad(loss)(p))

    p = {"slope": rg.tensor(0.0), "offset": rg.tensor(0.0)}
    for _ in range(steps):
        p = step(p)
    exact = np.polyfit(x.numpy(), y.numpy(), 1)
    found = [p["slope"].item(), p["offset"].item()]
    print(f"y = {found[0]:.3f} x + {found[1]:.3f}, exactly {exact[0]:.3f} x + {exact[1]:.3f}")
    return {"slope": found[0], "offset": found[1], "error": float(np.abs(found - exact).max())}


def curve(steps: int, g: rg.random.Generator) -> Numbers:
    """y = sin(3 x) with noise, by a network 1-32-32-1; R squared on points without noise."""
    x = g.uniform((256, 1), -2.0, 2.0)
    y = rg.sin(3.0 * x) + 0.1 * g.normal((256, 1))
    model = nn.Sequential(
        nn.Linear(1, 32, generator=g), nn.Tanh(),
        nn.Linear(32, 32, generator=g), nn.Tanh(), nn.Linear(32, 1, generator=g),
    )  # fmt: skip
    opt = optim.Adam(lr=optim.schedules.cosine(1e-2, steps))

    def loss(model: Any) -> Any:
        return ((model(x) - y) ** 2).mean()

    @rg.jit
    def train(model: Any, state: Any) -> Any:
        def step(carry: Any, _: None) -> Any:
            model, state = carry
            value, grads = rg.value_and_grad(loss)(model)
            return opt.update(model, grads, state), value

        (model, _), losses = rg.scan(step, (model, state), length=steps)
        return model, losses

    model, losses = train(model, opt.init(model))
    for i in range(0, steps, max(steps // 5, 1)):
        print(f"step {i:4} loss {losses[i].item():.4f}")
    grid = rg.linspace(-2.0, 2.0, 200)[:, None]
    truth = rg.sin(3.0 * grid)
    r2 = 1.0 - ((model(grid) - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
    print(f"R squared without noise {r2.item():.4f}")
    return {"loss": losses[-1].item(), "r2": r2.item()}


def main(steps: int = 2000, seed: int = 0) -> Numbers:
    g = rg.random.Generator(seed)
    return line(min(steps, 200), g) | curve(steps, g)


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
