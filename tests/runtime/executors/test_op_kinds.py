"""Which operations are alike."""

from retrograd.ir import TensorType, float32, float64
from retrograd.ops.elementwise import add, mul
from retrograd.ops.leaf import input_node
from retrograd.runtime.executors.op_kinds import kind_of


def inputs(dtype, *shape):
    return [input_node(TensorType(dtype, shape)) for _ in range(2)]


def test_operations_on_operands_of_the_same_types_are_alike():
    one, other = (kind_of(add(*inputs(float32, 3))) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)


def test_other_operations_dtypes_and_shapes_are_not():
    kinds = {
        kind_of(f(*inputs(dtype, *shape)))
        for f in (add, mul)
        for dtype in (float32, float64)
        for shape in ((3,), (3, 1), (4,))
    }
    assert len(kinds) == 12
