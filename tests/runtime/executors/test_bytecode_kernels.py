"""Kinds of operations: what is alike is written once, what needs memory is left out."""

from retrograd.ir import Node, float32, spec
from retrograd.ops.elementwise import add, exp, mul
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.sort import Sort
from retrograd.runtime.executors.bytecode_kernels import Steps
from retrograd.runtime.executors.op_kinds import kind_of


def given(*shape: int) -> Node:
    return input_node(spec(shape, float32))


def test_kinds_are_operations_on_types() -> None:
    x, y, z = given(3), given(3), given(4)
    assert kind_of(add(x, y)) == kind_of(add(y, x)) != kind_of(add(z, z))
    assert kind_of(ReduceSum((0,))(given(2, 2))) != kind_of(ReduceSum((1,))(given(2, 2)))


def test_what_has_memory_of_its_own_is_left_out() -> None:
    """As the words that are sorted."""
    x = given(3)
    nodes = [add(x, x), exp(x), Sort(0)(x), matmul(given(2, 3), given(3, 2))]
    steps = Steps((kind_of(n), n) for n in nodes)
    assert kind_of(nodes[2]) not in steps.of
    assert {kind_of(n) for n in nodes} - steps.of.keys() == {kind_of(nodes[2])}
    assert steps.code is not None
    assert Steps([(kind_of(nodes[2]), nodes[2])]).code is None


def test_operations_on_types_of_one_text_share_a_function() -> None:
    """Loops over as many elements are the same, however these are arranged."""
    a, b, c = given(2, 6), given(12), given(13)
    nodes = [mul(a, a), mul(b, b), mul(c, c)]
    numbers = [Steps((kind_of(n), n) for n in nodes).of[kind_of(n)][0] for n in nodes]
    assert numbers[0] == numbers[1] != numbers[2]


def test_operands_are_named_by_their_numbers() -> None:
    x, y = given(3), given(3)
    node = add(mul(x, x), y)
    steps = Steps([(kind_of(node), node)])
    assert sorted(steps.of[kind_of(node)][1]) == [-1, 0, 1]
