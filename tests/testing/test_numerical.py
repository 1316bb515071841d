"""Finite differences against exact derivatives."""

import numpy as np
import pytest

import retrograd as rg

X = np.array([[0.3, -1.2, 0.7], [2.0, 0.4, -0.5]])


def test_numbers_against_the_exact_derivative():
    found = rg.numerical_gradient(lambda x: rg.sum(rg.exp(x) * x), X)
    np.testing.assert_allclose(found.numpy(), np.exp(X) * (X + 1), rtol=1e-10)
    by_w, by_b = rg.numerical_gradient(
        lambda p, k: (p["w"] * p["w"] * k).sum() + p["b"], {"w": X, "b": 1.0}, np.array(3)
    )
    np.testing.assert_allclose(by_w["w"].numpy(), 6 * X, rtol=1e-10)
    assert by_w["b"].item() == pytest.approx(1)
    assert by_b.item() == 0
    z = np.array([1 + 2j, 3 - 1j])
    found = rg.numerical_gradient(lambda z: rg.sum(rg.abs(z) ** 2), z)
    np.testing.assert_allclose(found.numpy(), 2 * z, rtol=1e-10)
