"""Reading at places under PyTorch's names, against NumPy."""

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
    "gather": (lambda: rg.gather(rg.tensor(A), 1, rg.tensor(I)), np.take_along_axis(A[:2], I, 1)),
    "index_select": (lambda: rg.index_select(A, 1, [3, 0]), A[:, [3, 0]]),
    "masked_select": (lambda: rg.masked_select(rg.tensor(A), A[0] > 0), A[:, A[0] > 0].ravel()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = CASES[name][0](), np.asarray(CASES[name][1])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
