"""The discrete Fourier transform is the product with its matrix."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, complex128, float64
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import check_result


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_product_with_the_matrix(n, dtype):
    """The inverse turns the sign and does not divide."""
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((n, 2)) + 1j * rng.standard_normal((n, 2))).astype(dtype)
    matrix = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    tolerance = 1e-5 if dtype == "complex64" else 1e-13
    y, back = check_result(Fft(0), [x]), check_result(Fft(0, True), [x])
    assert y.dtype == dtype
    np.testing.assert_allclose(y, matrix @ x, atol=tolerance)
    np.testing.assert_allclose(back, matrix.conj() @ x, atol=tolerance)
    np.testing.assert_allclose(check_result(Fft(0, True), [y]), n * x, atol=tolerance)


@pytest.mark.parametrize(
    ("dtype", "shape", "axis", "error", "match"),
    [
        (float64, (3,), 0, DTypeError, "complex numbers.*cast first"),
        (complex128, (3,), 1, ShapeError, "the axis must lie within its 1"),
        (complex128, (3, 0), 1, ShapeError, "of no elements there is no transform"),
    ],
)
def test_what_is_refused(dtype, shape, axis, error, match):
    with pytest.raises(error, match=match):
        Fft(axis)(input_node(TensorType(dtype, shape)))
