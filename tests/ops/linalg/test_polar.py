"""Lyapunov's equation, unitary factors and nuclear norms, with equal singular values too."""

import numpy as np
import pytest

from retrograd.errors import ShapeError
from retrograd.ir import Graph, TensorType, float64
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.linalg.polar import NuclearNorm, Polar, lyapunov, polar
from retrograd.verify.rule_checks import placeholders, run
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general


def value(f, *arrays):
    inputs = placeholders(arrays)
    return run(Graph(inputs, [f(*inputs)]), arrays)[0]


def test_lyapunov():
    x, c = general(4, 4, "complex128"), general(5, 5, "complex128")[:4, :4]
    h = (x + x.conj().T) / 2
    y = value(lyapunov, x, c)
    np.testing.assert_allclose(h @ y + y @ h, c, atol=1e-12)


def test_where_eigenvalues_add_up_to_zero_there_is_no_solution():
    h = np.diag([1.0, -1.0])
    assert np.isnan(value(lyapunov, h, np.ones((2, 2)))).any()
    found = value(lyapunov, h, np.diag([2.0, 4.0]))  # asks nothing of them
    np.testing.assert_allclose(found, np.diag([1.0, -2.0]))


@pytest.mark.parametrize("x", [general(4, 3, "float64"), 2 * np.eye(3), np.eye(4, 3)])
def test_the_unitary_factor_and_its_slope(x):
    def unitary(x):
        u, _, vh = np.linalg.svd(x, full_matrices=False)
        return u @ vh

    np.testing.assert_allclose(value(polar, x), unitary(x), atol=1e-13)
    c, t, h = (
        np.cos(np.arange(x.size)).reshape(x.shape),
        np.sin(np.arange(x.size)).reshape(x.shape),
        1e-5,
    )
    _, g = vector_gradient(lambda x: total(polar(x) * constant(c)), x)
    slope = (unitary(x + h * t) - unitary(x - h * t)) / (2 * h)
    np.testing.assert_allclose(np.sum(g * t), np.sum(c * slope), rtol=1e-7)


def test_the_gradient_of_the_nuclear_norm_is_the_unitary_factor():
    x = 3 * np.eye(3, 2)
    _, g, none = vector_gradient(NuclearNorm(), x, np.array(6.0))
    np.testing.assert_allclose(g, np.eye(3, 2), atol=1e-15)
    assert none == 0


def test_shapes():
    wide, number = input_node(TensorType(float64, (2, 3))), input_node(TensorType(float64, (2,)))
    with pytest.raises(ShapeError, match="at least as many rows as columns"):
        Polar()(wide, wide)
    with pytest.raises(ShapeError, match="a real number for each matrix"):
        NuclearNorm()(input_node(TensorType(float64, (3, 2))), number)
