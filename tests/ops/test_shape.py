"""Ops that move elements: edges, errors, and helpers that make nothing where nothing is to do."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, TensorType, float32, float64
from retrograd.ops import shape as s
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import check_gradient, check_result
from tests.ops.derive import total, vector_gradient

X = np.arange(6.0).reshape(2, 3)


def test_helpers_make_nothing_where_nothing_is_to_do():
    x = input_node(TensorType(float64, (2, 3)))
    assert s.expand(x, (2, 3), ()) is x
    assert s.reshape(x, (2, 3)) is x
    assert s.permute(x, (0, 1)) is x
    assert s.flip(x, ()) is x
    assert s.pad(x, (0, 0), (0, 0)) is x
    assert s.pad(x, (0, 0), (0, 0), (0, 1)).shape == (2, 5)
    a, b = s.stack_front(4, [True, False], [x, x])
    assert (a is x, b.shape) == (True, (4, 2, 3))


@pytest.mark.parametrize("perm", [(0,), (2, 0, 1), (1, 3, 0, 2)])
def test_inverse_permutations(perm):
    assert [perm[i] for i in s.inverse(perm)] == sorted(perm)


def test_gaps_between_elements():
    assert [s.gaps(n) for n in range(4)] == [0, 0, 1, 2]
    symbolic = s.gaps(Dim("N"))
    assert [symbolic.evaluate({"N": n}) for n in range(4)] == [0, 0, 1, 2]


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 7, 3), (1, 6, 2), (2, 2, 1), (5, 3, 4)])
def test_slices_are_those_of_numpy_and_their_gradient_fills_the_places(start, stop, step):
    x = np.arange(7.0)
    op = s.Slice((start,), (stop,), (step,))
    np.testing.assert_array_equal(check_result(op, [x]), x[start:stop:step])
    expected = np.zeros(7)
    expected[start:stop:step] = 1
    np.testing.assert_array_equal(vector_gradient(lambda v: total(op(v)), x)[1], expected)


def test_padding_of_nothing_has_nothing_between():
    op, arrays = s.Pad((0,), (5,), (3,)), [np.zeros(0), np.array(3.0)]
    np.testing.assert_array_equal(check_result(op, arrays), [3] * 5)
    check_gradient(op, arrays, [0, 1])


def test_padding_around_and_between():
    value = np.array(9.0)
    y = check_result(s.Pad((1, 0), (0, 2), (1, 2)), [X, value])
    expected = np.full((4, 9), 9.0)
    expected[1::2, 0:7:3] = X
    np.testing.assert_array_equal(y, expected)
    empty = check_result(s.Pad((1,), (1,), (3,)), [np.zeros(0), value])
    np.testing.assert_array_equal(empty, [9, 9])
    _, back, _ = vector_gradient(lambda x, v: total(s.Pad((0,), (0,), (3,))(x, v)), [], value)
    assert back.shape == (0,)

    def f(x, v):
        return total(s.Pad((1, 0), (0, 2), (1, 2))(x, v))

    assert vector_gradient(f, X, value)[2] == 4 * 9 - 6


def test_concat_of_some_that_are_empty():
    y = check_result(s.Concat(1), [X, np.zeros((2, 0)), X[:, :1]])
    np.testing.assert_array_equal(y, np.concatenate([X, X[:, :1]], axis=1))


@pytest.mark.parametrize(
    ("op", "match"),
    [
        (s.Expand((2, 3, 4), (1,)), "without the new axes"),
        (s.Expand((4, 2, 3), (0, 0)), "distinct, ascending"),
        (s.Expand((-1, 2, 3), (0,)), "not negative"),
        (s.Reshape((4, 2)), "it has 6 elements, the result 8"),
        (s.Reshape((-2, -3)), "not negative"),
        (s.Permute((0, 0)), "lists each of 0 to 1 once"),
        (s.Slice((0, 0), (2, 4), (1, 1)), "0:4:1 is not within 0:3"),
        (s.Slice((0, 0), (2, 3), (1, 0)), "steps are positive"),
        (s.Slice((0,), (2,), (1,)), "for each of 2 axes"),
        (s.Flip((0, 0)), "distinct and within its 2"),
        (s.Concat(2), "must lie within its 2"),
    ],
    ids=str,
)
def test_what_does_not_fit(op, match):
    with pytest.raises(ShapeError, match=match):
        op(input_node(TensorType(float64, (2, 3))))


def test_joined_inputs_fit_together():
    x = input_node(TensorType(float64, (2, 3)))
    with pytest.raises(DTypeError, match="one dtype"):
        s.Concat(0)(x, input_node(TensorType(float32, (2, 3))))
    with pytest.raises(ShapeError, match="other axes differ"):
        s.Concat(0)(x, input_node(TensorType(float64, (2, 4))))
    with pytest.raises(ShapeError, match="at least one"):
        s.Concat(0)()
    with pytest.raises(DTypeError, match="a scalar of the dtype"):
        s.Pad((0, 0), (0, 0), (0, 0))(x, input_node(TensorType(float32, ())))
