"""Constants are values, to the bit; counters and sizes are cast from int64."""

import numpy as np
import pytest

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, TensorType, float16, float32, int8, int64
from retrograd.ops.leaf import Constant, Iota, SizeOf, constant
from retrograd.verify.rule_checks import run


def value(node, **sizes):
    return run(Graph([], [node]), [], sizes)[0] if not sizes else node.prim.bind(sizes).reference()


def test_constants_are_private_copies():
    x = np.arange(6.0).reshape(2, 3)
    node = constant(x.T)
    x[0, 0] = 9
    assert value(node).tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(ValueError, match="read-only"):
        node.attrs["value"][0, 0] = 1
    swapped = constant(np.array([1, 2], ">i4"))
    assert swapped.attrs["value"].dtype.isnative
    assert value(swapped).tolist() == [1, 2]


def test_constants_are_equal_by_their_bits():
    def c(value, dtype="float64"):
        return constant(np.array(value, dtype)).prim

    assert c([0.0]) != c([-0.0])
    assert c([np.nan]) == c([np.nan])
    assert hash(c([np.nan])) == hash(c([np.nan]))
    assert c([1]) != c([1], "float32")
    assert c(0.0) != c([0.0])


def test_a_number_fills_a_shape():
    node = Constant(np.array(2.5, np.float32), (2, 3))()
    assert node.type == TensorType(float32, (2, 3))
    np.testing.assert_array_equal(value(node), np.full((2, 3), 2.5))
    with pytest.raises(ShapeError, match=r"of shape \(2,\) declared as \(3,\)"):
        Constant(np.zeros(2), (3,))


def test_iota_counts_along_one_axis():
    assert value(Iota((2, 3), 1, int64)()).tolist() == [[0, 1, 2]] * 2
    assert value(Iota((2, 3), 0, float32)()).tolist() == [[0] * 3, [1] * 3]
    assert value(Iota((130,), 0, int8)())[128] == -128  # cast from int64
    assert value(Iota((3, 0), 1, int64)()).shape == (3, 0)
    with pytest.raises(ShapeError, match="axis outside of its shape"):
        Iota((3,), 1, int64)()


def test_sizes_are_numbers():
    n = Dim("N")
    node = SizeOf(n * n + 1, float16)()
    assert node.type == TensorType(float16, ())
    assert node.prim.dim_names == frozenset({"N"})
    assert value(node, N=3) == 10
    assert value(SizeOf(7, int64)()) == 7
