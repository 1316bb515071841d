"""Layers beside PyTorch: rows combined by a loop over the nodes, and the comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from tests.gnn.graphs import any_graph, shapes


def reduced(torch: Any, rows: Any, target: Any, n: int, kind: str, score: Any = None) -> Any:
    """Rows combined at each node, one node after the other."""
    found = []
    for v in range(n):
        own = rows[np.flatnonzero(target == v)]
        if not len(own):
            found.append(torch.zeros(rows.shape[1:], dtype=rows.dtype) + 0 * rows.sum())
        elif kind == "attention":
            share = torch.softmax(score[np.flatnonzero(target == v)], 0)
            found.append((own * share.reshape(-1, *(1,) * (own.ndim - 1))).sum(0))
        elif kind == "softmax":
            found.append((own * torch.softmax(own, 0)).sum(0))
        elif kind in ("max", "min"):
            found.append(getattr(own, "a" + kind)(0))  # ties share the gradient
        else:
            found.append(getattr(own, kind)(0))
    return torch.stack(found) if found else rows.new_zeros((0, *rows.shape[1:])) + rows.sum()


def compare(mine: Callable[..., Any], theirs: Callable[..., Any], arrays: list[Any]) -> None:
    """Values, and gradients of a weighted sum with respect to all arrays."""
    import torch

    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = theirs(*given)
    c = np.random.default_rng(0).normal(size=tuple(expected.shape))
    (expected * torch.tensor(c)).sum().backward()

    def loss(*xs: Any) -> Any:
        y = mine(*xs)
        return (y * c).sum(), y

    (_, y), grads = rg.value_and_grad(loss, tuple(range(len(arrays))), has_aux=True)(
        *map(rg.tensor, arrays)
    )
    np.testing.assert_allclose(y.numpy(), expected.detach().numpy(), rtol=1e-11, atol=1e-12)
    for g, x in zip(grads, given, strict=True):
        wanted = np.zeros(g.shape) if x.grad is None else x.grad.numpy()
        np.testing.assert_allclose(g.numpy(), wanted, rtol=1e-10, atol=1e-11)


def graphs(count: int) -> list[tuple[str, int, Any]]:
    rng = np.random.default_rng(3)
    return [*shapes(rng), *[(f"random {k}", *any_graph(rng)) for k in range(count)]]
