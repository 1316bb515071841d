"""Sorting, the largest 100, and running sums of a million numbers; one is looked at for a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.workload import Build, Session, Workload, loop
from benchmarks.workloads.libraries import jax_library, tensors

COUNT, LARGEST = 1_000_000, 100


def numbers() -> list[tuple[Any]]:
    return [(x,) for x in np.random.default_rng(0).normal(0, 1, (4, COUNT)).astype(np.float32)]


def looked_at(result: Any) -> float:
    """A number that depends on the order."""
    return float(result[COUNT // 3 if result.shape[0] == COUNT else -1].item())


def session(lib: Any, f: Callable[[Any], Any]) -> Session:
    return loop(lambda state, x: (state, f(x)), None, tensors(lib, numbers()), looked_at)


def workload(name: str, title: str) -> Workload:
    def with_retrograd() -> Session:
        import retrograd as rg

        functions: dict[str, Callable[[Any], Any]] = {
            "sort": rg.sort,
            "topk": lambda x: rg.topk(x, LARGEST).values,
            "cumsum": lambda x: rg.cumsum(x, 0),
        }
        return session(rg, rg.jit(functions[name]))

    def with_torch() -> Session:
        import torch

        functions: dict[str, Callable[[Any], Any]] = {
            "sort": lambda x: torch.sort(x).values,
            "topk": lambda x: torch.topk(x, LARGEST).values,
            "cumsum": lambda x: torch.cumsum(x, 0),
        }
        return session(torch, functions[name])

    def with_jax() -> Session:
        import jax
        import jax.numpy as jnp

        functions: dict[str, Callable[[Any], Any]] = {
            "sort": jnp.sort,
            "topk": lambda x: jax.lax.top_k(x, LARGEST)[0],
            "cumsum": jnp.cumsum,
        }
        return session(jax_library(), jax.jit(functions[name]))

    peers: dict[str, Build] = {"retrograd": with_retrograd, "torch": with_torch, "jax": with_jax}
    return Workload(f"held-{name}", title, peers, per="call", checks=4)


WORKLOADS = (
    workload("sort", "sorting of 1,000,000 numbers"),
    workload("topk", "the 100 largest of 1,000,000 numbers"),
    workload("cumsum", "running sums of 1,000,000 numbers"),
)
