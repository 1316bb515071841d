"""Norms of matrices against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.functions.linalg.matrices import close, general


def test_gradients_of_the_largest_singular_value() -> None:
    """`u v^H`; shared by equal ones; of none there is nothing."""
    for shape in ((3, 2), (2, 3), (2, 1, 4)):
        x = general(*shape)
        g = rg.grad(lambda t: rg.linalg.matrix_norm(t, ord=2).sum())(rg.asarray(x))
        u, _, vh = np.linalg.svd(x)
        close(g, u[..., :, :1] @ vh[..., :1, :])
    g = rg.grad(lambda t: rg.linalg.norm(t, 2))
    close(g(2 * rg.eye(2)), np.eye(2) / 2)
    assert g(rg.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms(order: Any, keepdims: bool) -> None:
    for shape in ((3, 4), (2, 4, 3), (1, 1)):
        x = general(*shape)
        t = rg.asarray(x)
        expected = np.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
        close(rg.linalg.matrix_norm(t, ord=order, keepdims=keepdims), expected)
        close(rg.linalg.norm(t, order, (-2, -1), keepdims), expected)
        if len(shape) == 2:
            close(rg.linalg.norm(t, order), np.linalg.norm(x, order))
    if shape[-1] == shape[-2] and order not in ("nuc", -1, -np.inf):
        close(rg.linalg.cond(t, order), np.linalg.cond(x, order))
    x = general(3, 4, 2)
    if order not in ("fro", "nuc"):
        close(rg.linalg.norm(rg.asarray(x), order, 1), np.linalg.norm(x, order, 1))
    close(rg.linalg.norm(rg.asarray(x), "fro", (2, 0)), np.linalg.norm(x, "fro", (2, 0)))
    close(rg.linalg.norm(rg.asarray(x)), np.linalg.norm(x))
