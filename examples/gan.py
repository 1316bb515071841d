"""A generative adversarial network (Goodfellow et al., arXiv:1406.2661): eight Gaussians on a ring.

    python -m examples.gan [--steps 3000] [--seed 0] [--picture gan.svg]

Two networks, two optimizers, the loop as in PyTorch: `detach()` keeps the discriminator's loss from
the generator, and `opt.step()` changes what its optimizer was given and nothing else.
"""

from typing import Any

import retrograd as rg
from examples.scatter import scatter
from retrograd import nn, optim
from retrograd.nn import functional as F

NOISE, HIDDEN, BATCH, SPREAD = 4, 64, 128, 0.1


def ring(g: rg.random.Generator, n: int) -> Any:
    """Points around eight centres on a circle of radius 2."""
    angle = g.randint(0, 8, (n,)) * (rg.pi / 4)
    centre = 2.0 * rg.stack([rg.cos(angle), rg.sin(angle)], axis=1)
    return centre.astype(rg.float32) + SPREAD * g.normal((n, 2))


def network(g: rg.random.Generator, inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN, generator=g), nn.LeakyReLU(0.2),
        nn.Linear(HIDDEN, HIDDEN, generator=g), nn.LeakyReLU(0.2),
        nn.Linear(HIDDEN, outputs, generator=g),
    )  # fmt: skip


def quality(points: Any) -> dict[str, float]:
    """The share of points within four spreads of a centre, and of centres that have their part."""
    angle = rg.arange(8) * (rg.pi / 4)
    centres = 2.0 * rg.stack([rg.cos(angle), rg.sin(angle)], axis=1)
    distance = rg.linalg.vector_norm(points[:, None] - centres, axis=2)
    near = distance.min(axis=1) < 4 * SPREAD
    counts = rg.bincount(distance.argmin(axis=1)[near], minlength=8)
    return {"near": near.mean().item(), "modes": (counts > points.shape[0] / 40).sum().item()}


def main(steps: int = 3000, seed: int = 0, picture: str = "") -> dict[str, float]:
    g = rg.random.Generator(seed)
    make, judge = network(g, NOISE, 2), network(g, 2, 1)
    opt_make = optim.Adam(make, lr=1e-3, betas=(0.5, 0.9))
    opt_judge = optim.Adam(judge, lr=1e-3, betas=(0.5, 0.9))
    real, fake = rg.ones((BATCH, 1)), rg.zeros((BATCH, 1))
    for step in range(steps):
        x, y = ring(g, BATCH), make(g.normal((BATCH, NOISE)))
        opt_judge.zero_grad()
        loss = F.binary_cross_entropy_with_logits(judge(x), real)
        loss = loss + F.binary_cross_entropy_with_logits(judge(y.detach()), fake)
        loss.backward()
        opt_judge.step()

        opt_make.zero_grad()
        cheat = F.binary_cross_entropy_with_logits(judge(y), real)
        cheat.backward()
        opt_make.step()
        if step % 500 == 0:
            print(f"step {step:4} discriminator {loss.item():.3f} generator {cheat.item():.3f}")
    with rg.no_grad():
        points = make(g.normal((1000, NOISE)))
    found = quality(points)
    if picture:
        scatter(picture, ring(g, 500), points[:500])
    print(
        f"{found['near']:.3f} of the points are near a centre, {found['modes']} centres have some"
    )
    return found


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
