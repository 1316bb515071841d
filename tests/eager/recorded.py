"""Arrays and parameters that recordings are made of."""

from __future__ import annotations

import numpy as np

import retrograd as rg

X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)


def parameter(*shape: int) -> rg.Tensor:
    return rg.tensor(np.full(shape, 0.5, np.float32), requires_grad=True)


Z = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
