"""W8: y = tanh(1.001 y + 0.01), 100,000 times; value, gradient, and letting go of the graph.

W8-scan is for loops that a compiler sees, W8-eager for operations recorded one by one. What is
compared are the value and the derivative of the long chain, and of one of 20 steps, where the
derivative has not vanished yet.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.harness.workload import Session, Target, Workload, needed

LENGTH, SHORT, START = 100_000, 20, 0.5
Pair = tuple[Any, Any]


def session(run: Callable[[int], Pair], number: Callable[[Any], float] = float) -> Session:
    """A session of `value, derivative = run(length)`."""

    def losses() -> Iterator[float]:
        for n in (LENGTH, SHORT):
            yield from map(number, run(n))

    return Session(lambda: [number(a) for a in run(LENGTH)], losses())


def extended(y: Any, n: int, tanh: Callable[[Any], Any]) -> Any:
    for _ in range(n):
        y = tanh(y * 1.001 + 0.01)
    return y


def with_retrograd_scan() -> Session:
    import retrograd as rg

    scan = needed(rg, "scan")

    def chain(x: Any, n: int) -> Any:
        return scan(lambda y, _: (rg.tanh(y * 1.001 + 0.01), None), x, None, length=n)[0]

    run = rg.jit(lambda x, n: rg.value_and_grad(lambda x: chain(x, n))(x), static_argnames=("n",))
    x = rg.tensor(START)
    return session(lambda n: run(x, n), lambda a: a.item())


def with_retrograd_eager() -> Session:
    import retrograd as rg

    def run(n: int) -> Pair:
        x = rg.tensor(START, requires_grad=True)
        y = extended(x, n, rg.tanh)
        y.backward()
        return y, x.grad

    return session(run, lambda a: a.item())


def with_retrograd_value() -> Session:
    import retrograd as rg

    def run(n: int) -> Pair:
        x = rg.Value(START)
        y = extended(x, n, lambda a: a.tanh())
        y.backward()
        return y.data, x.grad

    return session(run)


def with_jax_scan() -> Session:
    import jax
    import jax.numpy as jnp

    def chain(x: Any, n: int) -> Any:
        return jax.lax.scan(lambda y, _: (jnp.tanh(y * 1.001 + 0.01), None), x, None, length=n)[0]

    run = jax.jit(jax.value_and_grad(chain), static_argnums=1)
    x = jnp.float32(START)
    return session(lambda n: run(x, n))


def with_torch() -> Session:
    import torch

    def run(n: int) -> Pair:
        x = torch.tensor(START, requires_grad=True)
        y = extended(x, n, torch.tanh)
        y.backward()
        return y.detach(), x.grad

    return session(run)


def with_autograd() -> Session:
    import autograd
    import autograd.numpy as anp

    def run(n: int) -> Pair:
        # value_and_grad holds nothing afterwards, so the graph is freed within the step.
        return autograd.value_and_grad(lambda x: extended(x, n, anp.tanh))(START)

    return session(run)


def with_micrograd() -> Session:
    from micrograd.engine import Value

    # Its backward pass walks the graph by recursion.
    sys.setrecursionlimit(10 * LENGTH)

    def tanh(a: Any) -> Any:
        y = math.tanh(a.data)
        out = Value(y, (a,), "tanh")

        def backward() -> None:
            a.grad += (1 - y * y) * out.grad

        out._backward = backward
        return out

    def run(n: int) -> Pair:
        x = Value(START)
        y = extended(x, n, tanh)
        y.backward()
        return y.data, x.grad

    return session(run)


WORKLOADS = (
    Workload(
        "W8-scan",
        "chain of 100,000 times y = tanh(1.001 y + 0.01), compiled loop",
        {"retrograd-scan": with_retrograd_scan, "jax-scan": with_jax_scan},
        per="chain",
        checks=4,
        targets=(Target("retrograd-scan", 1.6e-3, "jax-scan", 2.3e-3),),
    ),
    Workload(
        "W8-eager",
        "the same chain, recorded operation by operation",
        {
            "retrograd-eager": with_retrograd_eager,
            "retrograd-value": with_retrograd_value,
            "torch": with_torch,
            "autograd": with_autograd,
            "micrograd": with_micrograd,
        },
        per="chain",
        checks=4,
        targets=(
            Target("retrograd-eager", 0.3, "torch", 3.2),
            Target("retrograd-value", 0.1, "micrograd", 3.7),
        ),
    ),
)
