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
@pytest.mark.sample(8)
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


def numbers(*shape: int) -> Array:
    """Complex matrices, well conditioned."""
    rng = np.random.default_rng(shape)
    x, y = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape)
    m, n = shape[-2:]
    return np.asarray(x + 1j * y + np.eye(m, n) * (2 + np.arange(n)))


def definite(*shape: int) -> Array:
    x = numbers(*shape)
    return np.asarray(x @ np.swapaxes(x.conj(), -1, -2))


def hermitian(x: Any) -> Any:
    return (x + x.mH) / 2


def anchored(v: Any, *others: Any) -> Any:
    """Columns turned so that the first of the largest components is positive; others likewise."""
    size = v.detach().abs()
    first = (size >= 0.6 * size.max(-2, keepdim=True)[0]).double().argmax(-2, keepdim=True)
    lead = torch.gather(v, -2, first)
    turn = lead.conj() / lead.abs()
    return (v * turn, *(w * turn for w in others)) if others else v * turn


def torch_svd(x: Any) -> list[Any]:
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return [s, *anchored(u, vh.mH)]


def rg_svd(x: Any) -> list[Any]:
    u, s, vh = rg.linalg.svd(x, full_matrices=False)
    return [s, u, rg.conj(rg.matrix_transpose(vh))]


def torch_eig(x: Any) -> list[Any]:
    w, v = torch.linalg.eig(x)
    return [w, anchored(v)]


def torch_eigh(x: Any) -> list[Any]:
    w, v = torch.linalg.eigh(hermitian(x))
    return [w, anchored(v)]


def real_eig(*shape: int) -> Array:
    return np.asarray(np.random.default_rng(shape).standard_normal(shape))


PLANE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Array]] = {
    "det": (lambda x: [rg.linalg.det(x)], lambda x: [torch.linalg.det(x)], numbers(2, 3, 3)),
    "slogdet": (rg.linalg.slogdet, torch.linalg.slogdet, numbers(2, 3, 3)),
    "inv": (lambda x: [rg.linalg.inv(x)], lambda x: [torch.linalg.inv(x)], numbers(2, 3, 3)),
    "solve": (
        lambda x: [rg.linalg.solve(x, x[..., :2] ** 2)],
        lambda x: [torch.linalg.solve(x, x[..., :2] ** 2)],
        numbers(2, 3, 3),
    ),
    "triangular": (
        lambda x: [rg.linalg.solve_triangular(x, x * x, trans=2)],
        lambda x: [torch.linalg.solve_triangular(x.triu().mH, x * x, upper=False)],
        numbers(3, 3),
    ),
    "cholesky": (
        lambda x: [rg.linalg.cholesky(x), rg.linalg.cholesky(x, upper=True)],
        lambda x: [torch.linalg.cholesky(hermitian(x), upper=u) for u in (False, True)],
        definite(2, 4, 4),
    ),
    "qr": (rg.linalg.qr, torch.linalg.qr, numbers(5, 3)),
    "lu": (lambda x: rg.linalg.lu(x)[1:], lambda x: torch.linalg.lu(x)[1:], numbers(2, 5, 3)),
    "expm": (lambda x: [rg.linalg.expm(x)], lambda x: [torch.linalg.matrix_exp(x)],
             numbers(2, 3, 3) - 2),
    "pinv": (lambda x: [rg.linalg.pinv(x)], lambda x: [torch.linalg.pinv(x)], numbers(5, 3)),
    "lstsq": (
        lambda x: [rg.linalg.lstsq(x, x[:, :2] ** 2).solution],
        lambda x: [torch.linalg.pinv(x) @ x[:, :2] ** 2],
        numbers(5, 3),
    ),
    "eigvalsh": (
        lambda x: [rg.linalg.eigvalsh(x)],
        lambda x: [torch.linalg.eigvalsh(hermitian(x))],
        definite(2, 4, 4),
    ),
    "eigh": (rg.linalg.eigh, torch_eigh, definite(2, 3, 3)),
    "svdvals": (
        lambda x: [rg.linalg.svdvals(x)], lambda x: [torch.linalg.svdvals(x)], numbers(2, 3, 5)
    ),
    "svd": (rg_svd, torch_svd, numbers(2, 3, 3)),
    "svd tall": (rg_svd, torch_svd, numbers(5, 3)),
    "svd wide": (rg_svd, torch_svd, numbers(3, 5)),
    "eigvals": (
        lambda x: [rg.linalg.eigvals(x)], lambda x: [torch.linalg.eigvals(x)], numbers(2, 3, 3)
    ),
    "eig": (rg.linalg.eig, torch_eig, numbers(2, 3, 3)),
    "eig of reals": (rg.linalg.eig, torch_eig, real_eig(2, 4, 4)),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("name", PLANE)
@pytest.mark.sample(7)
def test_complex_to_second_order(name: str, backend: str) -> None:
    """Values, gradients of a real function of all results, and gradients of the gradient's size."""
    f, g, x = PLANE[name]
    theirs = torch.tensor(x, requires_grad=True)
    rng = np.random.default_rng(1)
    outputs = [y.resolve_conj() for y in g(theirs)]
    weights = [rng.uniform(0.5, 1.5, y.shape) * (1 - 0.7j) for y in outputs]
    loss = sum((y * torch.tensor(w)).real.sum() for y, w in zip(outputs, weights, strict=True))
    (slope,) = torch.autograd.grad(loss, theirs, create_graph=True)
    (second,) = torch.autograd.grad((slope.abs() ** 2).sum(), theirs)

    def total(z: Any) -> Any:
        pairs = zip(f(z), weights, strict=True)
        return sum([rg.sum(rg.real(y * rg.asarray(w))) for y, w in pairs])

    first = rg.grad(total)
    with rg.backend(backend):
        own = rg.asarray(x)
        for a, b in zip(f(own), outputs, strict=True):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-10, 1e-12)
        found = first(own).numpy()
        np.testing.assert_allclose(found, slope.detach().resolve_conj().numpy(), 1e-9, 1e-11)
        found = rg.grad(lambda z: rg.sum(rg.abs(first(z)) ** 2))(own).numpy()
        scale = max(1, float(second.abs().max()))
        np.testing.assert_allclose(found, second.resolve_conj().numpy(), 1e-8, 1e-10 * scale)
