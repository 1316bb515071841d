"""Language models of one LSTM or GRU: 64 characters, width 128, batch 32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Workload, loop
from benchmarks.workloads.adam import jax_adam, jax_state
from benchmarks.workloads.libraries import jax_library, trained_module, values

LENGTH, WIDTH, BATCH, VOCABULARY, LR = 64, 128, 32, 65, 1e-3


def model(kind: str) -> Callable[[Any], Any]:
    """The module of a library with the layer `LSTM` or `GRU`."""

    def make(lib: Any) -> Any:
        class Language(lib.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embedding = lib.nn.Embedding(VOCABULARY, WIDTH)
                self.layer = getattr(lib.nn, kind)(WIDTH, WIDTH, batch_first=True)
                self.head = lib.nn.Linear(WIDTH, VOCABULARY)

            def forward(self, x: Any) -> Any:
                return self.head(self.layer(self.embedding(x))[0])

        return Language()

    return make


def batches() -> list[tuple[Any, Any]]:
    text = np.random.default_rng(1).integers(0, VOCABULARY, (4, BATCH, LENGTH + 1))
    return [(t[:, :-1].copy(), t[:, 1:].copy()) for t in text]


def loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    scores = model(x).reshape((-1, VOCABULARY))
    return lib.nn.functional.cross_entropy(scores, y.reshape((-1,)))


def jax_weights(kind: str) -> dict[str, Any]:
    """The weights of `filled`, by the names of the module."""
    rows = (4 if kind == "LSTM" else 3) * WIDTH
    shapes = {
        "embedding.weight": (VOCABULARY, WIDTH),
        "head.bias": (VOCABULARY,),
        "head.weight": (VOCABULARY, WIDTH),
        "layer.bias_hh_l0": (rows,),
        "layer.bias_ih_l0": (rows,),
        "layer.weight_hh_l0": (rows, WIDTH),
        "layer.weight_ih_l0": (rows, WIDTH),
    }
    rng = np.random.default_rng(0)
    return {name: values(rng, name, shape) for name, shape in shapes.items()}


def with_jax(kind: str) -> Session:
    """A scan over time, with the product of all inputs before it."""
    import jax
    import jax.numpy as jnp

    lib = jax_library()

    def lstm(carry: Any, gates: Any, recurrent: Callable[[Any], Any]) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(gates + recurrent(h), 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def gru(carry: Any, gates: Any, recurrent: Callable[[Any], Any]) -> Any:
        h, _ = carry
        (r, z, n), (hr, hz, hn) = jnp.split(gates, 3, -1), jnp.split(recurrent(h), 3, -1)
        n = jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn)
        return n + jax.nn.sigmoid(z + hz) * (h - n), carry[1]

    cell = lstm if kind == "LSTM" else gru

    def language(p: Any, x: Any, y: Any) -> Any:
        def recurrent(h: Any) -> Any:
            return h @ p["layer.weight_hh_l0"].T + p["layer.bias_hh_l0"]

        def step(carry: Any, gates: Any) -> Any:
            carry = cell(carry, gates, recurrent)
            return carry, carry[0]

        h = p["embedding.weight"][x].swapaxes(0, 1)
        gates = h @ p["layer.weight_ih_l0"].T + p["layer.bias_ih_l0"]
        zeros = jnp.zeros((x.shape[0], WIDTH))
        _, states = jax.lax.scan(step, (zeros, zeros), gates)
        scores = states.swapaxes(0, 1) @ p["head.weight"].T + p["head.bias"]
        return lib.nn.functional.cross_entropy(scores, y)

    step = jax.jit(jax_adam(language, LR), donate_argnums=0)
    given = [tuple(map(jnp.asarray, batch)) for batch in batches()]
    return loop(step, jax_state(jax_weights(kind)), given, float)


def workload(kind: str) -> Workload:
    return Workload(
        f"held-{kind.lower()}",
        f"{kind} language model, 64 characters, width 128, batch 32, Adam",
        {**trained_module(model(kind), loss, batches, LR), "jax": lambda: with_jax(kind)},
    )


WORKLOADS = (workload("LSTM"), workload("GRU"))
