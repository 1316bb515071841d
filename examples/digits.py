"""A convolutional network that reads digits of 8 x 8 pixels.

    python -m examples.digits [--steps 400] [--seed 0]

The digits are scikit-learn's if it is installed, 1,797 handwritten ones; without it they are drawn
here. `rg.jit` compiles a whole step, with the gradient and the optimizer's update, into one
program. The module is an argument and a result of it like any other value; its old memory is
donated. Batch normalisation changes running means as it is called: `rg.grad` works on a copy of the
model, so the loss returns that as well (`has_aux`), and it is what the optimizer moves.
"""

from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

BATCH = 64
FONT = (  # rows of five pixels, written as numbers in base 2
    "0e1111110e 040c04040e 0e1106081f 1e010e011e 0a121f0202 1f101e011e 0e101e110e 1f02040408 "
    "0e110e110e 0e110f010e"
)


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits of the font at random places, with noise; values from 0 to 16."""
    rng = np.random.default_rng(seed)
    bits = [[int(f[i : i + 2], 16) for i in range(0, 10, 2)] for f in FONT.split()]
    shapes = np.array([[[r >> (4 - c) & 1 for c in range(5)] for r in rows] for rows in bits])
    labels = rng.integers(0, 10, n)
    images = rng.uniform(0, 4, (n, 8, 8))
    for image, label, (i, j) in zip(images, labels, rng.integers(0, 4, (n, 2)), strict=True):
        image[i : i + 5, j : j + 5] += 12 * shapes[label]
    return images, labels


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images `[N, 1, 8, 8]` from 0 to 1, and labels, in random order."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        x, y = drawn(1797, seed)
    else:
        x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return x.reshape(-1, 1, 8, 8)[order].astype(np.float32) / 16, y[order].astype(np.int64)


class Network(nn.Module):
    def __init__(self, g: rg.random.Generator) -> None:
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, generator=g)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, generator=g)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32 * 2 * 2, 10, generator=g)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(rg.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(rg.relu(self.norm2(self.conv2(x))), 2)
        return self.head(x.reshape((x.shape[0], -1)))


def main(steps: int = 400, seed: int = 0) -> dict[str, float]:
    """Train on four fifths of the digits, test on the rest."""
    x, y = digits(seed)
    n = len(y) * 4 // 5
    model = Network(rg.random.Generator(seed))
    opt = optim.AdamW(lr=optim.schedules.cosine(3e-3, steps))

    def loss(model: Network, x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x), y), model

    @rg.jit(donate=("model", "state"))
    def step(model: Network, state: Any, x: Any, y: Any) -> Any:
        (value, model), grads = rg.value_and_grad(loss, has_aux=True)(model, x, y)
        return *opt.update(model, grads, state), value

    @rg.jit
    def accuracy(model: Network, x: Any, y: Any) -> Any:
        return (model(x).argmax(axis=1) == y).mean()

    state, rng = opt.init(model), np.random.default_rng(seed)
    for i in range(steps):
        batch = rng.choice(n, BATCH, replace=False)
        model, state, value = step(model, state, x[batch], y[batch])
        if i % 100 == 0:
            print(f"step {i:4} loss {value.item():.4f}")
    model.eval()
    found = {"train": accuracy(model, x[:n], y[:n]), "test": accuracy(model, x[n:], y[n:])}
    print(", ".join(f"{k} accuracy {v.item():.4f}" for k, v in found.items()))
    return {k: v.item() for k, v in found.items()}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
