"""Writing at places under PyTorch's names, against their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4))
C = rng.normal(size=(2, 3, 4))
I = np.array([[0, 2, 1], [3, 3, 0]])  # noqa: E741


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def scattered(x: Any, index: Any, source: Any, how: Callable[[float, float], float]) -> Any:
    """The definition of scatter along axis 1."""
    y = x.copy()
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            y[i, index[i, j]] = how(y[i, index[i, j]], source[i, j])
    return y


def scattered_by_mask() -> Any:
    y = A.copy()
    y[A > 0] = B.ravel()[: (A > 0).sum()]
    return y


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "masked_fill": (lambda: rg.tensor(A).masked_fill(A > 0, -1), np.where(A > 0, -1, A)),
    "masked_scatter": (lambda: rg.masked_scatter(A, A > 0, B), scattered_by_mask()),
    "scatter": (lambda: rg.scatter(A, 1, I, B), scattered(A, I, B, lambda _, v: v)),
    "scatter_add": (lambda: rg.tensor(A).scatter_add(1, rg.tensor(I), rg.tensor(B)),
                    scattered(A, I, B, lambda u, v: u + v)),
    "scatter_reduce": (lambda: rg.scatter_reduce(A, 1, I, B, "amax"), scattered(A, I, B, max)),
    "index_add": (lambda: rg.index_add(A, 0, [1, 1], B[:2], alpha=2),
                  np.stack([A[0], A[1] + 2 * B[0] + 2 * B[1], A[2]])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = CASES[name][0](), np.asarray(CASES[name][1])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
