import math

import numpy as np
import pytest

import retrograd.ops.elementwise as e
from retrograd.ir import (
    Dim,
    Graph,
    TensorType,
    complex64,
    float16,
    float32,
    full,
    int32,
    int64,
    spec,
    uint32,
)
from retrograd.ops.index import Gather
from retrograd.ops.leaf import Constant, Iota, constant, input_node
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape
from retrograd.passes import fold, optimize
from retrograd.passes.constant_folding import LARGEST_RESULT, is_determined
from tests.passes.agreement import assert_kept

N = Dim("N")


def only(graph):
    (node,) = graph.body
    assert node.op == "constant"
    return node


def test_arrays_are_computed():
    a, b = constant(np.arange(4.0)), constant(np.array([1.0, np.nan, np.inf, -0.0]))
    g = assert_kept(fold, Graph([], [e.sqrt(a) * b]), [])
    assert only(g).attrs["value"].shape == (4,)


def test_splats_stay_splats_of_any_size():
    type = spec((N, 10**9))
    y = Expand((N, 10**9, 7), (2,))(e.sqrt(full(3, type)) + 2)
    node = only(fold(Graph([], [y])))
    assert node.attrs["value"] == np.sqrt(np.float32(3)) + 2
    assert node.type == y.type


@pytest.mark.parametrize(
    "move",
    [
        lambda k: Permute((1, 0))(k),
        lambda k: Reshape((6 * N,))(k),
        lambda k: Concat(1)(k, k),
        lambda k: Pad((1, 0), (0, 2), (0, 0))(k, full(-0.0, spec(()))),
    ],
)
def test_moving_equal_values_changes_nothing(move):
    k = full(-0.0, spec((N, 6)))
    node = only(fold(Graph([], [move(k)])))
    assert math.copysign(1, node.attrs["value"]) == -1


def test_another_zero_is_another_value():
    k = full(-0.0, spec((N,)))
    y = Pad((1,), (1,), (0,))(k, full(0.0, spec(())))
    g = Graph([], [y])
    assert fold(g) is g


def test_equal_elements_become_a_splat():
    y = constant(np.full((3, 4), 2.5, np.float32)) + constant(np.zeros((3, 4), np.float32))
    assert only(fold(Graph([], [y]))).attrs["value"].ndim == 0
    mixed = constant(np.array([0.0, -0.0]))
    assert fold(Graph([], [mixed])).outputs == (mixed,)


def test_large_results_are_left_to_the_program():
    row = constant(np.arange(LARGEST_RESULT + 1.0))
    g = Graph([], [e.sqrt(row)])
    assert fold(g) is g
    total = Graph([], [ReduceSum((0,))(constant(np.arange(LARGEST_RESULT + 1)))])
    assert only(fold(total)).attrs["value"] == LARGEST_RESULT * (LARGEST_RESULT + 1) // 2


@pytest.mark.parametrize("f", [e.exp, e.log, e.tanh, lambda x: e.pow(x, x), ReduceSum((0,))])
def test_what_has_a_choice_of_bits_is_left_to_the_program(f):
    """NumPy's logarithm is not the compiler's to the last bit, nor the order of its sums."""
    g = Graph([], [f(constant(np.arange(5.0)))])
    assert fold(g) is g
    assert only(fold(Graph([], [e.abs(constant(np.arange(5)))])))


def test_leaves_that_describe_arrays_stay():
    y = e.eq(Iota((3, 3), 0, int64)(), Iota((3, 3), 1, int64)())
    g = Graph([], [y])
    assert fold(g) is g


def test_repetition_is_not_stored():
    g = Graph([], [Expand((5, 3), (0,))(constant(np.arange(3.0)))])
    assert fold(g) is g


def test_random_bits_of_a_known_key():
    key = constant(np.array([1, 2], np.uint32))
    assert key.dtype is uint32
    assert_kept(fold, Graph([], [RandomBits((5,))(key)]), [])
    g = Graph([], [RandomBits((10**12,))(key)])
    assert fold(g) is g


def test_what_raises_is_left_to_raise_when_it_runs():
    y = Gather(0)(constant(np.arange(3.0)), constant(np.array([7, 8])))
    g = Graph([], [y])
    assert fold(g) is g


def test_no_input_is_looked_behind():
    two = full(2, spec(()))
    y = two + full(1, spec(()))
    g = Graph([two], [y])
    for run in (fold, optimize):
        assert_kept(run, g, [np.asarray(np.float32(5))])
        assert [n.op for n in run(g).body] == ["constant", "add"]


def test_name_and_scope_are_kept():
    y = (constant(np.float32(1)) + constant(np.float32(2))).renamed("three")
    assert fold(Graph([], [y])).outputs[0].name == "three"


def test_part_of_a_graph():
    x = input_node(spec((3,)))
    g = fold(Graph([x], [x * (full(2, x.type) + 3)]))
    assert [n.op for n in g.body] == ["constant", "mul"]
    assert isinstance(g.body[0].prim, Constant)


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        (Flip((0,)), float16, True),  # moves what there is
        (ReduceSum((0,)), int32, True),  # rounds nothing
        (ReduceSum((0,)), float32, False),  # in some order
        (e.sqrt, float32, True),  # IEEE 754 says how
        (e.sqrt, complex64, False),
        (e.exp, float32, False),
        (e.add, float16, False),  # by way of float32
        (e.add, float32, True),
        (e.floor_div, int32, True),
    ],
    ids=str,
)
def test_is_determined(op, dtype, expected):
    x = input_node(TensorType(dtype, (3,)))
    assert is_determined(op(*[x] * op.arity)) is expected
