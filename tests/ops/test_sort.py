"""The order of numbers: NaN at the end, both zeros equal, what is equal keeps its order."""

import math

import ml_dtypes
import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, complex64, float32, float64
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.sort import MOST, ArgSort, SearchSorted, Sort
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import total, vector_gradient

INF, NAN = math.inf, math.nan
X = np.array([0.0, NAN, 3.0, -0.0, -INF, 3.0, NAN])


def test_nan_is_last_in_both_directions_and_equals_keep_their_order():
    assert check_result(ArgSort(0), [X]).tolist() == [4, 0, 3, 2, 5, 1, 6]
    assert check_result(ArgSort(0, True), [X]).tolist() == [2, 5, 0, 3, 4, 1, 6]
    assert np.signbit(check_result(Sort(0), [X])[:3]).tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float16", ml_dtypes.bfloat16])
def test_descending_at_the_ends_of_a_dtype(dtype):
    """Negating the least integer would wrap."""
    x = np.array([0, 127, -128, 1], np.int8).view(np.uint8 if dtype == "uint8" else np.int8)
    x = x.astype(dtype)
    order = check_result(ArgSort(0, True), [x]).tolist()
    assert order == sorted(range(4), key=lambda i: (-float(x[i]), i))


def test_the_first_places_only():
    assert check_result(ArgSort(0, True, 2), [X]).tolist() == [2, 5]
    assert check_result(ArgSort(0, False, 0), [X]).tolist() == []
    with pytest.raises(ShapeError, match="8 places are not among the 7"):
        check_result(ArgSort(0, False, 8), [X])
    with pytest.raises(ShapeError, match="more elements than are numbered"):
        ArgSort(0)(input_node(TensorType(float32, (MOST,))))


def test_the_gradient_goes_back_to_where_an_element_was():
    weights = constant(np.array([1.0, 2.0, 3.0, 4.0]))
    x = [3.0, 1.0, 3.0, 2.0]
    _, g = vector_gradient(lambda v: total(Sort(0)(v) * weights), x)
    np.testing.assert_array_equal(g, [3, 1, 4, 2])
    _, g = vector_gradient(lambda v: total(Sort(0, True)(v) * weights), x)
    np.testing.assert_array_equal(g, [1, 4, 2, 3])


@pytest.mark.parametrize("right", [False, True])
def test_searching(right):
    row, values = np.array([-1.0, 0.0, 0.0, 2.0, NAN]), np.array([-2.0, 0.0, 1.0, INF, NAN])
    found = check_result(SearchSorted(right), [row, values])
    numbers = [sum(r <= v if right else r < v for r in row[:4]) for v in values[:4]]
    assert found[:4].tolist() == numbers
    assert found[4] == (5 if right else 4)
    assert check_result(SearchSorted(right), [np.zeros(0), values]).tolist() == [0] * 5


def test_rows_of_their_own():
    rows, values = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.5], [1.5]])
    assert check_result(SearchSorted(shared=1), [rows, values]).tolist() == [[1], [0]]
    with pytest.raises(ShapeError, match="the shared axes differ"):
        check_result(SearchSorted(shared=1), [rows, values[:1]])
    with pytest.raises(ShapeError, match="0 shared axes and one to search along"):
        check_result(SearchSorted(), [rows, values])


def test_dtypes():
    z, x, y = (input_node(TensorType(d, (2,))) for d in (complex64, float32, float64))
    with pytest.raises(DTypeError, match="sort compares real numbers"):
        Sort(0)(z)
    with pytest.raises(DTypeError, match="one dtype"):
        SearchSorted()(x, y)
