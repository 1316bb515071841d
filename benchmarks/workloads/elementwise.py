"""W9: a hundred elementwise operations, y = y * a and y = y + b in turn, forward and backward.

On arrays of 1 and 64 numbers, compiled and recorded operation by operation; times are for one of
the hundred operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness.workload import Build, Session, Target, Workload

OPERATIONS = 100
NUMBERS = (0.5, 0.99, 0.01)


def chain(y: Any, a: Any, b: Any) -> Any:
    for _ in range(OPERATIONS // 2):
        y = y * a
        y = y + b
    return y


def arrays(size: int) -> list[Any]:
    return [np.full(size, number, np.float32) for number in NUMBERS]


def session(run: Callable[[], tuple[Any, Any]], number: Callable[[Any], float]) -> Session:
    """A session of `value, gradient = run()`, where the value is the sum."""

    def losses() -> Iterator[float]:
        yield from map(number, run())

    last: tuple[Any, Any] = (None, None)

    def call() -> None:
        nonlocal last
        last = run()

    return Session(call, losses(), lambda: last[1] is None or number(last[1]), OPERATIONS)


def with_retrograd(size: int) -> Session:
    import retrograd as rg

    x, a, b = map(rg.tensor, arrays(size))
    f = rg.jit(rg.value_and_grad(lambda x, a, b: chain(x, a, b).sum()))
    return session(lambda: f(x, a, b), lambda v: v.numpy().ravel()[0].item())


def with_retrograd_eager(size: int) -> Session:
    import retrograd as rg

    x, a, b = map(rg.tensor, arrays(size))
    x = rg.tensor(arrays(size)[0], requires_grad=True)

    def run() -> tuple[Any, Any]:
        x.grad = None
        y = chain(x, a, b).sum()
        y.backward()
        gradient: Any = x.grad
        # Recording waits until somebody looks; so this looks.
        return y, gradient.numpy()

    return session(run, lambda v: v.item() if v.ndim == 0 else float(v[0]))


def with_retrograd_value(size: int) -> Session:
    import retrograd as rg

    return scalars(rg.Value)


def with_micrograd(size: int) -> Session:
    from micrograd.engine import Value

    return scalars(Value)


def scalars(value: Any) -> Session:
    a, b = map(value, NUMBERS[1:])

    def run() -> tuple[Any, Any]:
        x = value(NUMBERS[0])
        y = chain(x, a, b)
        y.backward()
        return y.data, x.grad

    return session(run, float)


def with_jax(size: int, compiled: bool = True) -> Session:
    import jax
    import jax.numpy as jnp

    x, a, b = map(jnp.asarray, arrays(size))
    f = jax.value_and_grad(lambda x, a, b: chain(x, a, b).sum())
    f = jax.jit(f) if compiled else f
    return session(lambda: f(x, a, b), lambda v: float(v.ravel()[0]))


def with_torch(size: int) -> Session:
    import torch

    x, a, b = map(torch.tensor, arrays(size))
    x.requires_grad_()
    seed = torch.ones(size)

    def run() -> tuple[Any, Any]:
        x.grad = None
        y = chain(x, a, b)
        y.backward(seed)
        return y, x.grad

    return session(run, lambda v: float(v.sum() if v.requires_grad else v[0]))


def with_autograd(size: int) -> Session:
    import autograd
    import autograd.numpy as anp

    x, a, b = arrays(size)
    f = autograd.value_and_grad(lambda x: anp.sum(chain(x, a, b)))
    return session(lambda: f(x), lambda v: float(np.ravel(v)[0]))


def workload(kind: str, size: int) -> Workload:
    compiled = kind == "jit"
    peers: dict[str, Callable[[int], Session]] = (
        {"retrograd": with_retrograd, "jax": with_jax}
        if compiled
        else {
            "retrograd-eager": with_retrograd_eager,
            **({"retrograd-value": with_retrograd_value} if size == 1 else {}),
            "jax-eager": lambda n: with_jax(n, compiled=False),
            "torch": with_torch,
            "autograd": with_autograd,
            **({"micrograd": with_micrograd} if size == 1 else {}),
        }
    )
    return Workload(
        f"W9-{kind}-{size}",
        f"elementwise operation in a chain of 100, {size} numbers, forward and backward, "
        + ("compiled" if compiled else "recorded"),
        {name: bound(build, size) for name, build in peers.items()},
        per="op",
        checks=2,
        targets=(Target("retrograd", 30e-9, "jax", 70e-9 if size == 1 else 195e-9),)
        if compiled
        else (Target("retrograd-eager", 0.5e-6, "torch", 4.1e-6),),
    )


def bound(build: Callable[[int], Session], size: int) -> Build:
    return lambda: build(size)


WORKLOADS = tuple(workload(kind, size) for kind in ("jit", "eager") for size in (1, 64))
