"""Model-agnostic meta-learning (Finn et al., arXiv:1703.03400): sinusoids from ten points.

    python -m examples.maml [--steps 1500] [--seed 0]

A task is a sinusoid of its own amplitude and phase. What is learned is where to begin: the loss is
that after a step of gradient descent on ten points of a task, so its gradient is a gradient of a
gradient. `rg.grad` inside of `rg.grad`, `rg.vmap` over tasks, `rg.jit` around it.
"""

from typing import Any

import retrograd as rg
from retrograd import nn, optim

TASKS, SHOTS, INNER_LR = 25, 10, 0.02


def tasks(g: rg.random.Generator, n: int) -> tuple[Any, Any]:
    """Points `[n, 2 SHOTS, 1]` of n sinusoids: those to learn from, and those to test on."""
    amplitude, phase = g.uniform((n, 1, 1), 0.1, 5.0), g.uniform((n, 1, 1), 0.0, rg.pi)
    x = g.uniform((n, 2 * SHOTS, 1), -5.0, 5.0)
    return x, amplitude * rg.sin(x + phase)


def mse(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


def adapted(model: Any, x: Any, y: Any, steps: int = 1) -> Any:
    """The model after steps of gradient descent on these points."""
    for _ in range(steps):
        model = rg.tree.map(lambda p, g: p - INNER_LR * g, model, rg.grad(mse)(model, x, y))
    return model


def meta_loss(model: Any, x: Any, y: Any, steps: int = 1) -> Any:
    """The mean loss on the second half of the points, after learning from the first half."""

    def of_task(x: Any, y: Any) -> Any:
        return mse(adapted(model, x[:SHOTS], y[:SHOTS], steps), x[SHOTS:], y[SHOTS:])

    return rg.vmap(of_task)(x, y).mean()


def main(steps: int = 1500, seed: int = 0) -> dict[str, float]:
    """New tasks at every step; the loss on 200 others before adapting, and after 1 and 5 steps."""
    g = rg.random.Generator(seed)
    model = nn.Sequential(
        nn.Linear(1, 40, generator=g), nn.ReLU(),
        nn.Linear(40, 40, generator=g), nn.ReLU(), nn.Linear(40, 1, generator=g),
    )  # fmt: skip
    opt = optim.Adam(lr=optim.schedules.cosine(3e-3, steps))

    @rg.jit(donate=("model", "state"))
    def step(model: Any, state: Any, g: rg.random.Generator) -> Any:
        value, grads = rg.value_and_grad(meta_loss)(model, *tasks(g, TASKS))
        return *opt.update(model, grads, state), g, value

    state = opt.init(model)
    for i in range(steps):
        model, state, g, value = step(model, state, g)
        if i % 250 == 0:
            print(f"step {i:4} loss after one step of adapting {value.item():.3f}")
    x, y = tasks(g, 200)
    found = {f"after_{k}": meta_loss(model, x, y, k).item() for k in (0, 1, 5)}
    print(", ".join(f"{k} {v:.3f}" for k, v in found.items()))
    return found


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
