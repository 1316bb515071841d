"""Scatters where positions repeat: who stays, who shares, products with zeros."""

import math

import numpy as np
import pytest

from retrograd.errors import DTypeError, IndexRangeError
from retrograd.ir import TensorType, bool_, complex64, int64
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import total, vector_gradient

NAN = math.nan
INDEX = np.array([0, 2, -3, 2])  # 0, 2, 0, 2


def value(kind, x, updates, index=INDEX):
    return check_result(kind(0), [np.asarray(x), index, np.asarray(updates)])


def gradients(kind, x, updates):
    """Of `sum_i (i + 1) y[i]`, by x and by the updates."""
    weights, index = constant(np.arange(1.0, len(x) + 1)), constant(INDEX)
    return vector_gradient(lambda a, u: total(kind(0)(a, index, u) * weights), x, updates)[1:]


def test_the_last_update_stays_and_gets_the_gradient():
    assert value(ScatterSet, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]).tolist() == [6, 2, 7]
    by_x, by_u = gradients(ScatterSet, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0])
    np.testing.assert_array_equal(by_x, [0, 2, 0])
    np.testing.assert_array_equal(by_u, [0, 0, 1, 3])


def test_rows_of_updates_stay_as_a_whole():
    y = value(ScatterSet, np.zeros((2, 2)), [[1.0, 2.0], [3.0, 4.0]], np.array([1, 1]))
    assert y.tolist() == [[0, 0], [3, 4]]


@pytest.mark.parametrize(("kind", "sign"), [(ScatterMax, 1), (ScatterMin, -1)])
def test_equal_extrema_share_the_gradient(kind, sign):
    x, u = sign * np.array([4.0, 2.0, 3.0]), sign * np.array([4.0, 5.0, 4.0, 1.0])
    assert (sign * value(kind, x, u)).tolist() == [4, 2, 5]
    by_x, by_u = gradients(kind, x, u)
    np.testing.assert_allclose(by_x, [1 / 3, 2, 0])
    np.testing.assert_allclose(by_u, [1 / 3, 3, 1 / 3, 0])
    np.testing.assert_array_equal(value(kind, [1.0, 2.0, 3.0], [NAN, 9.0, 0.0, 9.0])[0], NAN)


@pytest.mark.parametrize("u", [[0.0, 7.0, 4.0, 0.0], [2.0, 7.0, 4.0, 3.0]])
def test_partials_of_products_are_products_of_the_others(u):
    """The first and the third update meet at 0, the others at 2."""
    x = [3.0, 2.0, 5.0]
    products = u[0] * u[2], 1, u[1] * u[3]
    assert value(ScatterMul, x, u).tolist() == np.multiply(x, products).tolist()
    by_x, by_u = gradients(ScatterMul, x, u)
    np.testing.assert_array_equal(by_x, np.multiply([1, 2, 3], products))
    np.testing.assert_array_equal(by_u, [3 * u[2], 15 * u[3], 3 * u[0], 15 * u[1]])


@pytest.mark.parametrize("kind", [ScatterSet, ScatterMax, ScatterMin, ScatterMul])
def test_no_updates_change_nothing_and_none_lie_outside(kind):
    x = np.array([1.0, 2.0])
    assert value(kind, x, np.zeros(0), np.zeros(0, np.int64)).tolist() == [1, 2]
    with pytest.raises(IndexRangeError, match="index 2 on axis 0 of size 2"):
        value(kind, x, [1.0], np.array([2]))


@pytest.mark.parametrize(
    ("kind", "dtype"), [(ScatterMax, complex64), (ScatterMul, complex64), (ScatterMul, bool_)]
)
def test_dtypes(kind, dtype):
    x, u = input_node(TensorType(dtype, (3,))), input_node(TensorType(dtype, (2,)))
    with pytest.raises(DTypeError, match=kind.name):
        kind(0)(x, input_node(TensorType(int64, (2,))), u)
