"""Beam search: a language model of one GRU cell writes, keeping the best beams, until all end."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.libraries import both, filled

WIDTH, VOCABULARY, BEAMS, LENGTH, END = 64, 50, 5, 20, 0


def program(lib: Any) -> Session:
    nn = lib.nn

    class Language(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(VOCABULARY, WIDTH)
            self.cell = nn.GRUCell(WIDTH, WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, word: Any, h: Any) -> Any:
            h = self.cell(self.words(word), h)
            return lib.log_softmax(self.head(h), -1), h

    model = filled(lib, Language())
    starts = np.random.default_rng(1).integers(1, VOCABULARY, 64).tolist()

    def search(first: int) -> float:
        h = lib.zeros((1, WIDTH))
        scores, h = model(lib.tensor([first]), h)
        best, words = lib.topk(scores[0], BEAMS)
        h = h.expand(BEAMS, WIDTH)
        texts, finished = [[w] for w in words.tolist()], []
        for _ in range(LENGTH):
            scores, h = model(words, h)
            best, places = lib.topk((best[:, None] + scores).reshape((-1,)), BEAMS)
            beams, words = places // VOCABULARY, places % VOCABULARY
            texts = [[*texts[b], w] for b, w in zip(beams.tolist(), words.tolist(), strict=True)]
            h = h[beams]
            for i, text in enumerate(texts):
                if text[-1] == END:
                    finished.append((best[i].item() / len(text), text))
                    best[i] = -1e9
            if len(finished) >= BEAMS:
                break
        finished += [(b / len(t), t) for b, t in zip(best.tolist(), texts, strict=True)]
        return float(max(finished)[0])

    def step(state: Any, first: int) -> Any:
        with lib.no_grad():
            return state, search(first)

    return loop(step, None, [(w,) for w in starts], float)


WORKLOAD = Workload(
    "fresh-beam-search",
    "5 beams of up to 20 words by a GRU cell of width 64, without gradients",
    both(program),
)
