"""The first value that is not finite: found, told and not blamed on those who hand it on."""

import numpy as np
import pytest

from retrograd.errors import NonFiniteError
from retrograd.ir import Graph, Node, bfloat16, complex64, float32, spec
from retrograd.ops.elementwise import add, div, exp, log, mul, sub
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Permute
from retrograd.runtime.executors.nan_observer import CheckedProgram, check

INF, NAN = np.inf, np.nan


def given(*shape: int, dtype=float32, name: str = "x") -> Node:
    return input_node(spec(shape, dtype), name)


def error(graph: Graph, *arrays: np.ndarray) -> NonFiniteError:
    with pytest.raises(NonFiniteError) as caught:
        CheckedProgram(graph)(arrays)
    return caught.value


def test_the_first_one_and_its_place() -> None:
    x = given(2, 3)
    y = log(x)
    a = np.ones((2, 3), np.float32)
    a[1, 0], a[1, 2] = 0, -1
    found = error(Graph([x], [exp(Permute((1, 0))(add(y, x)))]), a)
    assert (found.node, found.index) == (y, (1, 0))
    text = str(found)
    assert "log gives nan in 1 and -inf in 1 of 6 elements, first -inf at [1, 0]" in text
    assert "operand 0: 0.0 at [1, 0]" in text
    assert "remedy: " in text


def test_what_is_handed_on_is_not_blamed() -> None:
    """An infinity of an operand may be meant; a NaN that is made of it is not."""
    x = given(3)
    infinite = np.array([1, INF, -INF], np.float32)
    (y,) = CheckedProgram(Graph([x], [mul(x, x)]))([infinite])
    np.testing.assert_array_equal(y, [1, INF, INF])
    z = sub(x, x)
    nan = np.array([0, NAN, 0], np.float32)
    check(z, nan, (nan, infinite))  # which had one already
    assert error(Graph([x], [z]), infinite).node is z


def test_data_with_nan_is_told_before_anything_is_computed() -> None:
    x = given(4, name="pixels")
    found = error(Graph([x], [exp(x)]), np.array([0, NAN, 1, NAN], np.float32))
    assert found.node is x
    assert "the data 'pixels' holds NaN in 2 of 4 elements, first at [1]" in str(found)


@pytest.mark.parametrize("dtype", [float32, bfloat16, complex64], ids=str)
def test_dtypes(dtype) -> None:
    x, y = given(2, dtype=dtype), given(2, dtype=dtype, name="y")
    z = div(x, y)
    a, b = np.array([1, 2]).astype(dtype.dtype), np.array([1, 0]).astype(dtype.dtype)
    found = error(Graph([x, y], [z]), a, b)
    assert (found.node, found.index) == (z, (1,))
    assert "division by zero" in str(found)
    np.testing.assert_array_equal(CheckedProgram(Graph([x, y], [z]))([a, a])[0], a / a)


def test_nothing_and_single_numbers() -> None:
    x = given(0)
    assert CheckedProgram(Graph([x], [log(x)]))([np.zeros(0, np.float32)])[0].shape == (0,)
    s = given()
    found = error(Graph([s], [log(s)]), np.array(0, np.float32))
    assert "log gives -inf in its only element" in str(found)
