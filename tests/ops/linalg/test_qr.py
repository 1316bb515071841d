"""Orthogonal columns and a triangle, and the columns that are missing."""

import numpy as np
import pytest

from retrograd.autodiff import pullback, pushforward
from retrograd.errors import LinAlgError, ShapeError
from retrograd.ir import Graph, TensorType, float64
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.linalg.matrix import adjoint, product
from retrograd.ops.linalg.qr import QR, Complement, unpacked
from retrograd.verify.rule_checks import check_result, inner, placeholders, run
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 2), (3, 0)])
def test_factors(m, n, dtype):
    x = general(m, n, dtype)
    inputs = placeholders([x])
    q, r = run(Graph(inputs, [*unpacked(QR()(*inputs))]), [x])
    np.testing.assert_allclose(q @ r, x, atol=1e-13)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(n), atol=1e-13)
    assert (np.tril(r, -1) == 0).all()


def test_the_gradient_of_a_product_of_the_diagonal():
    """`|R11 R22|` is the area that the columns span, of gradient `area * pinv(x)^T`."""
    x = general(4, 2, "float64")
    y = check_result(QR(), [x])
    diagonal = y[:, 4:].diagonal()
    weights = np.zeros_like(y)
    weights[[0, 1], [4, 5]] = diagonal[::-1] * np.sign(diagonal.prod())
    _, g = vector_gradient(lambda x: total(QR()(x) * constant(weights)), x)
    area = np.sqrt(np.linalg.det(x.T @ x))
    np.testing.assert_allclose(g, area * np.linalg.pinv(x).T, rtol=1e-11)


def test_what_is_asked_of_the_zeros_below_the_diagonal_changes_nothing():
    """Not even NaN."""
    x, weights = general(4, 3, "float64"), general(7, 7, "float64")[:3]
    asked = weights.copy()
    asked[np.tril_indices(3, -1)[0], 4 + np.tril_indices(3, -1)[1]] = np.nan
    inputs = placeholders([x])
    y = QR()(*inputs)
    ends = [pullback([y], [constant(g)], inputs)[0] for g in (weights, asked)]
    found, other = run(Graph(inputs, [end for end in ends if end is not None]), [x])
    np.testing.assert_array_equal(found, other)


def test_where_columns_depend_on_one_another_it_has_no_derivative():
    with pytest.raises(LinAlgError, match="singular"):
        vector_gradient(lambda x: total(QR()(x)), np.zeros((3, 2)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_missing_columns(dtype):
    q = np.linalg.qr(general(5, 2, dtype))[0]
    both = np.concatenate([q, check_result(Complement(), [q])], axis=1)
    np.testing.assert_allclose(both.conj().T @ both, np.eye(5), atol=1e-13)
    assert check_result(Complement(), [both]).shape == (5, 0)


def test_their_projection_moves_as_one_less_the_other():
    """`c c^T = 1 - q q^T` for tangents that keep columns orthonormal."""
    q = np.linalg.qr(general(4, 2, "float64"))[0]
    weights = constant(general(4, 4, "float64"))

    def f(p):
        return total(product(p, adjoint(p)) * weights)

    _, g = vector_gradient(lambda q: f(Complement()(q)), q)
    _, other = vector_gradient(lambda q: -f(q), q)
    turn = general(4, 4, "float64")
    t = (turn - turn.T) @ q
    np.testing.assert_allclose(np.sum(g * t), np.sum(other * t), rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_missing_columns_turn_no_more_than_they_have_to(dtype):
    """They stay orthogonal to the others, and move in their span; reverse mode is the transpose."""
    q = np.linalg.qr(general(5, 2, dtype))[0]
    t, g = general(5, 2, dtype)[::-1].copy(), general(5, 3, dtype)[::-1].copy()
    inputs = placeholders([q])
    c = Complement()(*inputs)
    (tangent,) = pushforward([c], inputs, [constant(t)])
    (cotangent,) = pullback([c], [constant(g)], inputs)
    assert tangent is not None
    assert cotangent is not None
    c, tc, gq = run(Graph(inputs, [c, tangent, cotangent]), [q])
    np.testing.assert_allclose(q.conj().T @ tc + t.conj().T @ c, 0, atol=1e-13)
    np.testing.assert_allclose(c.conj().T @ tc, 0, atol=1e-13)
    np.testing.assert_allclose(inner(g, tc), inner(gq, t), rtol=1e-12)
    assert abs(inner(g, tc)) > 0.1


def test_wide_matrices_are_refused():
    with pytest.raises(ShapeError, match="at least as many rows as columns"):
        QR()(input_node(TensorType(float64, (2, 3))))
