"""Joining and splitting under PyTorch's names, against NumPy."""

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


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "cat": (lambda: rg.cat([rg.tensor(A), rg.tensor(B)], dim=1), np.concatenate([A, B], 1)),
    "cat of nothing": (lambda: rg.cat([rg.tensor(A), rg.zeros(0, dtype=rg.float64)]), A),
    "stack": (lambda: rg.stack([rg.tensor(A), rg.tensor(B)], dim=-1), np.stack([A, B], -1)),
    "chunk": (lambda: rg.tensor(A).chunk(3, dim=1)[1], A[:, 2:4]),
    "split": (lambda: rg.tensor(A).split(3, dim=1)[1], A[:, 3:]),
    "split, dim": (lambda: rg.split(rg.tensor(A), 3, dim=1)[0], A[:, :3]),
    "tensor_split": (lambda: rg.tensor_split(rg.tensor(A), [1, 9], dim=1)[1], A[:, 1:]),
    "repeat_interleave": (lambda: rg.repeat_interleave(A, 2, dim=1), A.repeat(2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = CASES[name][0](), np.asarray(CASES[name][1])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
