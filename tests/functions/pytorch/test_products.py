"""Products under PyTorch's names, against NumPy."""

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
    "addmm": (lambda: rg.addmm(A, A, C[0, :, :].T @ A, beta=2), 2 * A + A @ (C[0].T @ A)),
    "bmm": (lambda: rg.bmm(C, C.transpose(0, 2, 1)), C @ C.transpose(0, 2, 1)),
    "mv": (lambda: rg.mv(A, B[0]), A @ B[0]),
    "norm": (lambda: rg.tensor(A).norm(dim=1), np.linalg.norm(A, axis=1)),
    "norm, p": (lambda: rg.norm(A, p=1, dim=0, keepdim=True), abs(A).sum(0, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = CASES[name][0](), np.asarray(CASES[name][1])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_dot_of_more_axes_is_numpys() -> None:
    rng = np.random.default_rng(0)
    shapes = [
        ((2, 3), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 5, 3), (4, 3, 2)),
        ((), (2, 3)),
    ]
    for one, other in shapes:
        a, b = rng.normal(size=one), rng.normal(size=other)
        found = rg.asarray(a).dot(rg.asarray(b))
        np.testing.assert_allclose(found.numpy(), np.dot(a, b), rtol=1e-13)
    with pytest.raises(rg.ShapeError):
        rg.ones((2, 3)).dot(rg.ones((2, 3)))
