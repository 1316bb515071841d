"""`fit` beside a loop in PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.train import fit

pytestmark = pytest.mark.torch


def test_accumulated_and_clipped_steps() -> None:
    torch: Any = importlib.import_module("torch")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 3)), rng.integers(0, 4, 32)
    batches = [(x[i : i + 4], y[i : i + 4]) for i in range(0, 32, 4)]
    model = rg.nn.Sequential(
        rg.nn.Linear(3, 5, dtype=rg.float64), rg.nn.Tanh(), rg.nn.Linear(5, 4, dtype=rg.float64)
    )
    peer = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4)
    ).double()
    peer.load_state_dict({k: torch.tensor(v.numpy()) for k, v in model.state_dict().items()})
    theirs = torch.optim.AdamW(peer.parameters(), lr=0.05)
    losses = []
    for start in range(0, 24, 2):
        theirs.zero_grad()
        total = 0.0
        for inputs, targets in (batches[i % 8] for i in (start, start + 1)):
            loss = torch.nn.functional.cross_entropy(
                peer(torch.tensor(inputs)), torch.tensor(targets)
            )
            (loss / 2).backward()
            total += loss.item() / 2
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 0.3)
        theirs.step()
        losses.append(total)

    def loss_of(m: Any, batch: Any) -> Any:
        return rg.nn.functional.cross_entropy(m(batch[0]), batch[1])

    run = fit(
        model, loss_of, batches, optimizer=optim.AdamW(lr=0.05), epochs=3, accumulate=2,
        clip_grad_norm=0.3, progress=False,
    )  # fmt: skip
    np.testing.assert_allclose(run.history["loss"], losses, rtol=1e-9)
    for p, q in zip(run.model.parameters(), peer.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-8, atol=1e-10)
