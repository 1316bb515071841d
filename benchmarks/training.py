"""`retrograd train gpt`, with data, log, progress and validation, beside what it is compared with:

- on the bundled names, the step of workload W1 in a scan;
- on a text, 4 layers 128 wide, the same model and loop in PyTorch, as one writes it there, and the
  step of workload W4.

    python -m benchmarks.training names
    python -m benchmarks.training prose FILE

Every peer has a process of its own; they take turns. Times are of the wall and of the processor.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PEERS = {"names": ("command", "W1"), "prose": ("command", "torch", "W4")}
LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 4, 128, 4, 128, 16
STEPS = 2000


class Turns:
    """In the process of a peer: counts what was done, and waits between turns."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def ready(self) -> None:
        print("ready", flush=True)
        self._wait()

    def _wait(self) -> None:
        if not sys.stdin.readline():
            sys.exit()
        self.count, self.wall, self.worked = 0, time.perf_counter(), time.process_time()

    def done(self, count: int) -> None:
        """So many documents or tokens more."""
        self.count += count
        wall = time.perf_counter() - self.wall
        if wall >= self.seconds:
            print(json.dumps([self.count, wall, time.process_time() - self.worked]), flush=True)
            self._wait()


def command(turns: Turns, text: str | None) -> None:
    from retrograd.data import bundled_names
    from retrograd.train import gpt
    from retrograd.train.progress import Silent

    class Watch(Silent):
        """Takes the place of the bar; a first update has compiled."""

        step = -1

        def update(self, step: int, loss: float, tokens: int) -> None:
            if self.step < 0:
                turns.ready()
            else:
                turns.done(step - self.step if text is None else tokens)
            self.step = step

    with tempfile.TemporaryDirectory() as out:
        source = bundled_names() if text is None else gpt.TextFile.read(text)
        options: dict[str, Any] = {"steps": STEPS}
        if text is None:  # as many of everything as in a run of 20,000 steps
            options = {"steps": 10**8, "val_every": 2000, "checkpoint_every": 4000}
        gpt.train(source, out, reporter=Watch(), **options)


def workload(turns: Turns, name: str) -> None:
    import retrograd as rg
    from benchmarks.workloads import chargpt, microgpt

    rg.flush_subnormals().__enter__()  # to the end: it learns ten names by heart
    session = microgpt.with_retrograd_scan() if name == "W1" else chargpt.with_retrograd()
    each = session.scale if name == "W1" else chargpt.BATCH * chargpt.CONTEXT
    session.step()
    session.wait()
    turns.ready()
    while True:
        session.step()
        session.wait()
        turns.done(each)


def torch_model(vocabulary: int) -> Any:
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            parts = self.qkv(x).split(WIDTH, dim=2)
            q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.RMSNorm(WIDTH, eps=1e-5, elementwise_affine=False)
            self.attention = Attention()
            self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
            self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm(x))
            return x + self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, WIDTH)
            self.positions = nn.Embedding(CONTEXT, WIDTH)
            self.norm = nn.RMSNorm(WIDTH, eps=1e-5, elementwise_affine=False)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.head = nn.Linear(WIDTH, vocabulary, bias=False)
            for p in self.parameters():
                nn.init.normal_(p, 0.0, 0.32 / math.sqrt(WIDTH))

        def forward(self, tokens: Any, targets: Any) -> Any:
            x = self.norm(self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1])))
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, vocabulary), targets.reshape(-1))

    return GPT()


def torch_loop(turns: Turns, path: str) -> None:
    """The loop of nanoGPT for a processor, on characters."""
    import torch

    with open(path, encoding="utf-8") as file:
        text = file.read()
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    data = np.array([number[c] for c in text], np.uint16)
    cut = int(len(data) * 0.9)
    training, held_out = data[:cut], data[cut:]
    torch.manual_seed(0)
    model = torch_model(len(number))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True
    )

    def batch(data: Any) -> Any:
        places = torch.randint(len(data) - CONTEXT - 1, (BATCH,)).tolist()
        windows = np.stack([data[i : i + CONTEXT + 1] for i in places]).astype(np.int64)
        found = torch.from_numpy(windows)
        return found[:, :-1], found[:, 1:]

    def validation() -> float:
        model.eval()
        with torch.no_grad():
            losses = [model(*batch(held_out)).item() for _ in range(16)]
        model.train()
        return float(np.mean(losses))

    for step in range(10**9):
        warm, done = (step + 1) / 100, min(max((step - 100) / (STEPS - 100), 0), 1)
        rate = 1e-4 + (1e-3 - 1e-4) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = min(warm, 1) * rate
        loss = model(*batch(training))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            loss.item()
        if step and step % 200 == 0:
            validation()
        if step == 0:
            turns.ready()
        else:
            turns.done(BATCH * CONTEXT)


def in_turns(kind: str, text: str | None, rounds: int, seconds: float) -> None:
    processes: dict[str, Any] = {}
    for peer in PEERS[kind]:
        line = [sys.executable, "-m", "benchmarks.training", kind, *([text] if text else [])]
        processes[peer] = subprocess.Popen(
            [*line, "--peer", peer, "--seconds", str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert processes[peer].stdout.readline() == "ready\n"
    found: dict[str, list[Any]] = {peer: [] for peer in processes}
    for _ in range(rounds):
        for peer, process in processes.items():
            process.stdin.write("go\n")
            process.stdin.flush()
            found[peer].append(json.loads(process.stdout.readline()))
    for process in processes.values():
        process.kill()
        process.communicate()
    what = "document" if kind == "names" else "token"
    print(f"{'':8} us of the wall per {what}: median, least; of the processor: median, least")
    for peer, turns in found.items():
        wall, worked = ([1e6 * t[i] / t[0] for t in turns] for i in (1, 2))
        numbers = [f(x) for x in (wall, worked) for f in (np.median, min)]
        print(f"{peer:8} " + " ".join(f"{n:10.3f}" for n in numbers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=PEERS)
    parser.add_argument("text", nargs="?")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--peer")
    given = parser.parse_args()
    if given.kind == "prose" and given.text is None:
        parser.error("prose needs a text")
    if given.peer is None:
        in_turns(given.kind, given.text, given.rounds, given.seconds)
        return
    turns = Turns(given.seconds)
    run: dict[str, Callable[[], None]] = {
        "command": lambda: command(turns, given.text),
        "torch": lambda: torch_loop(turns, given.text),
        "W1": lambda: workload(turns, "W1"),
        "W4": lambda: workload(turns, "W4"),
    }
    run[given.peer]()


if __name__ == "__main__":
    main()
