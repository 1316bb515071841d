"""Running values by loops: zeros, infinities, ties, NaN, and errors that do not add up."""

import math
from fractions import Fraction

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, complex64, float32, float64
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.scan import (
    CumArgMax,
    CumArgMin,
    CumMax,
    CumMin,
    CumProd,
    CumSum,
    LinearScan,
    LogCumSumExp,
)
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import total, vector_gradient

INF, NAN = math.inf, math.nan
KINDS = [CumSum, CumProd, LogCumSumExp, CumMax, CumMin]


@pytest.mark.parametrize("kind", KINDS)
def test_from_the_back_is_from_the_front_of_what_is_turned_round(kind):
    x = np.random.default_rng(0).standard_normal((3, 4))
    expected = np.flip(check_result(kind(1), [np.flip(x, 1).copy()]), 1)
    np.testing.assert_array_equal(check_result(kind(1, True), [x]), expected)
    assert check_result(kind(1), [np.zeros((2, 0))]).shape == (2, 0)


def weighted(op, x):
    """The gradient of `sum_t (t + 1) y[t]`."""
    weights = constant(np.arange(1.0, len(x) + 1).astype(np.asarray(x).dtype))
    return vector_gradient(lambda v: total(op(v) * weights), x)[1]


@pytest.mark.parametrize("x", [[2.0, 3.0, 5.0], [2.0, 0.0, 5.0], [0.0, 0.0, 5.0]])
def test_partials_of_running_products_with_zeros(x):
    expected = [
        sum(
            (t + 1) * math.prod(v for k, v in enumerate(x[: t + 1]) if k != i)
            for t in range(i, len(x))
        )
        for i in range(len(x))
    ]
    np.testing.assert_array_equal(weighted(CumProd(0), x), expected)


def test_the_gradient_of_an_extremum_goes_to_where_it_was_first():
    np.testing.assert_array_equal(weighted(CumMax(0), [1.0, 3.0, 3.0, 2.0]), [1, 9, 0, 0])
    np.testing.assert_array_equal(weighted(CumMin(0, True), [1.0, 3.0, 3.0, 1.0]), [0, 0, 0, 10])
    x = np.array([2.0, NAN, 5.0, NAN])
    np.testing.assert_array_equal(check_result(CumMax(0), [x]), [2, NAN, NAN, NAN])
    assert check_result(CumArgMax(0), [x]).tolist() == [0, 1, 1, 1]
    assert check_result(CumArgMin(0, True), [np.array([1.0, 3.0, 1.0])]).tolist() == [2, 2, 2]


def test_a_recurrence_does_not_add_up_errors():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.9, 1.1, 200), rng.standard_normal(200)
    y, state = check_result(LinearScan(0), [a, b]), Fraction(0)
    for t in range(200):
        state = Fraction(a[t]) * state + Fraction(b[t])
        assert y[t] == pytest.approx(float(state), rel=4e-16)


def test_a_state_of_zero_absorbs_its_factor():
    y = check_result(LinearScan(0), [np.array([NAN, INF, 2.0]), np.array([0.0, 0.0, 1.0])])
    np.testing.assert_array_equal(y, [0, 0, 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_running_sums_do_not_overflow(dtype):
    x = np.array([-INF, -1000.0, 1000.0, 1000.0], dtype)
    y = check_result(LogCumSumExp(0), [x])
    np.testing.assert_allclose(y, [-INF, -1000, 1000, 1000 + math.log(2)], rtol=1e-6)
    np.testing.assert_allclose(weighted(LogCumSumExp(0), x), [0, 2, 5, 2], rtol=1e-6)
    np.testing.assert_array_equal(weighted(LogCumSumExp(0), np.full(2, -INF)), [0, 0])


def test_half_precision_is_summed_in_float32():
    x = np.ones(2050, np.float16)
    assert check_result(CumSum(0), [x])[-1] == np.float16(2050)


@pytest.mark.parametrize(
    ("op", "types", "error", "match"),
    [
        (CumSum(1), [TensorType(float32, (3,))], ShapeError, "within its 1"),
        (CumMax(0), [TensorType(complex64, (3,))], DTypeError, "cummax takes"),
        (LinearScan(0), [TensorType(float64, (3,)), TensorType(float64, (4,))], ShapeError, "one"),
        (LinearScan(0), [TensorType(float64, (3,)), TensorType(float32, (3,))], DTypeError, "one"),
    ],
)
def test_what_is_refused(op, types, error, match):
    with pytest.raises(error, match=match):
        op(*map(input_node, types))
