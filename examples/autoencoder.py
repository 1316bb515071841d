"""A variational autoencoder (Kingma, Welling, arXiv:1312.6114) of drawn shapes.

    python -m examples.autoencoder [--steps 500] [--seed 0]

Pictures are 12 x 12 pixels with one disc of random place and size: three numbers say all, and the
code has four. The loss is the negative evidence lower bound. Its noise comes from a generator that
is an argument and a result of the compiled step: a generator is a value as any other, so a run
depends on its seed alone.
"""

from typing import Any

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

SIDE, CODE, HIDDEN, BATCH = 12, 4, 96, 64


def discs(g: rg.random.Generator, n: int) -> Any:
    """Pictures `[n, SIDE**2]` from 0 to 1, one disc in each."""
    x, y, radius = (g.uniform((n, 1, 1), *range_) for range_ in ((3, 9), (3, 9), (1.5, 3.5)))
    grid = rg.arange(SIDE) + 0.5
    distance = rg.hypot(grid[:, None] - y, grid[None, :] - x)
    return rg.sigmoid(4.0 * (radius - distance)).reshape((n, SIDE * SIDE))


class VAE(nn.Module):
    def __init__(self, g: rg.random.Generator) -> None:
        def layers(*sizes: int) -> nn.Sequential:
            (a, b, c) = sizes
            return nn.Sequential(
                nn.Linear(a, b, generator=g), nn.ReLU(), nn.Linear(b, c, generator=g)
            )

        self.encoder = layers(SIDE * SIDE, HIDDEN, 2 * CODE)
        self.decoder = layers(CODE, HIDDEN, SIDE * SIDE)

    def forward(self, x: Any, noise: Any) -> tuple[Any, Any, Any]:
        """Logits of the pixels, and mean and logarithm of the variance of the code."""
        mean, log_var = rg.split(self.encoder(x), 2, axis=1)
        return self.decoder(mean + rg.exp(0.5 * log_var) * noise), mean, log_var


def loss(model: VAE, x: Any, noise: Any) -> Any:
    """Negative evidence lower bound per picture, and the divergence that is part of it."""
    logits, mean, log_var = model(x, noise)
    errors = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / x.shape[0]
    divergence = 0.5 * (rg.exp(log_var) + mean**2 - 1.0 - log_var).sum(axis=1).mean()
    return errors + divergence, divergence


def main(steps: int = 500, seed: int = 0) -> dict[str, float]:
    """New pictures at every step; how well others are restored, in shares of their variance."""
    g = rg.random.Generator(seed)
    model = VAE(g)
    opt = optim.Adam(lr=optim.schedules.cosine(3e-3, steps))

    @rg.jit(donate=("model", "state"))
    def step(model: VAE, state: Any, g: rg.random.Generator) -> Any:
        x, noise = discs(g, BATCH), g.normal((BATCH, CODE))
        (value, kl), grads = rg.value_and_grad(loss, has_aux=True)(model, x, noise)
        return *opt.update(model, grads, state), g, value, kl

    state = opt.init(model)
    for i in range(steps):
        model, state, g, value, kl = step(model, state, g)
        if i % 100 == 0:
            print(f"step {i:4} loss {value.item():.2f}, of it divergence {kl.item():.2f}")
    x = discs(g, 500)
    restored = rg.sigmoid(model(x, rg.zeros((500, CODE)))[0])
    explained = 1.0 - ((x - restored) ** 2).mean() / ((x - x.mean(axis=0)) ** 2).mean()
    bound = loss(model, x, g.normal((500, CODE)))[0]
    print(f"bound {bound.item():.2f}, explained variance {explained.item():.3f}")
    return {"loss": bound.item(), "explained": explained.item()}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
