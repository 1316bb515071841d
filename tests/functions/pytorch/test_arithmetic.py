"""Elementwise functions under PyTorch's names, against NumPy."""

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
    "clamp": (lambda: rg.tensor(A).clamp(max=0.1), np.minimum(A, 0.1)),
    "lerp": (lambda: rg.lerp(A, B, 0.75), A + 0.75 * (B - A)),
    "div": (lambda: rg.div(I - 2, [2, -3, 4], rounding_mode="trunc"),
            np.trunc((I - 2) / np.array([2, -3, 4]))),
    "add": (lambda: rg.tensor(A).add(B, alpha=3), A + 3 * B),
    "round": (lambda: rg.tensor(A).round(decimals=2), np.round(A, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = CASES[name][0](), np.asarray(CASES[name][1])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
