"""A GPT in modules: trained on batches from a text, and writing with a cache of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, filled, item

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, VOCABULARY = 2, 64, 4, 64, 8, 65
TEXT, WRITTEN, LR = 20_000, 60, 1e-3
SWITCHES = 8  # losses that are compared, of which each is a step or a text


def gpt(lib: Any) -> Any:
    nn, F = lib.nn, lib.nn.functional

    class Attention(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any, cache: Any = None) -> Any:
            """The result, and keys and values of all positions so far."""
            batch, time, _ = x.shape
            parts = self.qkv(x).reshape((batch, time, 3, HEADS, WIDTH // HEADS))
            q, k, v = (parts[:, :, i].swapaxes(1, 2) for i in range(3))
            if cache is not None:
                k, v = (lib.concat([a, b], axis=2) for a, b in zip(cache, (k, v), strict=True))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
            return self.out(y.swapaxes(1, 2).reshape((batch, time, WIDTH))), (k, v)

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention = Attention()
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x: Any, cache: Any = None) -> Any:
            y, cache = self.attention(self.first(x), cache)
            x = x + y
            return x + self.mlp(self.second(x)), cache

    class GPT(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, x: Any, caches: Any = None, start: int = 0) -> Any:
            x = self.words(x) + self.places(lib.arange(start, start + x.shape[1]))
            kept = []
            for block, cache in zip(self.blocks, caches or [None] * LAYERS, strict=True):
                x, cache = block(x, cache)
                kept.append(cache)
            return self.head(self.norm(x)), kept

    return filled(lib, GPT())


def training(lib: Any) -> Session:
    model = gpt(lib)
    optimizer = lib.optim.AdamW(model.parameters(), lr=LR)
    rng = np.random.default_rng(1)
    text = lib.tensor(rng.integers(0, VOCABULARY, TEXT))

    def step(state: Any) -> Any:
        places = rng.integers(0, TEXT - CONTEXT, BATCH).tolist()
        x = lib.stack([text[i : i + CONTEXT] for i in places])
        y = lib.stack([text[i + 1 : i + 1 + CONTEXT] for i in places])
        scores = model(x)[0].reshape((BATCH * CONTEXT, VOCABULARY))
        loss = lib.nn.functional.cross_entropy(scores, y.reshape((BATCH * CONTEXT,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    return loop(step, None, [()], item)


def writing(lib: Any) -> Session:
    """The likeliest word after each. In place of a loss: what the last one scores."""
    model = gpt(lib)
    firsts = [(lib.tensor(np.array([[k, k + 1, k + 2]])),) for k in range(SWITCHES)]

    def write(state: Any, words: Any) -> Any:
        with lib.no_grad():
            scores, caches = model(words)
            for place in range(words.shape[1], WRITTEN):
                best = int(scores[0, -1].argmax().item())
                scores, caches = model(lib.tensor([[best]]), caches, place)
            return state, scores[0, -1].max()

    return loop(write, None, firsts, item)


WORKLOADS = (
    Workload(
        "program-gpt",
        "GPT of 2 layers, 64 wide, batches of 8 x 64 cut from a text, AdamW",
        both(training),
        checks=5,
    ),
    Workload(
        "program-gpt-writes",
        "the same writes 57 characters with a cache of keys and values",
        both(writing),
        per="text",
        checks=SWITCHES,
    ),
)
