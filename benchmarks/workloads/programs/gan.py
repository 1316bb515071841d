"""A generative adversarial network of two MLPs, trained in turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, filled, item, tensors

NOISE, WIDTH, POINT, BATCH, LR = 8, 64, 2, 64, 1e-3


def batches() -> list[tuple[Any, Any, Any]]:
    """Points on a circle, and the noise of both turns."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(16):
        angle = rng.uniform(0, 2 * np.pi, BATCH)
        points = np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
        found.append((points, *rng.normal(0, 1, (2, BATCH, NOISE)).astype(np.float32)))
    return found


def program(lib: Any) -> Session:
    nn = lib.nn

    def mlp(inputs: int, outputs: int, seed: int) -> Any:
        layers = (nn.Linear(inputs, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, WIDTH))
        last = (nn.LeakyReLU(0.2), nn.Linear(WIDTH, outputs))
        return filled(lib, nn.Sequential(*layers, *last), seed)

    maker, critic = mlp(NOISE, POINT, 0), mlp(POINT, 1, 1)
    of_maker = lib.optim.Adam(maker.parameters(), lr=LR, betas=(0.5, 0.999))
    of_critic = lib.optim.Adam(critic.parameters(), lr=LR, betas=(0.5, 0.999))
    told = nn.functional.binary_cross_entropy_with_logits
    true, false = lib.ones((BATCH, 1)), lib.zeros((BATCH, 1))

    def step(state: Any, points: Any, first: Any, second: Any) -> Any:
        made = maker(first).detach()
        of_critic.zero_grad()
        loss = told(critic(points), true) + told(critic(made), false)
        loss.backward()
        of_critic.step()
        of_maker.zero_grad()
        fooled = told(critic(maker(second)), true)
        fooled.backward()
        of_maker.step()
        return state, loss.detach() + fooled.detach()

    return loop(step, None, tensors(lib, batches()), item)


WORKLOAD = Workload("program-gan", "GAN of two MLPs, batch 64, Adam twice", both(program))
