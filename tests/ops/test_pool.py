"""Max pooling: ties, NaN, padding that never wins, windows by loops."""

import math

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Graph, TensorType, bool_, complex64, float64, reachable
from retrograd.ops.leaf import input_node
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.verify.rule_checks import check_result, run
from tests.ops.derive import cotangents, tangents, total, vector_gradient

NAN, INF = math.nan, math.inf
PAIR = (2,), (1,), (1,), (0,), (0,)


def test_windows_by_loops():
    x = np.random.default_rng(0).standard_normal((2, 5, 7))
    (k, s, d, lo, hi) = settings = (2, 3), (2, 1), (1, 2), (1, 0), (0, 2)
    padded = np.full((2, 6, 9), -INF)
    padded[:, 1:, :7] = x
    y = check_result(MaxPool(*settings), [x])
    assert y.shape == (2, 3, 5)
    for n, i, j in np.ndindex(*y.shape):
        own = padded[n, i * s[0] : i * s[0] + k[0], j : j + (k[1] - 1) * d[1] + 1 : d[1]]
        assert y[n, i, j] == own.max()
    assert (lo, hi) == ((1, 0), (0, 2))


def test_the_first_of_equal_maxima_gets_the_gradient():
    _, g = vector_gradient(lambda x: total(MaxPool(*PAIR)(x)), [3.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(g, [1, 1, 1, 0])
    assert check_result(MaxPoolIndex(*PAIR), [np.array([3.0, 3.0, 1.0])]).tolist() == [0, 0]


def test_a_window_of_padding_alone_does_not_move():
    """Its value is the least one, whatever the elements are."""
    x = input_node(TensorType(float64, (2,)))
    y = MaxPool((2,), (1,), (1,), (2,), (0,))(x)
    values, slopes = run(Graph([x], [y, *tangents(y, x)]), [np.array([3.0, 4.0])])
    np.testing.assert_array_equal(values, [-INF, 3, 4])
    np.testing.assert_array_equal(slopes, [0, 1, 1])
    (back,) = cotangents(y, [x])
    np.testing.assert_array_equal(run(Graph([x], [back]), [np.array([3.0, 4.0])])[0], [1, 1])


@pytest.mark.parametrize("low", [0, 1])
def test_only_padding_is_cut_off_the_gradient(low):
    x = input_node(TensorType(float64, (4,)))
    y = MaxPool((2,), (1,), (1,), (low,), (0,))(x)
    assert any(n.op == "slice" for n in reachable(cotangents(y, [x]))) is (low > 0)


def test_a_nan_is_the_maximum_and_the_first_counts():
    x = np.array([1.0, NAN, NAN, 2.0, 5.0])
    np.testing.assert_array_equal(check_result(MaxPool(*PAIR), [x]), [NAN, NAN, NAN, 5])
    assert check_result(MaxPoolIndex(*PAIR), [x]).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(("dtype", "least"), [("float64", -INF), ("int8", -128), ("uint8", 0)])
def test_padding_never_wins(dtype, least):
    """Not even over the least value of the dtype: its place is inside."""
    x = np.array([least], dtype)
    settings = (3,), (1,), (1,), (1,), (1,)
    assert check_result(MaxPool(*settings), [x]).tolist() == [least]
    assert check_result(MaxPoolIndex(*settings), [x]).tolist() == [1]


@pytest.mark.parametrize(
    ("settings", "shape", "match"),
    [
        (((2,), (1,), (1,), (-1,), (0,)), (4,), "padding is not negative"),
        (((5,), (1,), (1,), (0,), (0,)), (4,), "a window of 5 elements does not fit"),
        (((2,), (0,), (1,), (0,), (0,)), (4,), "strides and dilations are at least 1"),
        (((2, 2), (1, 1), (1, 1), (0, 0), (0, 0)), (4,), "it needs 2 axes"),
        (PAIR, (0,), "no elements"),
    ],
)
def test_what_does_not_fit(settings, shape, match):
    with pytest.raises(ShapeError, match=match):
        MaxPool(*settings)(input_node(TensorType(float64, shape)))


@pytest.mark.parametrize("dtype", [bool_, complex64], ids=str)
def test_only_real_numbers_are_compared(dtype):
    with pytest.raises(DTypeError, match="compares real numbers"):
        MaxPool(*PAIR)(input_node(TensorType(dtype, (4,))))
