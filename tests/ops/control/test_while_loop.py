"""Loops that end when a condition fails: steps, limits, gradients, samples."""

import numpy as np
import pytest

from retrograd.autodiff import batched
from retrograd.errors import LoopLimitError, ShapeError
from retrograd.ir import Dim, Graph, TensorType, float64, full, reachable
from retrograd.ops.control.while_loop import WhileLoop
from retrograd.ops.elementwise import lt
from retrograd.ops.identity import items
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents, tangents

T = TensorType(float64, ())


def doubling(most=None, segments=()):
    """`x -> c x` while `x < 100`."""
    c, x, d, y = (input_node(T) for _ in range(4))
    return WhileLoop(
        Graph([c, x], [lt(x, full(100, T))]), Graph([d, y], [d * y]), 1, most, segments
    )


def loop(op, c, x):
    inputs = [input_node(T), input_node(T)]
    return run(Graph(inputs, items(op(*inputs))), [np.array(c), np.array(x)])


def test_steps_are_counted():
    assert loop(doubling(), 2.0, 3.0) == [192, 6]
    assert loop(doubling(), 2.0, 200.0) == [200, 0]


def test_limits():
    assert loop(doubling(6), 2.0, 3.0) == [192, 6]
    with pytest.raises(LoopLimitError, match=r"still holds after 5 steps.*raise max_steps"):
        loop(doubling(5), 2.0, 3.0)
    with pytest.raises(LoopLimitError, match="after 50 steps"):
        loop(doubling(50), 1.0, 3.0)


@pytest.mark.parametrize("segments", [(), (2,), (4, 2)])
def test_the_gradient_goes_back_through_as_many_steps(segments):
    """`c^n x` has the gradient `(n c^(n - 1) x, c^n)`, where n is what it was."""
    c, x = input_node(T), input_node(T)
    y, _ = items(doubling(None, segments)(c, x))
    dc, dx = cotangents(y, [c, x])
    (second,) = cotangents(dc, [c])
    (t,) = tangents(y, x)
    program = Graph([c, x], [dc, dx, second, t])
    n = 6
    expected = [n * 2**5 * 3, 2**n, n * (n - 1) * 2**4 * 3, 2**n]
    assert run(program, [np.array(2.0), np.array(3.0)]) == expected
    assert run(program, [np.array(2.0), np.array(300.0)]) == [0, 1, 0, 1]


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_the_number_of_steps_has_a_name_of_its_own(where):
    """Where a size of an operand, or one inside of the body, has the usual one."""
    sizes = Dim("steps")
    t = TensorType(float64, (sizes,)) if where == "outside" else T
    a, b = input_node(t), input_node(t)
    if where == "outside":
        body = Graph([b], [b + b])
        test = Graph([a], [lt(ReduceSum((0,))(a), full(100, T))])
    else:
        inner = Iota((sizes,), 0, float64)()
        body = Graph([b], [b + b + full(0, T) * ReduceSum((0,))(inner)])
        test = Graph([a], [lt(a, full(100, T))])
    x = input_node(t)
    y, _ = items(WhileLoop(test, body, 1)(x))
    (g,) = cotangents(y, [x])
    names = {n.prim.attrs["dim"] for n in reachable([g]) if n.op == "sized"}
    assert names == {"steps2"}


def test_no_cotangent_gives_none():
    op, c, x = doubling(), input_node(T), input_node(T)
    y = items(op(c, x))[0].inputs[0]
    assert list(op.vjp([None, None], y, c, x)) == [None, None]


def test_samples_that_are_done_stay_as_they_are():
    c, x = input_node(T), input_node(T)
    xs = input_node(TensorType(float64, (3,)))
    (y, wide), (steps, _) = batched(items(doubling()(c, x)), {x: xs}, 3)
    assert wide
    found = run(Graph([c, xs], [y, steps]), [np.array(2.0), np.array([3.0, 200.0, 60.0])])
    assert [v.tolist() for v in found] == [[192, 200, 120], [6, 0, 1]]


def test_names_of_sizes_inside_are_left_alone():
    """The number of steps gets a name that nothing inside has."""
    t = TensorType(float64, (Dim("steps"),))
    x, y = input_node(t), input_node(t)
    ten = input_node(TensorType(float64, ()))
    more = input_node(ten.type)
    op = WhileLoop(
        Graph([x, ten], [lt(ten, full(3, T))]), Graph([y, more], [y + y, more + full(1, T)]), 2
    )
    inputs = [input_node(t), input_node(T)]
    first, *_ = items(op(*inputs))
    (g,) = cotangents(first, inputs[:1])
    sized = [n.attrs["dim"] for n in Graph(inputs, [g]).nodes if n.op == "sized"]
    assert sized == ["steps2"]


def test_what_does_not_fit():
    x, y = input_node(T), input_node(T)
    number, same = Graph([x], [x + x]), Graph([y], [y + y])
    with pytest.raises(ShapeError, match="the condition should be"):
        WhileLoop(number, same, 1)(input_node(T))
    test = Graph([x], [lt(x, full(3, T))])
    with pytest.raises(ShapeError, match="carries nothing never ends"):
        WhileLoop(test, same, 0)(input_node(T))
    with pytest.raises(ShapeError, match="the carries after a step should be"):
        WhileLoop(test, Graph([y], [y > 0]), 1)(input_node(T))
