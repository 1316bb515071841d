"""Eager training in a process of its own, for test_bits.py: `python -m tests.eager.runs JSON`.

Runs every model of `MODELS` for some steps, from scratch or from a checkpoint, and prints a digest
of all that was learned after each step.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
import retrograd.nn.functional as F
from retrograd import nn, optim
from retrograd.eager import segments, trace_buffer
from retrograd.io import load_checkpoint, save_checkpoint
from retrograd.runtime.executors import tiered
from retrograd.tuning import TUNING

Setup = tuple[nn.Module, Any, Callable[[rg.random.Generator], rg.Tensor]]


def mlp() -> Setup:
    """With an expression that is written twice, and numbers that change."""
    model = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Dropout(0.2), nn.Linear(24, 3))

    def loss(data: rg.random.Generator) -> rg.Tensor:
        x = data.normal((16, 6))
        y = (x[:, 0] > 0.1).astype(rg.int64) + (x[:, 1] > 0)
        w = model[0].weight
        penalty = rg.sin(w).sum() * 0.003
        return F.cross_entropy(model(x), y) + penalty + (rg.sin(w) ** 2).sum().sqrt() * 0.01

    return model, optim.Adam(model, lr=3e-3), loss


class Convolutions(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 6, 3, padding=1)
        self.second = nn.Conv2d(6, 6, 3, stride=2)
        self.norm = nn.BatchNorm2d(6)
        self.drop = nn.Dropout2d(0.2)
        self.head = nn.Linear(6 * 9, 4)

    def forward(self, x: rg.Tensor) -> rg.Tensor:
        x = self.norm(rg.relu(self.first(x)))
        x = F.max_pool2d(self.drop(self.second(x) + self.second(x * 0.5)), 2, stride=1, padding=0)
        return self.head(x[:, :, :3, :3].reshape(x.shape[0], -1))


def cnn() -> Setup:
    model = Convolutions()

    def loss(data: rg.random.Generator) -> rg.Tensor:
        x = data.uniform((8, 1, 10, 10))
        return F.cross_entropy(model(x), data.randint(0, 4, (8,)), label_smoothing=0.1)

    schedule = optim.schedules.cosine(0.05, 40)
    return model, optim.SGD(model, lr=schedule, momentum=0.9, weight_decay=1e-3), loss


class Transformer(nn.Module):
    """Layer norm, attention, dropout; the embedding is the head as well."""

    def __init__(self, depth: int) -> None:
        self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(12, 16)
        self.norms = nn.ModuleList([nn.LayerNorm(16) for _ in range(2 * depth + 1)])
        self.mixes = nn.ModuleList([nn.Linear(16, 48) for _ in range(depth)])
        self.outs = nn.ModuleList([nn.Linear(16, 16) for _ in range(depth)])
        self.ups = nn.ModuleList([nn.Linear(16, 32) for _ in range(depth)])
        self.downs = nn.ModuleList([nn.Linear(32, 16) for _ in range(depth)])
        self.drop = nn.Dropout(0.1)

    def forward(self, tokens: rg.Tensor) -> rg.Tensor:
        b, t = tokens.shape
        x = self.drop(self.tokens(tokens) + self.places(rg.arange(t)))
        for i, mix in enumerate(self.mixes):
            q, k, v = rg.split(mix(self.norms[2 * i](x)).reshape(b, t, 3, 2, 8), 3, axis=2)
            q, k, v = (a.reshape(b, t, 2, 8).swapaxes(1, 2) for a in (q, k, v))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.drop(self.outs[i](a.swapaxes(1, 2).reshape(b, t, 16)))
            x = x + self.drop(self.downs[i](F.gelu(self.ups[i](self.norms[2 * i + 1](x)))))
        return self.norms[-1](x) @ self.tokens.weight.T


def gpt() -> Setup:
    model = Transformer(2)

    def loss(data: rg.random.Generator) -> rg.Tensor:
        tokens = data.randint(0, 11, (4, 13))
        logits = model(tokens[:, :-1])
        return F.cross_entropy(logits.reshape(-1, 11), tokens[:, 1:].reshape(-1))

    return model, optim.AdamW(model, lr=1e-3, weight_decay=0.1), loss


MODELS: dict[str, Callable[[], Setup]] = {"mlp": mlp, "cnn": cnn, "gpt": gpt}


def digest(model: nn.Module, optimizer: Any) -> str:
    """Of the bits of everything that is learned or remembered."""
    found = hashlib.sha256()
    states = {"model": model.state_dict(), **optimizer.state_dict()["state"]}
    for state in states.values():
        for name, x in sorted(state.items()):
            found.update(name.encode() + np.asarray(x).tobytes())
    return found.hexdigest()[:16]


def train(name: str, start: int, stop: int, folder: str, save: list[int], look: bool) -> list[str]:
    nn.init.seed(1)
    model, optimizer, loss_of = MODELS[name]()
    data = rg.random.Generator(5)
    if start:
        path = Path(folder) / f"{name}{start}"
        load_checkpoint(path, model=model, optimizer=optimizer, data=data)
    found = []
    for step in range(start, stop):
        optimizer.zero_grad()
        loss = loss_of(data)
        if look:
            loss.item()
        loss.backward()
        if name == "gpt":
            optim.clip_grad_norm(model, 0.5)
        optimizer.step()
        found.append(digest(model, optimizer))
        if step + 1 in save:
            path = Path(folder) / f"{name}{step + 1}"
            save_checkpoint(path, model=model, optimizer=optimizer, data=data)
    return found


def main() -> None:
    how = json.loads(sys.argv[1])
    if how["tier"] != "as it comes":  # at once, or never
        TUNING.huge_runs, TUNING.interpreted_nodes = (
            (0, -1) if how["tier"] == "compiled" else (1, 10**12)
        )
        if how["tier"] == "compiled":
            tiered.node_cost = lambda node, sizes: 10**6
    if how["full"]:  # cut every recording after so many operations
        trace_buffer.FULL = segments.LONGEST = how["full"]
    rg.num_threads(how["threads"])
    options = {k: how[k] for k in ("start", "stop", "folder", "save", "look")}
    json.dump({name: train(name, **options) for name in how["models"]}, sys.stdout)


if __name__ == "__main__":
    main()
