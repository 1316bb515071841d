"""A character LSTM whose batches are cut from a text by slices at random places."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, filled, item

TEXT, LENGTH, BATCH, WIDTH, VOCABULARY, LR = 20_000, 32, 8, 64, 50, 2e-3


def program(lib: Any) -> Session:
    nn = lib.nn

    class Language(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embedding(x))[0])

    model = filled(lib, Language())
    optimizer = lib.optim.Adam(model.parameters(), lr=LR)
    rng = np.random.default_rng(1)
    text = lib.tensor(rng.integers(0, VOCABULARY, TEXT))

    def step(state: Any) -> Any:
        places = rng.integers(0, TEXT - LENGTH, BATCH).tolist()
        x = lib.stack([text[i : i + LENGTH] for i in places])
        y = lib.stack([text[i + 1 : i + 1 + LENGTH] for i in places])
        scores = model(x).reshape((BATCH * LENGTH, VOCABULARY))
        loss = nn.functional.cross_entropy(scores, y.reshape((BATCH * LENGTH,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    return loop(step, None, [()], item)


WORKLOAD = Workload(
    "program-char-lstm",
    "character LSTM, batches of 8 x 32 cut from a text by slices, Adam",
    both(program),
)
