"""Eigenvalues of any matrices: what is packed, which sign vectors have, what is refused."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, LinAlgError
from retrograd.ir import TensorType, float16
from retrograd.ops.complex import real
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.linalg.eig import Eig, Eigvals
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_values_and_vectors(dtype):
    x = general(5, 5, dtype)
    y = check_result(Eig(), [x])
    w, v = y[0], y[1:].T
    np.testing.assert_allclose(x @ v, v * w, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1)
    np.testing.assert_allclose(check_result(Eigvals(), [x]), w, rtol=1e-12)
    size = np.abs(v)
    first = np.argmax(size >= 0.6 * size.max(axis=0), axis=0)
    chosen = v[first, range(5)]
    assert (chosen.real > 0).all()
    np.testing.assert_allclose(chosen.imag, 0, atol=1e-15)


def test_the_gradient_of_a_sum_of_powers_is_known():
    """sum_i w_i^2 = tr(x^2), whose gradient is 2 x^T, by values with vectors and without."""
    x = general(4, 4, "float64")

    def f(w):
        return total(real(w * w))

    _, g = vector_gradient(lambda x: f(Eigvals()(x)), x)
    np.testing.assert_allclose(g, 2 * x.T, atol=1e-12)
    first = constant(np.eye(5, 1).repeat(4, 1).astype(complex))
    _, g = vector_gradient(lambda x: f(Eig()(x) * first), x)
    np.testing.assert_allclose(g, 2 * x.T, atol=1e-12)


def test_what_is_refused():
    bad = np.array([np.eye(2), [[np.nan, 0], [0, 1]]])
    for op in (Eig(), Eigvals()):
        with pytest.raises(LinAlgError, match=r"matrix \[1\]: it holds NaN or infinities"):
            check_result(op, [bad])
        with pytest.raises(DTypeError, match=r"cast .* to float32"):
            op(input_node(TensorType(float16, (2, 2))))
    assert check_result(Eigvals(), [np.zeros((0, 0))]).shape == (0,)
