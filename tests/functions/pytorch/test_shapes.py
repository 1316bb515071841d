"""Shapes under PyTorch's names, against NumPy."""

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
    "view": (lambda: rg.tensor(A).view(2, -1), A.reshape(2, 6)),
    "unsqueeze": (lambda: rg.tensor(A).unsqueeze(-1), A[..., None]),
    "flatten": (lambda: rg.tensor(C).flatten(1), C.reshape(2, 12)),
    "unflatten": (lambda: rg.unflatten(A, 1, (2, -1)), A.reshape(3, 2, 2)),
    "permute": (lambda: rg.tensor(C).permute(2, 0, 1), C.transpose(2, 0, 1)),
    "transpose": (lambda: rg.tensor(C).transpose(0, 2), C.swapaxes(0, 2)),
    "t": (lambda: rg.tensor(A).t(), A.T),
    "expand": (lambda: rg.tensor(A[:, :1]).expand(2, -1, 4), np.broadcast_to(A[:, :1], (2, 3, 4))),
    "narrow": (lambda: rg.tensor(A).narrow(1, -3, 2), A[:, 1:3]),
    "select": (lambda: rg.tensor(A).select(1, -1), A[:, -1]),
    "unfold": (lambda: rg.tensor(A).unfold(1, 2, 1),
               np.lib.stride_tricks.sliding_window_view(A, 2, 1)),
    "view as its own dtype": (lambda: rg.tensor(A).view(rg.float64), A),
    "view as real": (lambda: rg.tensor(A + 2j * A).view(rg.float64), (A + 2j * A).view(np.float64)),
    "view as complex": (lambda: rg.tensor(A).view(rg.complex128), A.view(np.complex128)),
    "diag_embed above": (lambda: rg.diag_embed(A[0], 1), np.diag(A[0], 1)),
    "diag_embed below": (lambda: rg.diag_embed(A[0], -2), np.diag(A[0], -2)),
    "roll": (lambda: rg.roll(A, shifts=(1, 2), dims=(0, 1)), np.roll(A, (1, 2), (0, 1))),
    "flip": (lambda: rg.tensor(A).flip(0, 1), A[::-1, ::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = CASES[name][0](), np.asarray(CASES[name][1])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_view_between_complex_numbers_and_their_parts() -> None:
    """A gradient comes back as it was viewed; pairs need an even size."""
    z = np.array([1 + 2j, 3 - 1j])
    found = rg.grad(lambda x: (x.view(rg.complex128) * (2 - 1j)).real.sum())(z.view(np.float64))
    np.testing.assert_array_equal(found.numpy(), [2, 1, 2, 1])
    with pytest.raises(rg.ShapeError, match=r"pairs in the last axis of \(3,\)"):
        rg.ones(3).view(rg.complex64)
    with pytest.raises(rg.OptionError, match="bits"):
        rg.tensor(1 + 2j).view(rg.float32)
