"""A size that becomes known while the program runs."""

import numpy as np
import pytest

from retrograd.autodiff import batched
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, TensorType, float64, int64
from retrograd.ops.control.dynamic_size import Sized
from retrograd.ops.identity import items
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents

T, SIZE, N = TensorType(float64, ()), TensorType(int64, ()), Dim("n")


def powers():
    """`x (0 + 1 + ... + (n - 1)) x`"""
    x = input_node(T)
    return Graph([x], [ReduceSum((0,))(Iota((N,), 0, float64)() * expand(x * x, (N,), (0,)))])


def test_sizes_are_values():
    n, x = input_node(SIZE), input_node(T)
    (y,) = items(Sized(powers(), "n")(n, x))
    (g,) = cotangents(y, [x])
    program = Graph([n, x], [y, g])
    assert not program.dim_names
    for size in (0, 1, 5):
        total = size * (size - 1) / 2
        found = run(program, [np.array(size), np.array(3.0)])
        assert found == [9 * total, 6 * total]


def test_samples_of_sizes_of_their_own():
    n, x = input_node(SIZE), input_node(T)
    (y,) = items(Sized(powers(), "n")(n, x))
    sizes = input_node(TensorType(int64, (3,)))
    ((stack, _),) = batched([y], {n: sizes}, 3)
    found = run(Graph([sizes, x], [stack]), [np.array([4, 0, 2]), np.array(2.0)])
    assert found[0].tolist() == [24, 0, 4]


def test_sizes_stay_inside():
    x = input_node(T)
    open_end = Graph([x], [expand(x, (N,), (0,))])
    with pytest.raises(ShapeError, match="the size n, which is known inside only"):
        Sized(open_end, "n")(input_node(SIZE), input_node(T))
    with pytest.raises(ShapeError, match="takes a size of type"):
        Sized(powers(), "n")(input_node(T), input_node(T))
    with pytest.raises(ShapeError, match="the operands should be"):
        Sized(powers(), "n")(input_node(SIZE))
