"""Every public function that adds up: float32 at 2^20 elements against float64, in units of
`eps * log2(n)`. The data is positive, so nothing cancels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F

N = 1 << 20
ROWS = 1 << 18
X = np.random.default_rng(0).uniform(0.1, 1, N)
Y = np.random.default_rng(1).uniform(0.1, 1, N)
SIGNS = np.where(X > 0.5, 1.0, -1.0)
CLASSES = (X * 10).astype(np.int64)[:ROWS] % 4

# Of two arrays of numbers.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, y: x.sum(),
    "mean": lambda x, y: x.mean(),
    "var": lambda x, y: rg.var(x),
    "std": lambda x, y: rg.std(x),
    "logsumexp": lambda x, y: rg.logsumexp(x),
    "vecdot": lambda x, y: rg.vecdot(x, y),
    "dot": lambda x, y: x @ y,
    "einsum": lambda x, y: rg.einsum("i,i->", x, y),
    "tensordot": lambda x, y: rg.tensordot(x, y, axes=1),
    "matmul": lambda x, y: x.reshape(2, -1) @ y.reshape(2, -1).T,
    "vector_norm": lambda x, y: rg.linalg.vector_norm(x),
    "vector_norm of order 1": lambda x, y: rg.linalg.vector_norm(x, ord=1),
    "softmax": lambda x, y: rg.softmax(x, axis=0)[:4],
    "sum of squares": lambda x, y: (x * x).sum(),
    "column": lambda x, y: x.reshape(-1, 4).sum(axis=0),
    "row": lambda x, y: x.reshape(4, -1).sum(axis=1),
    "middle": lambda x, y: x.reshape(2, -1, 4).mean(axis=1),
    "cumulative_sum": lambda x, y: rg.cumulative_sum(x)[-3:],
    "logcumsumexp": lambda x, y: rg.logcumsumexp(x)[-3:],
    "segment_sum": lambda x, y: rg.segment_sum(x, np.zeros(N, int), 1),
    "segment_mean": lambda x, y: rg.segment_mean(x, np.zeros(N, int), 1),
    "bincount": lambda x, y: rg.bincount(np.zeros(N, int), weights=x, length=1),
    "gradient of a bias": lambda x, y: rg.grad(lambda b: ((x.reshape(-1, 4) + b) * 1).sum())(
        rg.zeros(4, dtype=x.dtype)
    ),
    "mse_loss": lambda x, y: F.mse_loss(x, y),
    "l1_loss": lambda x, y: F.l1_loss(x, y),
    "huber_loss": lambda x, y: F.huber_loss(x, y),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y),
    "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x * 0.9, y * 0.9),
    "cross_entropy": lambda x, y: F.cross_entropy(x.reshape(-1, 4), CLASSES),
    "soft_margin_loss": lambda x, y: F.soft_margin_loss(x, SIGNS.astype(str(x.dtype))),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y, dim=0),
}  # fmt: skip


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(10)
def test_a_long_reduction(name: str, jit: bool) -> None:
    f = rg.jit(FUNCTIONS[name]) if jit else FUNCTIONS[name]
    given = [[rg.asarray(a.astype(np.float32).astype(d)) for a in (X, Y)] for d in ("f4", "f8")]
    found, exact = (np.asarray(f(*arrays)) for arrays in given)
    assert found.dtype == np.float32
    bound = np.finfo(np.float32).eps * math.log2(N) * np.abs(exact)
    assert (np.abs(found - exact) <= bound).all(), (found, exact)
