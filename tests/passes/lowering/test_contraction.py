"""Operands of a large contraction that no routine could read are copied."""

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, bfloat16, float64, spec
from retrograd.ops.elementwise import exp
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Permute
from retrograd.passes.lowering.contraction import Materialize, in_memory
from retrograd.passes.lowering.legalize import legalize
from retrograd.runtime.executors.reference import ReferenceProgram

# The sum over two axes, the inner one first: not evenly spaced in memory.
ACROSS = DotGeneral((2, 1), (1, 0))


def lowered(op, *shapes, light=False, dtype=float64):
    x, w = (input_node(spec(s, dtype)) for s in shapes)
    graph = Graph([x, w], [op(x, w)])
    result = legalize(graph, light)
    return graph, result, [n.op for n in result.body]


@pytest.mark.parametrize("columns", [64, 1])
def test_operands_that_are_not_evenly_spaced_are_copied(columns):
    graph, result, ops = lowered(ACROSS, (40, 16, 8), (16, 8, columns))
    assert ops.count("store") == (2 if columns == 64 else 0)  # a vector: nothing is read twice
    assert ops.count("dot_general") == 1
    if columns == 64:
        (dot,) = (n for n in result.body if n.op == "dot_general")
        assert [x.shape for x in dot.inputs] == [(40, 8, 16), (8, 16, 64)]  # in the order of sums
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=x.shape) for x in graph.inputs]
    for a, b in zip(ReferenceProgram(graph)(arrays), ReferenceProgram(result)(arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12)
        np.testing.assert_allclose(a, np.einsum("iab,abk->ik", *arrays), rtol=1e-10)


@pytest.mark.parametrize("side", [0, 1])
def test_an_operand_that_can_be_read_is_not_copied(side):
    """As those of the gradient of a weight: the cotangent as it is, the input in other order."""
    across, plain = (16, 8, 64), (8, 16, 96)
    op = DotGeneral((1, 0), (0, 1)) if side == 0 else DotGeneral((0, 1), (1, 0))
    graph, result, ops = lowered(op, *((across, plain) if side == 0 else (plain, across)))
    assert ops.count("store") == 1
    (dot,) = (n for n in result.body if n.op == "dot_general")
    assert dot.inputs[1 - side] is graph.inputs[1 - side]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=x.shape) for x in graph.inputs]
    for a, b in zip(ReferenceProgram(graph)(arrays), ReferenceProgram(result)(arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10)
        expected = np.tensordot(arrays[0], arrays[1], (op.a_contract, op.b_contract))
        np.testing.assert_allclose(a, expected, rtol=1e-10)


def test_batches_and_named_sizes():
    op = DotGeneral((3, 2), (2, 1), (0,), (0,))
    _, result, ops = lowered(op, (3, 40, Dim("A"), 8), (3, Dim("A"), 8, 64))
    assert ops.count("store") == 2
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((3, 40, 5, 8), (3, 5, 8, 64))]
    (found,) = ReferenceProgram(result)(arrays)
    np.testing.assert_allclose(found, np.einsum("niab,nabk->nik", *arrays), rtol=1e-10)


@pytest.mark.parametrize(
    ("op", "shapes", "more"),
    [
        (DotGeneral((1,), (0,)), [(64, 64), (64, 64)], {}),  # can be read as it is
        (DotGeneral((0,), (0,)), [(64, 64), (64, 64)], {}),  # so can its transpose
        (ACROSS, [(4, 16, 8), (16, 8, 4)], {}),  # small
        (ACROSS, [(40, 16, 8), (16, 8, 64)], {"dtype": bfloat16}),  # for which there is no routine
        (ACROSS, [(40, 16, 8), (16, 8, 64)], {"light": True}),  # not planned for long
    ],
)
def test_other_contractions_are_left_alone(op, shapes, more):
    graph, result, _ = lowered(op, *shapes, **more)
    assert result is graph


def test_views_are_not_in_memory():
    x = input_node(spec((2, 3)))
    assert in_memory(x)
    assert in_memory(exp(x))
    assert in_memory(Materialize()(Permute((1, 0))(x)))
    assert not in_memory(Permute((1, 0))(x))
