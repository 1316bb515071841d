"""Factorizations run on the host, and what is given a derivative is passed on."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from retrograd.xla.lowering.all_rules import how
from tests.xla.lowering.programs import values

A = np.random.default_rng(0).normal(size=(3, 3)) + 3 * np.eye(3)


def test_which_are_on_the_host() -> None:
    assert {how(x) for x in ("cholesky", "eigh", "qr", "svd", "solve", "lu")} == {"host"}
    assert {how(x) for x in ("det", "logabsdet", "pinv")} == {"native"}


@pytest.mark.slow
def test_as_in_numpy() -> None:
    b = np.array([1.0, -2.0, 0.5])
    det, x, inverse = values(
        lambda a, b: (rg.linalg.det(a), rg.linalg.solve(a, b), rg.linalg.inv(a)), A, b
    )
    np.testing.assert_allclose(det, np.linalg.det(A), rtol=1e-13)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(A), rtol=1e-12)


@pytest.mark.slow
def test_a_matrix_without_an_inverse_is_an_error() -> None:
    with pytest.raises(rg.LinAlgError, match="it is singular"):
        values(rg.linalg.inv, np.zeros((2, 2)))


@pytest.mark.slow
def test_the_gradient_of_a_determinant() -> None:
    (found,) = values(rg.grad(rg.linalg.det), A)
    np.testing.assert_allclose(found, np.linalg.det(A) * np.linalg.inv(A).T, rtol=1e-12)
