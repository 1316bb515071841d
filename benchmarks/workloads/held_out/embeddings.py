"""A table of embeddings of which a step reads few rows: 100,000 of 64, batches of 4,096, SGD."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.adam import eager
from benchmarks.workloads.libraries import both, item, tensors

ROWS, WIDTH, BATCH, LR = 100_000, 64, 4096, 0.5


def table() -> Any:
    return np.random.default_rng(0).normal(0, 0.1, (ROWS, WIDTH)).astype(np.float32)


def batches() -> list[tuple[Any, Any]]:
    """Rows, and what their sums should be."""
    rng = np.random.default_rng(1)
    y = rng.normal(0, 1, (16, BATCH)).astype(np.float32)
    return list(zip(rng.integers(0, ROWS, (16, BATCH)), y, strict=True))


def loss_of(rows: Any, y: Any) -> Any:
    return ((rows.sum(-1) - y) ** 2).mean()


def program(lib: Any) -> Session:
    embedding = lib.nn.Embedding(ROWS, WIDTH, sparse=True)
    embedding.load_state_dict({"weight": lib.tensor(table())})
    optimizer = lib.optim.SGD(embedding.parameters(), lr=LR)
    step = eager(lambda e, i, y: loss_of(e(i), y), embedding, optimizer)
    return loop(step, None, tensors(lib, batches()), item)


def with_retrograd() -> Session:
    """The update of the rows, by hand."""
    import retrograd as rg

    def update(w: Any, i: Any, y: Any) -> Any:
        value, g = rg.value_and_grad(loss_of)(w[i], y)
        return w.at[i].add(-LR * g), value

    step = rg.jit(update, donate=("w",))
    return loop(step, rg.tensor(table()), tensors(rg, batches()), item)


def with_retrograd_dense() -> Session:
    """The optimizer of the library, which is given the gradient of a gather."""
    import retrograd as rg

    optimizer = rg.optim.SGD(lr=LR)

    def update(state: Any, i: Any, y: Any) -> Any:
        w, memory = state
        value, g = rg.value_and_grad(lambda w: loss_of(w[i], y))(w)
        return optimizer.update(w, g, memory), value

    step = rg.jit(update, donate=("state",))
    w = rg.tensor(table())
    return loop(step, (w, optimizer.init(w)), tensors(rg, batches()), item)


def with_jax() -> Session:
    import jax
    import jax.numpy as jnp

    def update(w: Any, i: Any, y: Any) -> Any:
        value, g = jax.value_and_grad(loss_of)(w[i], y)
        return w.at[i].add(-LR * g), value

    step = jax.jit(update, donate_argnums=0)
    given = [tuple(map(jnp.asarray, batch)) for batch in batches()]
    return loop(step, jnp.asarray(table()), given, float)


WORKLOAD = Workload(
    "held-embedding",
    "table of 100,000 x 64, batch 4,096, SGD",
    {
        "retrograd": with_retrograd,
        "retrograd-dense": with_retrograd_dense,
        **both(program),
        "jax": with_jax,
    },
)
