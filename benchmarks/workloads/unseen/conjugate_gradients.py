"""Conjugate gradients by a loop that ends by itself: differentiated by all its steps.

The potential of a sheet whose conductivity is learned: a sparse system of 1,024 unknowns, given by
differences between neighbours. JAX has no gradient of `while_loop`, so its loop goes on for as many
steps as there can be and does nothing after the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.workload import Workload
from benchmarks.workloads.libraries import trained

SIDE, MOST, LEAST = 32, 80, 1e-6


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"across": rng.normal(0, 0.3, (SIDE, SIDE)), "down": rng.normal(0, 0.3, (SIDE, SIDE))}


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    return [tuple(rng.normal(0, 1, (2, SIDE, SIDE)))]


def multiplied(lib: Any, p: Any, x: Any) -> Any:
    """The matrix times x: x itself, and what flows to neighbours; the edges are joined."""
    total = x
    for axis, name in enumerate(("across", "down")):
        flow = lib.exp(p[name]) * (lib.roll(x, -1, axis) - x)
        total = total - flow + lib.roll(flow, 1, axis)
    return total


def loss(lib: Any, p: Any, b: Any, wanted: Any) -> Any:
    def step(state: Any) -> Any:
        x, r, d, size, count = state
        q = multiplied(lib, p, d)
        far = size / (d * q).sum()
        x, r = x + far * d, r - far * q
        new = (r * r).sum()
        return x, r, r + new / size * d, new, count + 1

    def goes_on(state: Any) -> Any:
        return (state[3] > LEAST) & (state[4] < MOST)

    state = (b * 0, b, b, (b * b).sum(), lib.tensor(0))
    if lib.__name__ == "torch":
        while goes_on(state):
            state = step(state)
    elif lib.__name__ == "retrograd":
        state = lib.while_loop(goes_on, step, state)
    else:
        state = to_the_end(step, goes_on, state)
    return ((state[0] - wanted) ** 2).mean()


def to_the_end(step: Any, goes_on: Any, state: Any) -> Any:
    """A scan in which steps after the last change nothing, in JAX."""
    import jax

    def maybe(state: Any, _: Any) -> Any:
        return jax.lax.cond(goes_on(state), step, lambda s: s, state), None

    return jax.lax.scan(maybe, state, None, MOST)[0]


PEERS = trained(weights, batches, loss, lr=1e-2)


def with_jax() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return PEERS["jax"]()


WORKLOAD = Workload(
    "unseen-conjugate-gradients",
    "conjugate gradients by while_loop, 32 x 32 unknowns, float64, gradient by the matrix, Adam",
    {**PEERS, "jax": with_jax},
)
