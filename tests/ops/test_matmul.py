"""Contractions by `einsum`: any pairing of axes, no products, half precision, errors."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Graph, TensorType, bool_, float32, float64
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral, matmul, sums_along
from retrograd.verify.rule_checks import check_gradient, check_result, placeholders, run

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("op", "a", "b", "formula"),
    [
        (DotGeneral((1,), (0,)), (2, 3), (3, 4), "ik,kj->ij"),
        (DotGeneral((0,), (1,), (2,), (0,)), (3, 4, 2), (2, 3, 5), "kin,nkj->nij"),
        (DotGeneral((2, 0), (1, 2)), (2, 3, 4), (5, 4, 2), "bia,jab->ij"),
        (DotGeneral((), ()), (2,), (3,), "i,j->ij"),
        (DotGeneral((0,), (0,)), (3,), (3,), "k,k->"),
        (DotGeneral((), (), (0,), (0,)), (3,), (3,), "i,i->i"),
    ],
    ids=str,
)
def test_pairings(op, a, b, formula):
    """The gradient too puts contracted axes back in their places."""
    arrays = [RNG.standard_normal(a), RNG.standard_normal(b)]
    np.testing.assert_allclose(check_result(op, arrays), np.einsum(formula, *arrays), rtol=1e-13)
    check_gradient(op, arrays, [0, 1])


@pytest.mark.parametrize("lead", [(), (5,), (2, 4)], ids=str)
def test_stacks_of_matrices(lead):
    a, b = RNG.standard_normal((*lead, 2, 3)), RNG.standard_normal((*lead, 3, 4))
    x, y = placeholders([a, b])
    (found,) = run(Graph([x, y], [matmul(x, y)]), [a, b])
    np.testing.assert_allclose(found, a @ b, rtol=1e-13)


def test_a_sum_of_no_products_is_zero():
    y = check_result(DotGeneral((1,), (0,)), [np.zeros((2, 0)), np.zeros((0, 3))])
    np.testing.assert_array_equal(y, np.zeros((2, 3)))


def test_half_precision_is_summed_in_float32():
    """2048 + 1 is no float16: one after the other, the ones would be lost."""
    a = np.ones((1, 3000), np.float16)
    assert check_result(DotGeneral((1,), (1,)), [a, a]) == np.float16(3000)


def test_integers_wrap():
    a = np.array([[100, 100]], np.int8)
    assert check_result(DotGeneral((1,), (1,)), [a, a]) == np.int64(20000).astype(np.int8)


@pytest.mark.parametrize(
    ("op", "a", "b", "match"),
    [
        (DotGeneral((1,), (0,)), (2, 3), (4, 3), "axis 1 of .* is paired with axis 0"),
        (DotGeneral((2,), (0,)), (2, 3), (3, 4), "distinct and within its 2"),
        (DotGeneral((1, 1), (0, 0)), (2, 3), (3, 4), "distinct and within"),
        (DotGeneral((1,), ()), (2, 3), (3, 4), "come in pairs"),
    ],
)
def test_axes_that_do_not_fit(op, a, b, match):
    with pytest.raises(ShapeError, match=match):
        op(*[input_node(TensorType(float64, s)) for s in (a, b)])


def test_dtypes():
    a, b, c = (input_node(TensorType(d, (2, 2))) for d in (float64, float32, bool_))
    for pair in ((a, b), (c, c)):
        with pytest.raises(DTypeError, match="numbers of one dtype"):
            matmul(*pair)


@pytest.mark.parametrize(
    ("a", "b", "op", "expected"),
    [
        ((5,), (5,), DotGeneral((0,), (0,)), True),
        ((3, 5), (5,), DotGeneral((1,), (0,)), True),  # along rows of a
        ((5, 3), (5,), DotGeneral((0,), (0,)), False),
        ((3, 5), (5, 1), DotGeneral((1,), (0,)), True),  # one column is none
        ((3, 5), (5, 2), DotGeneral((1,), (0,)), False),
    ],
)
def test_which_products_are_added_along_rows(a, b, op, expected):
    node = op(*[input_node(TensorType(float64, s)) for s in (a, b)])
    assert sums_along(node) is expected
