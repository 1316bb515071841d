"""A causal GPT of two layers on 1,024 characters, as a module."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import normal, trained

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 2, 128, 4, 1024, 1, 65


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    c = WIDTH
    p = {"wte": normal(rng, VOCABULARY, c), "wpe": normal(rng, LENGTH, c)}
    for i in range(LAYERS):
        for norm in (f"{i}.first", f"{i}.second"):
            p |= {f"{norm}.w": np.ones(c, np.float32), f"{norm}.b": np.zeros(c, np.float32)}
        p |= {f"{i}.qkv": normal(rng, 3 * c, c), f"{i}.out": normal(rng, c, c)}
        p |= {f"{i}.up": normal(rng, 4 * c, c), f"{i}.down": normal(rng, c, 4 * c)}
    return p


def batches() -> list[tuple[Any, Any]]:
    text = np.random.default_rng(1).integers(0, VOCABULARY, (4, BATCH, LENGTH + 1))
    return [(t[:, :-1].copy(), t[:, 1:].copy()) for t in text]


def loss(lib: Any, p: Any, x: Any, y: Any) -> Any:
    F = lib.nn.functional
    shape = (BATCH, LENGTH, HEADS, WIDTH // HEADS)
    h = F.embedding(x, p["wte"]) + p["wpe"]
    for i in range(LAYERS):
        a = F.layer_norm(h, (WIDTH,), p[f"{i}.first.w"], p[f"{i}.first.b"])
        a = F.linear(a, p[f"{i}.qkv"])
        parts = (a[..., j * WIDTH : (j + 1) * WIDTH] for j in range(3))
        q, k, v = (lib.swapaxes(z.reshape(shape), 1, 2) for z in parts)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + F.linear(lib.swapaxes(a, 1, 2).reshape(h.shape), p[f"{i}.out"])
        a = F.layer_norm(h, (WIDTH,), p[f"{i}.second.w"], p[f"{i}.second.b"])
        a = F.gelu(F.linear(a, p[f"{i}.up"]), approximate="tanh")
        h = h + F.linear(a, p[f"{i}.down"])
    return F.cross_entropy(F.linear(h, p["wte"]).reshape((-1, VOCABULARY)), y.reshape((-1,)))


WORKLOAD = Workload(
    "held-gpt-long",
    "causal GPT, 2 layers, 128 wide, 1,024 characters, batch 1, Adam",
    trained(weights, batches, loss),
    checks=5,
)
