"""Functions of hermitian matrices, and divided differences of any distances."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from retrograd.errors import ShapeError
from retrograd.ir import Graph, TensorType, float64
from retrograd.ops import elementwise as el
from retrograd.ops.control.matrix_function import (
    MatrixFunction,
    divided_differences,
    evaluated,
    matrix_function,
)
from retrograd.ops.elementwise import exp, log, sqrt
from retrograd.ops.leaf import constant, input_node
from retrograd.verify.rule_checks import placeholders, run
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general

T = TensorType(float64, ())


def of(f, numbers=0):
    inputs = [input_node(T) for _ in range(1 + numbers)]
    return Graph(inputs, [f(*inputs)])


def value(f, *arrays):
    inputs = placeholders(arrays)
    return run(Graph(inputs, [f(*inputs)]), arrays)[0]


@pytest.mark.parametrize("points", [(0.5, 0.5), (0.5, 0.5 + 1e-9), (-3.0, 4.0)])
def test_first_divided_differences(points):
    """`(exp(b) - exp(a)) / (b - a)`, where the quotient would cancel too, in any order."""
    a, b = points
    expected = math.exp(a) if a == b else math.exp(a) * math.expm1(b - a) / (b - a)
    for pair in (points, points[::-1]):
        arrays = [np.array([x]) for x in pair]
        found = value(lambda *xs: divided_differences(of(exp), xs, []), *arrays)
        np.testing.assert_allclose(found, [expected], rtol=1e-14)
        found = value(lambda *xs: divided_differences(of(lambda t: -exp(t)), xs, []), *arrays)
        np.testing.assert_allclose(found, [-expected], rtol=1e-14)


@pytest.mark.parametrize("points", [(-1.0, 2.0, 5.0), (-3.0, -1.0, 2.0, 5.0), (-4.0, -3.0, 1.0)])
def test_differences_of_what_is_not_smooth_between_points(points):
    """Of `|x|`, whose derivatives are 0 but for the kink: no mean of them."""
    row = [abs(x) for x in points]
    for k in range(1, len(points)):
        row = [(b - a) / (points[i + k] - points[i])
               for i, (a, b) in enumerate(itertools.pairwise(row))]  # fmt: skip
    arrays = [np.array([x]) for x in points]
    found = value(lambda *xs: divided_differences(of(el.abs), xs, []), *arrays)
    np.testing.assert_allclose(found, row, rtol=1e-13)


@pytest.mark.parametrize("points", [(1.0, 1.0, 1.0), (1.0, 1.0 + 1e-7, 3.0), (0.5, 2.0, 7.0)])
def test_second_divided_differences(points):
    with mpmath.workdps(60):
        p = [mpmath.mpf(x) + k * mpmath.mpf("1e-20") for k, x in enumerate(points)]
        exact = sum(mpmath.log(x) / mpmath.fprod(x - y for y in p if y is not x) for x in p)
    arrays = [np.array([x]) for x in points]
    found = value(lambda *xs: divided_differences(of(log), xs, []), *arrays)
    np.testing.assert_allclose(found, [float(exact)], rtol=1e-12)


def test_against_scipy_and_with_a_number_for_each_matrix():
    linalg = pytest.importorskip("scipy.linalg")
    x = general(3, 3, "complex128")
    h = (x + x.conj().T) / 2
    np.testing.assert_allclose(
        value(lambda x: matrix_function(of(exp), x), x), linalg.expm(h), atol=1e-12
    )
    stack, scales = np.array([np.eye(2), np.diag([1.0, 2.0])]), np.array([3.0, 5.0])
    f = of(lambda w, c: w * w * c, 1)
    found = value(lambda x, c: matrix_function(f, x, (), [c]), stack, scales)
    np.testing.assert_allclose(found, stack @ stack * scales[:, None, None])


def test_the_gradient_of_a_square_with_equal_eigenvalues():
    """Of `tr(w x^2)`, `w x + x w`, for symmetric w."""
    x, w = np.diag([2.0, 2.0, 3.0]), general(3, 3, "float64")
    w = w + w.T
    square = of(lambda v: v * v)
    _, g = vector_gradient(lambda x: total(matrix_function(square, x) * constant(w)), x)
    np.testing.assert_allclose(g, w @ x + x @ w, rtol=1e-13)


def test_eigenvalues_negative_by_rounding_count_as_zero():
    x = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-16]])
    x[1, 1] -= 2e-16
    found = value(lambda x: matrix_function(of(sqrt), x, clipped=True), x)
    np.testing.assert_allclose(found @ found, x, atol=1e-15)
    small = np.diag([0.25, 4.0])
    found = value(lambda x: matrix_function(of(sqrt), x, clipped=True), small)
    np.testing.assert_allclose(found, np.diag([0.5, 2.0]), atol=1e-15)
    with np.errstate(invalid="ignore"):
        bad = value(lambda x: matrix_function(of(sqrt), x, clipped=True), -np.eye(2))
    assert np.isnan(bad).any()


def test_evaluated_at_every_element():
    x, c = np.arange(6.0).reshape(2, 3), np.array([10.0, 20.0])
    found = value(lambda x, c: evaluated(of(lambda x, c: x + c, 1), x, [c]), x, c)
    np.testing.assert_array_equal(found, x + c[:, None])
    constant_f = of(lambda x: x * 0.0 + 2.0)
    np.testing.assert_array_equal(value(lambda x: evaluated(constant_f, x, []), x), x * 0 + 2)


def test_what_does_not_fit():
    x, other = (input_node(TensorType(float64, s)) for s in ((2, 2), (3, 3)))
    with pytest.raises(ShapeError, match="takes 2 inputs here, not 1"):
        MatrixFunction(of(exp))(x)
    with pytest.raises(ShapeError, match="the two types are the same"):
        MatrixFunction(of(exp), 1)(x, other, x)
    with pytest.raises(ShapeError, match="one for each matrix"):
        MatrixFunction(of(lambda w, c: w * c, 1))(x, x, x)
