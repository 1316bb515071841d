"""Factors of matrices: their product, and what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.errors import LinAlgError
from tests.functions.linalg.matrices import Array, close, general, positive

SHAPES = [(3, 3), (1, 1), (0, 0), (17, 17), (2, 3, 3), (0, 2, 2), (2, 1, 4, 4)]
TALL = [(5, 3), (4, 1), (3, 0), (2, 6, 2)]
WIDE = [(3, 5), (1, 4), (2, 2, 6)]


@pytest.mark.parametrize("shape", [*SHAPES, *TALL, *WIDE])
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...]) -> None:
    x = general(*shape)
    t = rg.asarray(x)
    m, n = shape[-2:]
    if x.size or m == n:
        for mode in ("reduced", "complete"):
            q, r = rg.linalg.qr(t, mode=mode)
            close(q @ r, x)
            close(
                rg.matrix_transpose(q) @ q,
                np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])),
            )
            close(r, np.triu(r.numpy()), 0)
            assert q.shape[-1] == (m if mode == "complete" else min(m, n))
        for full in (False, True):
            u, s, vh = rg.linalg.svd(t, full_matrices=full)
            k = min(m, n)
            close((u[..., :, :k] * s[..., None, :]) @ vh[..., :k, :], x)
            for v in (u, rg.matrix_transpose(vh)):
                one = np.broadcast_to(np.eye(v.shape[-1]), (*shape[:-2], *[v.shape[-1]] * 2))
                close(rg.matrix_transpose(v) @ v, one)
            assert (u.shape[-1], vh.shape[-2]) == ((m, n) if full else (k, k))
    if x.size:
        p, low, up = rg.linalg.lu(t)
        close(p @ low @ up, x)
        for found, want in zip(
            (p, low, up),
            (np.vectorize(scipy.linalg.lu, signature="(m,n)->(m,m),(m,k),(k,n)")(x)),
            strict=True,
        ):
            close(found, want)


@pytest.mark.parametrize("shape", SHAPES)
def test_symmetric(shape: tuple[int, ...]) -> None:
    x = positive(*shape)
    t = rg.asarray(x)
    for upper in (False, True):
        c = rg.linalg.cholesky(t, upper=upper)
        close(c, np.linalg.cholesky(x, upper=upper))
        other = rg.matrix_transpose(c)
        close(other @ c if upper else c @ other, x)
        close(rg.linalg.cho_solve(c, t, lower=not upper), np.linalg.solve(x, x))
    w, v = rg.linalg.eigh(t)
    close(w, np.linalg.eigvalsh(x))
    close(rg.linalg.eigvalsh(t), np.linalg.eigvalsh(x))
    close((v * w[..., None, :]) @ rg.matrix_transpose(v), x)


def test_symmetric_part() -> None:
    """What is not symmetric counts as its symmetric part, so gradients are symmetric."""
    x = positive(4, 4)
    skew = np.triu(np.ones((4, 4)), 1)
    t = rg.asarray(x + skew - skew.T)
    close(rg.linalg.cholesky(t), np.linalg.cholesky(x))
    close(rg.linalg.eigvalsh(t), np.linalg.eigvalsh(x))
    for f in (rg.linalg.cholesky, lambda y: rg.linalg.eigh(y).eigenvectors):
        g = rg.grad(lambda y, f=f: rg.sum(f(y) ** 3))(t).numpy()
        np.testing.assert_allclose(g, g.T, atol=1e-12)


def value(f: Callable[[Any], Any], x: Array) -> Any:
    return f(rg.asarray(x)).numpy()


def difference(f: Callable[[Any], Any], x: Any, t: Any, h: float = 1e-3) -> Any:
    near, far = f(x + h * t) - f(x - h * t), f(x + 2 * h * t) - f(x - 2 * h * t)
    return (8 * near - far) / (12 * h)


def test_added_columns_turn_with_the_others() -> None:
    """What depends on the span of the columns that a full decomposition adds."""
    x = general(5, 2)
    c = rg.asarray(np.random.default_rng(10).standard_normal((5, 5)))
    for f in (lambda y: rg.linalg.qr(y, mode="complete").Q, lambda y: rg.linalg.svd(y).U):

        def project(y: Any, f: Any = f) -> Any:
            v = f(y)[:, 2:]
            return rg.sum(c * (v @ rg.matrix_transpose(v)))

        t = np.random.default_rng(11).standard_normal(x.shape)
        g = rg.grad(project)(rg.asarray(x))
        want = difference(partial(value, project), x, t)
        np.testing.assert_allclose(rg.sum(g * rg.asarray(t)).numpy(), want, 1e-8)
        _, forward = rg.jvp(project, (rg.asarray(x),), (rg.asarray(t),))
        np.testing.assert_allclose(forward.numpy(), want, 1e-8)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "f", [rg.linalg.eigh, rg.linalg.eigvalsh, rg.linalg.svd, rg.linalg.svdvals]
)
def test_iterations_refuse_what_is_not_finite(f: Any, bad: float, backend: str) -> None:
    x = positive(2, 3, 3)
    x[1, 0, 2] = bad
    with rg.backend(backend):
        y = f(rg.asarray(x))
        with pytest.raises(LinAlgError, match=r"\[1\]: it holds NaN or inf"):
            (y[0] if isinstance(y, tuple) else y).numpy()
