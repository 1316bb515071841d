"""Matrix factorization with sparse rows: users and films with biases, Adagrad."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.adam import eager
from benchmarks.workloads.libraries import both, filled, item, tensors

USERS, FILMS, WIDTH, BATCH, LR = 20_000, 5_000, 32, 512, 0.05


def factors(lib: Any) -> Any:
    nn = lib.nn

    class Factors(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.users = nn.Embedding(USERS, WIDTH, sparse=True)
            self.films = nn.Embedding(FILMS, WIDTH, sparse=True)
            self.user_bias = nn.Embedding(USERS, 1, sparse=True)
            self.film_bias = nn.Embedding(FILMS, 1, sparse=True)

        def forward(self, user: Any, film: Any) -> Any:
            alike = (self.users(user) * self.films(film)).sum(-1)
            return alike + self.user_bias(user)[:, 0] + self.film_bias(film)[:, 0]

    return Factors()


def batches() -> list[tuple[Any, Any, Any]]:
    rng = np.random.default_rng(1)
    return [
        (
            rng.integers(0, USERS, BATCH),
            rng.integers(0, FILMS, BATCH),
            rng.normal(0, 1, BATCH).astype(np.float32),
        )
        for _ in range(32)
    ]


def program(lib: Any) -> Session:
    model = filled(lib, factors(lib))
    optimizer = lib.optim.Adagrad(model.parameters(), lr=LR)

    def loss(model: Any, user: Any, film: Any, stars: Any) -> Any:
        return lib.nn.functional.mse_loss(model(user, film), stars)

    return loop(eager(loss, model, optimizer), None, tensors(lib, batches()), item)


WORKLOAD = Workload(
    "fresh-factorization",
    "20,000 users, 5,000 films, width 32, 512 ratings, sparse gradients, Adagrad",
    both(program),
)
