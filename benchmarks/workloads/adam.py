"""Adam and AdamW as users of JAX write them where no library of optimizers is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def jax_adam(
    loss: Callable[..., Any],
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
) -> Callable[..., Any]:
    """`step(state, *batch)` for a state `(parameters, m, v, t)`."""
    import jax
    import jax.numpy as jnp

    b1, b2 = betas

    def step(state: Any, *batch: Any) -> Any:
        p, m, v, t = state
        t = t + 1
        value, g = jax.value_and_grad(loss)(p, *batch)
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, g)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)
        c1, c2 = 1 - b1**t, 1 - b2**t

        def move(p: Any, m: Any, v: Any) -> Any:
            decayed = p * (1 - lr * weight_decay) if weight_decay else p
            return decayed - lr * (m / c1) / (jnp.sqrt(v / c2) + 1e-8)

        return (jax.tree.map(move, p, m, v), m, v, t), value

    return step


def jax_state(weights: Any) -> Any:
    """Parameters, two sets of zeros and the count of steps."""
    import jax
    import jax.numpy as jnp

    p = jax.tree.map(jnp.asarray, weights)
    zeros = [jax.tree.map(jnp.zeros_like, p) for _ in range(2)]
    return p, *zeros, jnp.zeros(())


def retrograd_adam(loss: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """`step(state, *batch)` for a state `(parameters, state of the optimizer)`."""
    import retrograd as rg

    def step(state: Any, *batch: Any) -> Any:
        parameters, memory = state
        value, gradient = rg.value_and_grad(loss)(parameters, *batch)
        return optimizer.update(parameters, gradient, memory), value

    return step


def eager(loss: Callable[..., Any], parameters: Any, optimizer: Any) -> Callable[..., Any]:
    """The loop that users of PyTorch write; the same for torch and retrograd."""

    def step(state: Any, *batch: Any) -> Any:
        value = loss(parameters, *batch)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return state, value

    return step
