"""Policy gradient, REINFORCE (Williams, 1992): a cart learns to balance a pole.

    python -m examples.reinforce [--steps 150] [--seed 0]

The cart of Barto, Sutton and Anderson (1983) as Gym has it, written here as a function of tensors,
so 32 carts drive side by side and an episode of all of them, the gradient and the update are one
compiled program: `rg.scan` over time, and a generator that is carried along.
"""

from typing import Any

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

CARTS, LIMIT, DISCOUNT = 32, 200, 0.99
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


def move(state: Any, right: Any) -> Any:
    """States `[n, 4]`, position, velocity, angle and its velocity, a fiftieth of a second on."""
    x, v, angle, w = rg.unstack(state, axis=1)
    sin, cos, mass = rg.sin(angle), rg.cos(angle), CART + POLE
    push = (rg.where(right, FORCE, -FORCE) + POLE * HALF_LENGTH * w**2 * sin) / mass
    turn = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4 / 3 - POLE * cos**2 / mass))
    pull = push - POLE * HALF_LENGTH * turn * cos / mass
    return rg.stack([x + DT * v, v + DT * pull, angle + DT * w, w + DT * turn], axis=1)


def stands(state: Any) -> Any:
    """Whether the cart is on its track and the pole within 12 degrees."""
    return (rg.abs(state[:, 0]) < 2.4) & (rg.abs(state[:, 2]) < 12 * rg.pi / 180)


def episode(policy: Any, g: rg.random.Generator) -> tuple[Any, ...]:
    """States `[T, n, 4]`, actions `[T, n]` and whether the pole still stood; and the generator."""

    def step(carry: Any, _: None) -> Any:
        state, alive, g = carry
        right = g.bernoulli(rg.sigmoid(policy(state)[:, 0]))
        new = move(state, right)
        return (new, alive & stands(new), g), (state, right, alive)

    start = g.uniform((CARTS, 4), -0.05, 0.05)
    (*_, g), found = rg.scan(step, (start, stands(start), g), length=LIMIT)
    return *found, g


def returns(alive: Any) -> Any:
    """What is still to come at each time, of a reward of 1 for each step, discounted."""

    def back(total: Any, reward: Any) -> Any:
        total = reward + DISCOUNT * total
        return total, total

    return rg.scan(back, rg.zeros((CARTS,)), alive.astype(rg.float32), reverse=True)[1]


def main(steps: int = 150, seed: int = 0) -> dict[str, float]:
    """An episode of all carts at every step; how long poles stand at first and at the end."""
    g = rg.random.Generator(seed)
    policy = nn.Sequential(nn.Linear(4, 32, generator=g), nn.Tanh(), nn.Linear(32, 1, generator=g))
    opt = optim.Adam(lr=optim.schedules.linear(2e-2, steps))

    @rg.jit(donate=("policy", "state"))
    def step(policy: Any, state: Any, g: rg.random.Generator) -> Any:
        states, right, alive, g = episode(policy, g)
        total, weight = returns(alive), alive.astype(rg.float32)
        mean = (weight * total).sum() / weight.sum()
        spread = rg.sqrt((weight * (total - mean) ** 2).sum() / weight.sum())
        advantage = rg.stop_gradient(weight * (total - mean) / (spread + 1e-6))

        def loss(policy: Any) -> Any:
            """Minus the log-probability of what was done, weighed by what came of it."""
            logits = policy(states)[..., 0]
            surprise = F.binary_cross_entropy_with_logits(
                logits, right.astype(rg.float32), reduction="none"
            )
            return (advantage * surprise).sum() / weight.sum()

        return *opt.update(policy, rg.grad(loss)(policy), state), g, weight.sum() / CARTS

    state, lengths = opt.init(policy), []
    for i in range(steps):
        policy, state, g, length = step(policy, state, g)
        lengths.append(length.item())
        if i % 25 == 0:
            print(f"step {i:3} the poles stand for {lengths[-1]:.1f} of {LIMIT} steps")
    found = {"first": lengths[0], "last": sum(lengths[-10:]) / len(lengths[-10:])}
    print(f"at first {found['first']:.1f}, at the end {found['last']:.1f} of {LIMIT} steps")
    return found


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
