"""Complex numbers taken apart and put together: dtypes, and derivatives by both parts."""

import numpy as np
import pytest

from retrograd.errors import DTypeError
from retrograd.ir import TensorType, complex64, complex128, float16, float32, float64
from retrograd.ops.complex import Complex, Imag, Real, conj, imag, real
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import derive


def test_parts_of_infinities_stay_apart():
    """`x + i y` in arithmetic would make NaN of an infinite y: i inf = 0 inf + i inf."""
    z = check_result(Complex(), [np.array([1.0, np.inf]), np.array([np.inf, -0.0])])
    np.testing.assert_array_equal(check_result(Real(), [z]), [1, np.inf])
    np.testing.assert_array_equal(check_result(Imag(), [z]), [np.inf, 0])
    assert np.signbit(z.imag[1])


def test_dtypes():
    x32, z64 = input_node(TensorType(float32, ())), input_node(TensorType(complex64, (2,)))
    assert Complex()(x32, x32).type == TensorType(complex64, ())
    assert Real()(z64).type == TensorType(float32, (2,))
    assert Imag()(input_node(TensorType(complex128, ()))).dtype is float64
    with pytest.raises(DTypeError, match="real takes complex numbers"):
        Real()(x32)
    half = input_node(TensorType(float16, ()))
    for a, b in ((half, half), (x32, half), (z64, z64)):
        with pytest.raises(DTypeError, match="both float32 or both float64"):
            Complex()(a, b)


def test_real_numbers_are_their_own_parts():
    x = input_node(TensorType(float64, (2,)))
    assert real(x) is x
    assert conj(x) is x
    assert (imag(x).op, imag(x).attrs["value"].tolist()) == ("constant", 0)


@pytest.mark.parametrize(
    ("part", "gradient", "hessian"),
    [
        (real, [1, 0], [[0, 0], [0, 0]]),
        (imag, [0, 1], [[0, 0], [0, 0]]),
        (lambda z: real(z * conj(z)), [1, -3], [[2, 0], [0, 2]]),  # x^2 + y^2
        (lambda z: imag(z * z), [-3, 1], [[0, 2], [2, 0]]),  # 2 x y
    ],
)
def test_derivatives_by_both_parts(part, gradient, hessian):
    found = derive(lambda x, y: part(Complex()(x, y)), 0.5, -1.5)
    np.testing.assert_allclose(found[1], gradient)
    np.testing.assert_allclose(found[2], hessian)
