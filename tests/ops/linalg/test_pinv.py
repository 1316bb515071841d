"""The derivative of pseudo-inverses of full and of lower rank, by differences."""

import numpy as np
import pytest

from retrograd.errors import ShapeError
from retrograd.ir import TensorType, float64
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.linalg.pinv import Pinv
from tests.ops.derive import total, vector_gradient
from tests.ops.linalg.matrices import general


@pytest.mark.parametrize(("m", "n", "rank"), [(4, 3, 3), (3, 4, 3), (4, 4, 2), (2, 3, 0)])
def test_at_constant_rank(m, n, rank):
    """Along a curve `a(t) b(t)^T` of matrices of one rank."""
    a, b, da, db = (general(k, 5, "float64")[:k, :rank] for k in (m, n, m, n))
    da, db, c = np.cos(a + 1), np.sin(b - 2), general(n, m, "float64")

    def point(t):
        return (a + t * da) @ (b + t * db).T

    x, h = point(0), 1e-5
    _, g, none = vector_gradient(
        lambda x, p: total(Pinv()(x, p) * constant(c)), x, np.linalg.pinv(x, 1e-12)
    )
    slope = (np.linalg.pinv(point(h), 1e-9) - np.linalg.pinv(point(-h), 1e-9)) / (2 * h)
    tangent = da @ b.T + a @ db.T
    np.testing.assert_allclose(np.sum(g * tangent), np.sum(c * slope), rtol=1e-6, atol=1e-12)
    assert (none == 0).all()


def test_shapes():
    x, p = (input_node(TensorType(float64, s)) for s in ((3, 2), (3, 2)))
    with pytest.raises(ShapeError, match="the shape of the transpose"):
        Pinv()(x, p)
