"""The registry of lowerings: an op that is declared later is lowered by the rule given for it."""

import numpy as np
import pytest

from retrograd.ir import Graph, Op, spec
from retrograd.ops import elementwise as e
from retrograd.ops.leaf import input_node
from retrograd.passes.lowering.legalize import legalize
from retrograd.passes.lowering.rules import lowers
from retrograd.runtime.executors.reference import ReferenceProgram


class Cube(Op):
    name = "cube_of_a_test"
    arity = 1

    def infer(self, *types):
        return types[0]

    def reference(self, *arrays):
        return arrays[0] ** 3


@lowers(Cube)
def cube(node, inputs, known):
    (x,) = inputs
    return x * x * x


def test_a_rule_is_found_for_an_op_and_applied_to_its_new_inputs():
    x = input_node(spec((3,)), "x")
    graph = Graph([x], [e.exp(Cube()(Cube()(x))), e.sin(x)])
    result = legalize(graph)
    assert sorted(n.op for n in result.body) == ["exp", *["mul"] * 4, "sin"]
    assert result.outputs[1] is graph.outputs[1]
    assert {n.origin.op for n in result.body if n.op == "mul"} == {"cube_of_a_test"}
    arrays = [np.array([1, -2, 0.5], np.float32)]
    for a, b in zip(ReferenceProgram(graph)(arrays), ReferenceProgram(result)(arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_ops_without_a_rule_stay():
    x = input_node(spec((3,)), "x")
    graph = Graph([x], [e.exp(x) + e.sin(x)])
    assert legalize(graph) is graph


def test_an_op_has_one_rule():
    with pytest.raises(ValueError, match="a rule for 'cube_of_a_test' already"):
        lowers(Cube)(cube)
