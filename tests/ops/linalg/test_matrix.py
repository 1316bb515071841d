"""What ops on matrices share: halves and diagonals, groups of equal values, errors by place."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Graph, TensorType, float32, float64, int64
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import matrix as m
from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.verify.rule_checks import placeholders, run
from tests.ops.linalg.matrices import general

X = np.array([general(4, 4, "complex128"), general(5, 5, "complex128")[:4, :4]])


def value(f, *arrays):
    inputs = placeholders(arrays)
    return run(Graph(inputs, [f(*inputs)]), arrays)[0]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (m.lower, np.tril(X)), (lambda x: m.lower(x, True), np.tril(X, -1)),
        (m.upper, np.triu(X)), (lambda x: m.upper(x, True), np.triu(X, 1)),
        (m.adjoint, X.conj().swapaxes(1, 2)), (m.transpose, X.swapaxes(1, 2)),
        (m.symmetric, (X + X.conj().swapaxes(1, 2)) / 2),
        (m.antisymmetric, (X - X.conj().swapaxes(1, 2)) / 2),
        (m.diagonal_of, np.diagonal(X, axis1=1, axis2=2)),
        (lambda x: m.diagonal(m.diagonal_of(x)), X * np.eye(4)),
        (lambda x: m.product(x, x, m.adjoint(x)), X @ X @ X.conj().swapaxes(1, 2)),
        (lambda x: m.rows(x, 1, 3), X[:, 1:3]), (lambda x: m.columns(x, 1, 3), X[:, :, 1:3]),
        (m.size, np.abs(X)),
        (lambda x: m.scaled_columns(x, m.diagonal_of(m.size(x))),
         X * np.diagonal(np.abs(X), axis1=1, axis2=2)[:, None]),
    ],
)  # fmt: skip
def test_against_numpy(f, expected):
    np.testing.assert_allclose(value(f, X), expected, atol=1e-14)


def test_halves_of_a_symmetric_matrix_add_up():
    s = X.real + X.real.swapaxes(1, 2)
    half = value(m.halved, s)
    np.testing.assert_allclose(half + half.swapaxes(1, 2), s)
    assert (np.triu(half, 1) == 0).all()


def test_equal_values_are_grouped_by_their_neighbours():
    w = np.array([-1.0, 1.0, 1.0 + 1e-15, 2.0])
    assert value(m.clusters, w).tolist() == [0, 1, 1, 2]
    assert np.argwhere(value(m.tied, w)).tolist() == [[1, 2], [2, 1]]


def test_gaps_are_for_products_that_zero_absorbs():
    w = np.array([1.0, 3.0, 3.0])
    found = value(lambda w: m.gaps(w, m.tied(w)), w)
    np.testing.assert_array_equal(found, [[0, 0.5, 0.5], [-0.5, 0, np.nan], [-0.5, np.nan, 0]])


def test_vectors_have_one_sign_everywhere():
    """The first component of at least 0.6 times the largest becomes positive."""
    v = np.array([[-0.1, 0.7j, 0.0], [-0.7, 0.1, 0.0], [0.9, 0.7, 0.0]])
    with np.errstate(invalid="ignore"):
        signs = m.orientation(v)
    np.testing.assert_allclose(signs, [-1, -1j, 1])
    np.testing.assert_allclose(m.orientation(v.real), [-1, 1, 1])
    assert m.orientation(np.zeros((0, 2))).tolist() == [1, 1]


def test_the_place_of_what_is_refused():
    op = Cholesky()
    assert str(op.refusal(0, (), 1)).startswith("cholesky of the matrix: it is not positive")
    assert str(op.refusal(5, (2, 3), 1)).startswith("cholesky of the matrix [1, 2]:")


def test_what_are_no_matrices():
    op = Cholesky()
    with pytest.raises(ShapeError, match="at least two axes"):
        op(input_node(TensorType(float64, (3,))))
    with pytest.raises(ShapeError, match="must be square"):
        op(input_node(TensorType(float64, (3, 4))))
    with pytest.raises(DTypeError, match="floating or complex matrices"):
        op(input_node(TensorType(int64, (3, 3))))
    with pytest.raises(DTypeError, match="of one dtype"):
        m.check_matrices(op, TensorType(float64, (3, 3)), TensorType(float32, (3, 3)))
    with pytest.raises(ShapeError, match="one matrix for each"):
        m.check_matrices(op, TensorType(float64, (2, 3, 3)), TensorType(float64, (3, 3)))
