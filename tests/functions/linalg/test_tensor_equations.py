"""Tensor equations, and matrices of a given form, against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.errors import LinAlgError, ShapeError
from tests.functions.linalg.matrices import close


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_tensor_equations(backend: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 3, 4, 3, 2, 4)).astype(dtype)
    b = rng.normal(size=(2, 3, 4)).astype(dtype)
    if dtype is np.complex128:
        a = a + 1j * rng.normal(size=a.shape)
    c = rng.normal(size=(3, 6, 2))
    with rg.backend(backend):
        close(rg.linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b), 1e-9)
        close(rg.linalg.tensorinv(a, ind=3), np.linalg.tensorinv(a, ind=3), 1e-9)
        expected = np.linalg.tensorsolve(c, b[0, :, :2], axes=(1,))
        close(rg.linalg.tensorsolve(c, b[0, :, :2], axes=(1,)), expected, 1e-9)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_matrices_of_a_form(backend: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 4))
    with rg.backend(backend):
        for n in (0, 1, 2, 6, None):
            close(rg.linalg.vander(x[0], N=n), np.vander(x[0], n, increasing=True))
            close(rg.linalg.vander(x, N=n)[1], np.vander(x[1], n, increasing=True))
        blocks = [x, x[0], 3.0, x[:, :1], np.zeros((0, 2))]
        close(rg.linalg.block_diag(*blocks), scipy.linalg.block_diag(*blocks))
        close(rg.linalg.block_diag(x), x)
        assert rg.linalg.block_diag(np.ones(2, np.int32), 1j).dtype is rg.complex64
    for f in (
        lambda x: rg.linalg.vander(x[0], N=4),
        lambda x: rg.linalg.block_diag(x, x[0] ** 2),
        lambda x: rg.linalg.tensorsolve(rg.reshape(x @ x.T + rg.eye(2), (2, 1, 2)), x[:, :1] ** 2),
        lambda x: rg.linalg.tensorinv(rg.reshape(x[:, :2] + 3 * rg.eye(2), (2, 1, 2)), ind=1),
    ):
        rg.testing.check_grads(lambda x, f=f: rg.sum(f(x) ** 2), (x,), order=2)


def test_tensor_equations_refuse() -> None:
    for call in (
        lambda: rg.linalg.tensorsolve(rg.ones((2, 3, 4)), rg.ones((2, 3))),
        lambda: rg.linalg.tensorsolve(rg.ones((2, 3, 6)), rg.ones((3, 2))),
        lambda: rg.linalg.tensorinv(rg.ones((2, 3, 4))),
        lambda: rg.linalg.tensorinv(rg.ones((2, 2)), ind=0),
        lambda: rg.linalg.vander(rg.tensor(1.0)),
        lambda: rg.linalg.vander(rg.ones((3,)), N=-1),
        lambda: rg.linalg.block_diag(),
        lambda: rg.linalg.block_diag(rg.ones((1, 2, 3))),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(LinAlgError):
        rg.linalg.tensorsolve(rg.zeros((2, 2)), rg.ones((2,))).numpy()
