"""The driver of rewriting: what rules are offered, what stays, and what inputs hide."""

from __future__ import annotations

import pytest

from retrograd.ir import Graph, Node, full, spec
from retrograd.ops import elementwise as e
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Reshape, reshape
from retrograd.passes import optimize
from retrograd.passes.rewrite import RuleSet, checked_by, rewrite, sealed


def test_a_rule_that_makes_an_ill_typed_node_is_found():
    """By the check of all tests (`conftest.py`), which looks at every walk."""

    def wrong(node: Node) -> Node:
        return Node(node.prim, node.inputs, spec((4,)), node.scope, node.source, node.origin)

    x = input_node(spec((3,)), "x")
    planted = RuleSet.simplifying("planted", lambda graph: wrong)
    with pytest.raises(AssertionError, match=r"after planted: .*type"):
        rewrite(Graph([x], [e.exp(x)]), planted)


def test_rules_are_offered_nodes_with_their_new_inputs_in_order():
    """Of a table of rules by class the walk takes the node's; what has no rule is kept."""
    x = input_node(spec((3,)), "x")
    graph = Graph([x], [e.sin(reshape(e.cos(x), (1, 3)))])
    doubled = RuleSet.lowering("doubled", {"reshape": lambda n, xs, memo: xs[0] + xs[0]})
    result = rewrite(graph, RuleSet.lowering("nothing", {"permute": lambda n, xs, memo: xs[0]}))
    assert result is graph
    ops = [node.op for node in rewrite(Graph([x], [Reshape((3,))(e.cos(x))]), doubled).body]
    assert ops == ["cos", "add"]


def test_a_check_is_told_of_each_walk_that_changed_something():
    x = input_node(spec(()))
    seen: list[Graph] = []
    with checked_by(lambda name, found: seen.append(found)):
        result = optimize(Graph([x], [e.neg(e.neg(x)) + full(1, x.type) * 2]))
    assert seen
    assert seen[-1] is result
    optimize(Graph([x], [e.neg(e.neg(x))]))
    assert seen[-1] is result


def test_what_a_lowering_makes_comes_from_the_node_and_shares_one_memo():
    def rule(node, inputs, memo):
        if inputs[0] not in memo:
            memo[inputs[0]] = e.exp(inputs[0])
        return memo[inputs[0]] * full(2, node.type)

    x = input_node(spec((3,)), "x")
    graph = Graph([x], [e.sinh(x), e.cosh(x), e.tanh(x)], "f")
    rules = RuleSet.lowering(
        "planted", {"sinh": rule, "tanh": rule}, {"cosh": rule}, chosen=lambda n: n.op != "tanh"
    )
    result = rewrite(graph, rules)
    sinh, cosh, tanh = result.outputs
    assert sinh.inputs[0] is cosh.inputs[0]
    assert [sinh.origin, cosh.origin] == list(graph.outputs[:2])
    assert tanh is graph.outputs[2]
    assert result.name == "f"


def test_of_two_tables_the_later_counts():
    x = input_node(spec(()), "x")
    tables = [{"exp": lambda node, inputs, memo, f=f: f(inputs[0])} for f in (e.sin, e.cos)]
    assert rewrite(Graph([x], [e.exp(x)]), RuleSet.lowering("two", *tables)).outputs[0].op == "cos"


def test_a_rule_cannot_look_behind_an_input():
    """A graph that was cut out of a larger one."""
    x = input_node(spec(()), "x")
    cut = e.neg(x).renamed("cut")
    graph = Graph([cut], [e.neg(cut)])
    seen = []

    def run(inner):
        seen.append((inner.inputs[0].op, inner.inputs[0].name))
        return Graph(inner.inputs, [e.abs(inner.inputs[0])])

    result = sealed(graph, run)
    assert seen == [("input", "cut")]
    assert (result.inputs, result.outputs[0].op) == ((cut,), "abs")
    assert result.outputs[0].inputs == (cut,)
    assert sealed(graph, lambda inner: inner) is graph
