"""Attention, whose large results are cut into blocks, and its gradients as graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.ir import Graph
from retrograd.nn import functional as F
from retrograd.passes import optimize
from retrograd.runtime.backend import Array

Loss = Callable[..., Any]


def attention(mask: Array | None = None, causal: bool = False) -> Loss:
    """A loss between which and its gradient nothing but sums of the scores can be kept."""

    def loss(q: Any, k: Any, v: Any) -> Any:
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        total = (y * rg.sin(y)).sum()
        return total * total

    return loss


def graph_of(loss: Loss, arrays: Sequence[Array]) -> Graph:
    """The loss and its gradients."""
    return optimize(rg.trace(rg.value_and_grad(loss, argnums=(0, 1, 2)), *arrays))


def given(shape: Sequence[int], width: int, keys: int, seed: int = 0) -> list[Array]:
    """Queries, keys and values; `shape` ends with the number of queries."""
    rng = np.random.default_rng(seed)
    sizes = [(*shape, width), (*shape[:-1], keys, width), (*shape[:-1], keys, width + 1)]
    return [rng.normal(size=s).astype(np.float32) for s in sizes]
