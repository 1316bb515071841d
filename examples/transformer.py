"""A transformer that classifies sequences: which letter follows the star?

    python -m examples.transformer [--steps 600] [--seed 0]

Sequences of 6 to 16 letters hold one star somewhere, `c a e * b d a` has the class b. So the model
must find a symbol by content and look beside it by position. Sequences are padded to one length,
and a mask keeps attention away from the padding. Layers are PyTorch's, with its arguments.
"""

from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

LETTERS, LENGTH, WIDTH, HEADS, BATCH = 8, 16, 32, 4, 64
STAR, PADDING = LETTERS, LETTERS + 1


def sequences(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Tokens `[n, LENGTH]` and classes `[n]`."""
    tokens = rng.integers(0, LETTERS, (n, LENGTH))
    lengths = rng.integers(6, LENGTH + 1, n)
    star = rng.integers(0, lengths - 1)
    labels = tokens[np.arange(n), star + 1]
    tokens[np.arange(n), star] = STAR
    tokens[np.arange(LENGTH) >= lengths[:, None]] = PADDING
    return tokens, labels


class Classifier(nn.Module):
    def __init__(self, g: rg.random.Generator) -> None:
        self.letters = nn.Embedding(LETTERS + 2, WIDTH, generator=g)
        self.places = nn.Embedding(LENGTH, WIDTH, generator=g)
        options: Any = {"dropout": 0.0, "batch_first": True, "norm_first": True, "generator": g}
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, **options) for _ in range(2)
        )
        self.head = nn.Linear(WIDTH, LETTERS, generator=g)

    def forward(self, tokens: Any) -> Any:
        padding = tokens == PADDING
        x = self.letters(tokens) + self.places.weight
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        x = rg.where(padding[:, :, None], -rg.inf, x)
        return self.head(x.max(axis=1))


def main(steps: int = 600, seed: int = 0) -> dict[str, float]:
    """New sequences at every step; loss and accuracy on 1,000 others."""
    rng = np.random.default_rng(seed)
    model = Classifier(rg.random.Generator(seed))
    opt = optim.AdamW(lr=optim.schedules.cosine(3e-3, steps, warmup=steps // 20))

    def loss(model: Classifier, tokens: Any, labels: Any) -> Any:
        return F.cross_entropy(model(tokens), labels)

    @rg.jit(donate=("model", "state"))
    def step(model: Classifier, state: Any, tokens: Any, labels: Any) -> Any:
        value, grads = rg.value_and_grad(loss)(model, tokens, labels)
        grads, _ = optim.clip_by_norm(grads, 1.0)
        return *opt.update(model, grads, state), value

    @rg.jit
    def test(model: Classifier, tokens: Any, labels: Any) -> Any:
        scores = model(tokens)
        return F.cross_entropy(scores, labels), (scores.argmax(axis=1) == labels).mean()

    state = opt.init(model)
    for i in range(steps):
        model, state, value = step(model, state, *sequences(BATCH, rng))
        if i % 100 == 0:
            print(f"step {i:4} loss {value.item():.4f}")
    final, accuracy = test(model, *sequences(1000, rng))
    print(f"test loss {final.item():.4f} accuracy {accuracy.item():.4f}")
    return {"loss": final.item(), "accuracy": accuracy.item()}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
