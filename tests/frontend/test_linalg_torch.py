"""`rg.linalg` against PyTorch: values, and gradients where both define them alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
Array = np.ndarray[Any, Any]


def general(*shape: int) -> Array:
    m, n = shape[-2:]
    x = np.random.default_rng(shape).uniform(-1, 1, shape)
    return np.asarray(x + np.eye(m, n) * (2 + np.arange(n)))


def positive(*shape: int) -> Array:
    x = general(*shape)
    return np.asarray(x @ np.swapaxes(x, -1, -2))


def oriented(v: Any) -> Any:
    """Vectors without their sign."""
    return v * v


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Array]] = {
    "cholesky": (rg.linalg.cholesky, torch.linalg.cholesky, positive(2, 5, 5)),
    "det": (rg.linalg.det, torch.linalg.det, general(3, 4, 4)),
    "slogdet": (
        lambda x: rg.linalg.slogdet(x).logabsdet,
        lambda x: torch.linalg.slogdet(x).logabsdet,
        general(3, 4, 4),
    ),
    "inv": (rg.linalg.inv, torch.linalg.inv, general(2, 3, 3)),
    "solve": (
        lambda x: rg.linalg.solve(x, x[..., :2] ** 2),
        lambda x: torch.linalg.solve(x, x[..., :2] ** 2),
        general(2, 3, 3),
    ),
    "triangular": (
        lambda x: rg.linalg.solve_triangular(x, x, lower=True, unit_diagonal=True),
        lambda x: torch.linalg.solve_triangular(x.tril(), x, upper=False, unitriangular=True),
        general(3, 3),
    ),
    "pinv": (rg.linalg.pinv, torch.linalg.pinv, general(5, 3)),
    "lstsq": (
        lambda x: rg.linalg.lstsq(x, x[:, :1] ** 2).solution,
        lambda x: torch.linalg.lstsq(x, x[:, :1] ** 2).solution,
        general(5, 3),
    ),
    "eigvalsh": (rg.linalg.eigvalsh, torch.linalg.eigvalsh, positive(2, 4, 4)),
    "eigh": (
        lambda x: oriented(rg.linalg.eigh(x).eigenvectors),
        lambda x: oriented(torch.linalg.eigh((x + x.mT) / 2).eigenvectors),
        positive(2, 4, 4),
    ),
    "svdvals": (rg.linalg.svdvals, torch.linalg.svdvals, general(2, 3, 5)),
    "svd": (
        lambda x: oriented(rg.linalg.svd(x, full_matrices=False).Vh),
        lambda x: oriented(torch.linalg.svd(x, full_matrices=False).Vh),
        general(2, 3, 5),
    ),
    "qr": (lambda x: rg.linalg.qr(x).Q, lambda x: torch.linalg.qr(x).Q, general(2, 5, 3)),
    "qr R": (lambda x: rg.linalg.qr(x).R, lambda x: torch.linalg.qr(x).R, general(2, 3, 3)),
    "lu": (lambda x: rg.linalg.lu(x).U, lambda x: torch.linalg.lu(x).U, general(2, 5, 3)),
    "expm": (rg.linalg.expm, torch.linalg.matrix_exp, general(2, 4, 4) - 2),
    "matrix_power": (
        lambda x: rg.linalg.matrix_power(x, -2),
        lambda x: torch.linalg.matrix_power(x, -2),
        general(3, 3),
    ),
    "nuc": (
        lambda x: rg.linalg.matrix_norm(x, ord="nuc"),
        lambda x: torch.linalg.matrix_norm(x, ord="nuc"),
        general(4, 3),
    ),
    "cond": (rg.linalg.cond, torch.linalg.cond, general(4, 3)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, dtype: Any) -> None:
    ours, theirs, x = CASES[name]
    x = x.astype(dtype)
    tolerance = 1e-9 if dtype is np.float64 else 3e-3
    t = torch.tensor(x, requires_grad=True)
    expected = theirs(t)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, expected.shape).astype(dtype)
    (expected * torch.tensor(weights)).sum().backward()
    y = ours(rg.asarray(x))
    g = rg.grad(lambda a: rg.sum(ours(a) * rg.asarray(weights)))(rg.asarray(x))
    for found, want in ((y, expected.detach()), (g, t.grad)):
        assert found.dtype is rg.float64 if dtype is np.float64 else rg.float32
        scale = float(want.abs().max())
        np.testing.assert_allclose(found.numpy(), want.numpy(), tolerance, tolerance * scale)
