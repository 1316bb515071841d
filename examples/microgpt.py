"""A GPT on scalars: trained and sampled with `rg.Value`, as microgpt does with a class of its own.

    python -m examples.microgpt [--steps 1000] [--seed 42] [--eager]

One layer, width 16, 4 heads, 4,192 parameters; one name per step, letter by letter; Adam. `rg.jit`
makes a program of each name, since letters are indices of lists: a name that comes again takes a
tenth of a millisecond, one that is new as long as it takes to write it down, which is longer than
a step without `rg.jit`. So there are few names here, again and again.
"""

from __future__ import annotations

import random
import time
from typing import Any

import retrograd as rg
from retrograd import Value

WIDTH, HEADS, CONTEXT = 16, 4, 16
RATE, BETAS = 0.01, (0.85, 0.99)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MARK = len(LETTERS)  # before and after each name
NAMES = (
    "emma",
    "olivia",
    "ava",
    "isabella",
    "sophia",
    "charlotte",
    "mia",
    "amelia",
    "harper",
    "evelyn",
)


def matrix(rows: int, columns: int) -> list[list[Any]]:
    return [[Value(random.gauss(0, 0.08)) for _ in range(columns)] for _ in range(rows)]


def weights() -> dict[str, list[list[Any]]]:
    found = {"wte": matrix(MARK + 1, WIDTH), "wpe": matrix(CONTEXT, WIDTH)}
    found |= {name: matrix(WIDTH, WIDTH) for name in ("query", "key", "value", "out")}
    found |= {"up": matrix(4 * WIDTH, WIDTH), "down": matrix(WIDTH, 4 * WIDTH)}
    return found | {"head": matrix(MARK + 1, WIDTH)}


def linear(x: list[Any], w: list[list[Any]]) -> list[Any]:
    return [sum(a * b for a, b in zip(row, x, strict=True)) for row in w]


def softmax(x: list[Any]) -> list[Any]:
    top = max(a.data for a in x)
    e = [(a - top).exp() for a in x]
    total = sum(e)
    return [a / total for a in e]


def norm(x: list[Any]) -> list[Any]:
    scale = (sum(a * a for a in x) / len(x) + 1e-5) ** -0.5
    return [a * scale for a in x]


def logits(w: Any, letter: int, at: int, keys: list[Any], values: list[Any]) -> list[Any]:
    """Scores of the next letter; adds this one's key and value to those before it."""
    x = norm([a + b for a, b in zip(w["wte"][letter], w["wpe"][at], strict=True)])
    h = norm(x)
    q = linear(h, w["query"])
    keys.append(linear(h, w["key"]))
    values.append(linear(h, w["value"]))
    size = WIDTH // HEADS
    mixed = []
    for i in range(0, WIDTH, size):
        scores = [sum(q[i + j] * k[i + j] for j in range(size)) / size**0.5 for k in keys]
        shares = softmax(scores)
        for j in range(size):
            mixed.append(sum(s * v[i + j] for s, v in zip(shares, values, strict=True)))
    x = [a + b for a, b in zip(linear(mixed, w["out"]), x, strict=True)]
    h = [a.relu() for a in linear(norm(x), w["up"])]
    return linear([a + b for a, b in zip(linear(h, w["down"]), x, strict=True)], w["head"])


def training_step(w: Any) -> Any:
    """A function of a name, as letters, and of what Adam divides its means by."""
    state = [(p, Value(0.0), Value(0.0)) for m in w.values() for row in m for p in row]

    def step(name: list[int], rate: float, c1: float, c2: float) -> Any:
        keys: list[Any] = []
        values: list[Any] = []
        losses = [
            -softmax(logits(w, name[i], i, keys, values))[name[i + 1]].log()
            for i in range(min(CONTEXT, len(name) - 1))
        ]
        loss = sum(losses) * (1 / len(losses))
        loss.backward()
        for p, m, v in state:
            m.data = BETAS[0] * m.data + (1 - BETAS[0]) * p.grad
            v.data = BETAS[1] * v.data + (1 - BETAS[1]) * p.grad**2
            p.data -= rate * (m.data / c1) / ((v.data / c2) ** 0.5 + 1e-8)
            p.grad = 0.0
        return loss.data

    return step


def sample(w: Any, temperature: float = 0.5) -> str:
    keys: list[Any] = []
    values: list[Any] = []
    letter, found = MARK, ""
    for at in range(CONTEXT):
        scores = [a.data / temperature for a in logits(w, letter, at, keys, values)]
        shares = softmax([Value(a) for a in scores])
        letter = random.choices(range(MARK + 1), [a.data for a in shares])[0]
        if letter == MARK:
            break
        found += LETTERS[letter]
    return found


def main(
    steps: int = 1000, samples: int = 20, seed: int = 42, eager: bool = False
) -> dict[str, float]:
    """Train, then print samples; `eager` is without jit."""
    random.seed(seed)
    w = weights()
    step = training_step(w) if eager else rg.jit(training_step(w))
    mean, start = 0.0, time.perf_counter()
    for t in range(steps):
        name = [MARK, *map(LETTERS.index, NAMES[t % len(NAMES)]), MARK]
        rate = RATE * (1 - t / steps)
        loss = step(name, rate, 1 - BETAS[0] ** (t + 1), 1 - BETAS[1] ** (t + 1))
        mean = loss if t == 0 else 0.9 * mean + 0.1 * loss
        if t % 100 == 0 or t == steps - 1:
            print(f"step {t:4} loss {mean:.4f}")
    print(f"{1e3 * (time.perf_counter() - start) / steps:.2f} ms per step")
    print(*[sample(w) for _ in range(samples)])
    return {"loss": mean}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
