"""What only differentiation reads is left out, and samples are written out."""

import numpy as np

import retrograd as rg
from retrograd.functions.random.continuous import normal
from retrograd.ir import Graph, Provenance, float64, made_by, spec
from retrograd.ops.elementwise import exp
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.leaf import input_node
from retrograd.passes.after_autodiff import settled, written
from retrograd.runtime.executors.reference import ReferenceProgram


def ops(graph):
    return {n.op for n in graph.nodes}


def bits(graph, *arrays):
    return [np.asarray(y).tobytes() for y in ReferenceProgram(graph)(arrays)]


def test_functions_with_rules_become_what_they_compute():
    double = rg.custom_vjp(lambda x: (x * 2, x * 3), lambda x: ((x * 2, x * 3), x), lambda x, g: g)
    graph = rg.trace(lambda x: double(x)[1] + double(x)[0], rg.spec((2,)))
    assert "custom" in ops(graph)
    result = settled(graph)
    assert ops(result) <= {"input", "constant", "mul", "add"}
    x = np.array([1, -2], np.float32)
    assert ReferenceProgram(result)([x])[0].tolist() == [5, -10]


def test_what_gives_a_matrix_s_function_its_derivative_is_not_computed():
    graph = rg.trace(lambda a: rg.linalg.norm(a, "nuc"), rg.spec((3, 3), rg.float64))
    result = settled(graph)
    assert "nuclear_norm" in ops(graph)
    assert "nuclear_norm" not in ops(result)
    a = np.random.default_rng(0).normal(size=(3, 3))
    assert bits(result, a) == bits(graph, a)
    np.testing.assert_allclose(
        ReferenceProgram(result)([a])[0], np.linalg.norm(a, "nuc"), rtol=1e-12
    )


def test_what_is_constant_or_another_to_differentiation_is_what_it_is():
    x = input_node(spec((3,), float64), "x")
    graph = Graph([x], [exp(StopGradient()(Alias()(x))), Alias()(x)])
    result = settled(graph)
    assert [n.op for n in result.body] == ["exp"]
    assert result.outputs[1] is x
    a = np.array([1.0, -2.0, np.nan])
    assert bits(result, a) == bits(graph, a)


def test_samples_are_written_out_with_the_bits_of_the_draw():
    key = input_node(spec((2,), "uint32"), "key")
    with made_by(Provenance("model.dropout")):
        y = normal(key, (5,), float64)
    graph = Graph([key], [y])
    result = written(graph)
    assert "draw" in ops(graph)
    assert "draw" not in ops(result)
    assert result.outputs[0].scope == "model.dropout"
    seed = np.array([1, 2], np.uint32)
    assert bits(result, seed) == bits(graph, seed)


def test_graphs_without_any_of_this_are_given_back():
    graph = rg.trace(lambda x: rg.sin(x), rg.spec((2,)))
    assert settled(graph) is graph
    assert written(graph) is graph
