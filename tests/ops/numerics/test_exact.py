"""Which results have no choice of bits."""

import pytest

from retrograd.ir import TensorType, complex64, float16, float32, int32
from retrograd.ops.elementwise import add, exp, floor_div, sqrt
from retrograd.ops.leaf import input_node
from retrograd.ops.numerics.exact import is_determined
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Flip


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        (Flip((0,)), float16, True),  # moves what there is
        (ReduceSum((0,)), int32, True),  # rounds nothing
        (ReduceSum((0,)), float32, False),  # in some order
        (sqrt, float32, True),  # IEEE 754 says how
        (sqrt, complex64, False),
        (exp, float32, False),
        (add, float16, False),  # by way of float32
        (add, float32, True),
        (floor_div, int32, True),
    ],
    ids=str,
)
def test_is_determined(op, dtype, expected):
    x = input_node(TensorType(dtype, (3,)))
    assert is_determined(op(*[x] * op.arity)) is expected
