"""Contracted axes have one size in both operands: nothing that sums products broadcasts them."""

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_arrays import A, B, C, rng, same

F = rg.nn.functional


@pytest.mark.parametrize(
    ("a", "b", "axis", "shape"),
    [
        ((2, 3), (3,), -1, (2,)),
        ((4, 1, 3), (2, 3), -1, (4, 2)),
        ((3, 2), (3, 1), -2, (2,)),
        ((3, 2), (3, 1), 0, (2,)),
        ((2, 3), (3,), 1, (2,)),
        ((0,), (0,), -1, ()),
    ],
)
def test_other_axes_are_broadcast(a, b, axis, shape):
    x, y = (np.arange(float(np.prod(s))).reshape(s) for s in (a, b))
    got = rg.vecdot(x, y, axis=axis)
    assert got.shape == shape
    at = axis if axis < 0 else axis - max(len(a), len(b))
    wanted = np.vecdot(x, y, axis=at)  # type: ignore[call-overload] # stubs know no `axis`
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("a", "b", "axis"),
    [
        ((2, 1), (2, 3), -1),
        ((1,), (0,), -1),
        ((0,), (1,), -1),
        ((3,), (2, 3), -2),
        ((3, 1), (1, 3), 0),
        ((), (3,), -1),
        ((3,), (), -1),
        ((2, 3), (3,), 0),
        ((1,), (3,), 0),
    ],
)
def test_the_contracted_axis_is_not(a, b, axis):
    for f in (rg.vecdot, rg.linalg.vecdot):
        with pytest.raises(rg.ShapeError, match="vecdot"):
            f(rg.ones(a), rg.ones(b), axis=axis)


ONE, THREE = rg.ones((2, 1)), rg.ones((3, 2))


@pytest.mark.parametrize(
    "f",
    [
        lambda: ONE @ THREE,
        lambda: rg.matmul(rg.ones(1), rg.ones(0)),
        lambda: rg.matmul(rg.ones((4, 2, 1)), rg.ones((4, 3, 2))),
        lambda: rg.tensordot(ONE, THREE, axes=1),
        lambda: F.linear(ONE, rg.ones((2, 3))),
        lambda: rg.cross(rg.ones((3, 1)), rg.ones((1, 3)), axis=0),
        lambda: np.dot(ONE, THREE),
        lambda: np.vecdot(ONE, rg.ones((2, 3))),
        lambda: np.inner(ONE, rg.ones((2, 3))),
        lambda: rg.linalg.multi_dot([ONE, THREE]),
        lambda: F.bilinear(ONE, rg.ones((2, 3)), rg.ones((4, 3, 3))),
    ],
)
def test_nothing_that_sums_products_broadcasts_what_it_sums_along(f):
    with pytest.raises(rg.ShapeError):
        f()


@pytest.mark.usefixtures("reference")
def test_products():
    same(rg.matmul(A, C[0].T), A @ C[0].T)
    same(rg.matmul(B, A.T), B @ A.T)
    same(rg.matmul(C, B), C @ B)
    same(rg.matmul(A[0], C.swapaxes(1, 2)), A[0] @ C.swapaxes(1, 2))
    same(rg.matmul(C[:, None], C.swapaxes(1, 2)), C[:, None] @ C.swapaxes(1, 2), 1e-5)
    same(rg.tensordot(C, A, axes=2), np.tensordot(C, A, 2), 1e-5)
    same(rg.tensordot(C, A, axes=((1,), (0,))), np.tensordot(C, A, ((1,), (0,))), 1e-5)
    same(rg.vecdot(A, B), (A * B).sum(-1), 1e-5)
    same(rg.outer(B, A[0]), np.outer(B, A[0]))
    for order in (2, 1, 0, 3, np.inf, -np.inf):
        expected = np.linalg.norm(A, order, axis=1)
        same(rg.vector_norm(A, axis=1, ord=order), expected, 1e-5)
    huge = np.array([3e30, 4e30], np.float32)
    assert rg.vector_norm(huge).item() == pytest.approx(5e30)
    assert rg.vector_norm(rg.zeros(0)).item() == 0


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 3)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
        ("iji->j", [(3, 2, 3)]), ("i,j", [(2,), (3,)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (4, 2)]), ("ihd,jhd->hij", [(3, 2, 4), (5, 2, 4)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]), ("ab,b,cb->ac", [(2, 3), (3,), (4, 3)]),
        ("...ij,...kj->...ik", [(2, 1, 3, 4), (5, 2, 4)]), ("...,...", [(2, 1), (3,)]),
        ("bij,bjk->bik", [(1, 2, 3), (4, 3, 2)]), ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("ij,ij,ij->j", [(1, 3), (2, 1), (1, 1)]), ("ii,i->i", [(1, 1), (3,)]),
        ("i,i", [(1,), (0,)]), ("i,i->i", [(0,), (1,)]), ("...i->i...", [(2, 1, 3)]),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("reference")
def test_einsum(subscripts, shapes):
    arrays = [rng.normal(size=s) for s in shapes]
    same(rg.einsum(subscripts, *arrays), np.einsum(subscripts, *arrays), 1e-12)


def test_einsum_of_a_size_of_one_has_the_gradient_of_a_broadcast():
    a, b = rng.normal(size=(1, 2, 3)), rng.normal(size=(4, 3, 1))

    def loss(a, b):
        return (rg.einsum("bij,bjk->bik", a, b) ** 2).sum()

    def spread(a, b):
        return ((rg.broadcast_to(a, (4, 2, 3)) @ b) ** 2).sum()

    for found, expected in zip(
        rg.grad(loss, argnums=(0, 1))(a, b), rg.grad(spread, argnums=(0, 1))(a, b), strict=True
    ):
        same(found, expected, 1e-12)
    with pytest.raises(rg.ShapeError, match="axis 'b' has the sizes 2, 4"):
        rg.einsum("bij,bjk->bik", np.ones((2, 2, 3)), b)
