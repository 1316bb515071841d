"""One of two graphs runs: the one that is chosen, in derivatives too."""

import numpy as np
import pytest

from retrograd.autodiff import batched
from retrograd.errors import DTypeError, LinAlgError, ShapeError
from retrograd.ir import Graph, TensorType, bool_, float64, full
from retrograd.ops.control.cond import Cond
from retrograd.ops.elementwise import log, sin
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import Cholesky
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents, tangents

T, C = TensorType(float64, ()), TensorType(bool_, ())
TRUE, FALSE = np.array(True), np.array(False)


def graph(f, type=T):
    x = input_node(type)
    return Graph([x], [f(x)])


def test_the_other_graph_does_not_run():
    t = TensorType(float64, (1, 1))
    op = Cond(graph(Cholesky(), t), graph(lambda x: x + x, t))
    c, x = input_node(C), input_node(t)
    program, bad = Graph([c, x], items(op(c, x))), np.array([[-1.0]])
    assert run(program, [FALSE, bad])[0] == [[-2]]
    with pytest.raises(LinAlgError, match="not positive definite"):
        run(program, [TRUE, bad])


def test_the_gradient_is_of_what_was_chosen():
    """log has no finite slope at 0; where sin is chosen nothing of it shows."""
    c, x = input_node(C), input_node(T)
    (y,) = items(Cond(graph(log), graph(sin))(c, x))
    (g,) = cotangents(y, [x])
    (h,) = cotangents(g, [x])
    program = Graph([c, x], [g, h])
    assert run(program, [FALSE, np.array(0.0)]) == [1, 0]
    assert run(program, [TRUE, np.array(0.5)]) == [2, -4]


def test_where_only_one_graph_depends_on_an_operand_the_other_gives_zero():
    c, x = input_node(C), input_node(T)
    (y,) = items(Cond(graph(lambda x: x * x), graph(lambda x: full(3, T)))(c, x))
    (g,) = cotangents(y, [x])
    assert run(Graph([c, x], [g]), [TRUE, np.array(3.0)]) == [6]
    assert run(Graph([c, x], [g]), [FALSE, np.array(3.0)]) == [0]


def test_what_neither_graph_depends_on_has_no_derivative():
    def two(f):
        x, y = input_node(T), input_node(T)
        return Graph([x, y], [f(x), full(2, T)])

    op, nodes = Cond(two(sin), two(log)), [input_node(t) for t in (C, T, T)]
    first, second = items(op(*nodes))
    assert [g is None for g in cotangents(first, nodes[1:])] == [False, True]
    assert tangents(second, nodes[1]) == tangents(first, nodes[2]) == [None]
    y = first.inputs[0]
    assert list(op.vjp([None, full(1, T)], y, *nodes)) == [None, None, None]
    assert list(op.jvp([None, None, full(1, T)], y, *nodes)) == [None, None]


def test_conditions_of_a_batch_choose_for_each_sample():
    cs, xs = input_node(TensorType(bool_, (2,))), input_node(TensorType(float64, (2,)))
    for either, expected in ((False, [9, -3]), (True, [-3, -3])):
        c, x = input_node(C), input_node(T)
        (y,) = items(Cond(graph(lambda x: x * x), graph(lambda x: -x), either)(c, x))
        ((y, _),) = batched([y], {c: cs, x: xs}, 2)
        found = run(Graph([cs, xs], [y]), [np.array([True, False]), np.array([3.0, 3.0])])
        assert found[0].tolist() == expected  # `either`: one for all


def test_results_that_no_sample_takes_part_in_are_no_stacks():
    def two(f):
        x, y = input_node(T), input_node(T)
        return Graph([x, y], [f(x), y, f(full(2, T))])

    nodes = [input_node(t) for t in (C, T, T)]
    ys = items(Cond(two(sin), two(log))(*nodes))
    found = batched(ys, {nodes[1]: input_node(TensorType(float64, (4,)))}, 4)
    assert [(y.shape, is_stack) for y, is_stack in found] == [
        ((4,), True),
        ((), False),
        ((), False),
    ]


@pytest.mark.parametrize(
    ("types", "other", "error", "match"),
    [
        ([T, T], graph(sin), DTypeError, "a condition of type"),
        ([TensorType(bool_, (2,)), T], graph(sin), ShapeError, "a condition of type"),
        ([C], graph(sin), ShapeError, "the operands should be"),
        ([C, T], graph(lambda x: x > 0), ShapeError, "the results of the second graph should be"),
    ],
)
def test_what_does_not_fit(types, other, error, match):
    with pytest.raises(error, match=match):
        Cond(graph(sin), other)(*map(input_node, types))
