"""Contracted axes have one size in both operands: nothing that sums products broadcasts them."""

import numpy as np
import pytest

import retrograd as rg

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
        lambda: rg.einsum("ij,jk", ONE, THREE),
        lambda: rg.einsum("i,i", rg.ones(1), rg.ones(0)),
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
