import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd.ops.elementwise as e
from retrograd.autodiff import gradient
from retrograd.ir import Dim, Graph, full, spec, verify
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Permute
from retrograd.passes import cse, fold, optimize, simplify
from retrograd.passes.rewrite import checked_by
from tests.passes.agreement import assert_kept
from tests.random_graphs import random_arrays, random_graph

SEEDS = st.integers(0, 2**32 - 1)


def checked(graph: Graph) -> Graph:
    """The optimized graph, verified after each walk."""
    with checked_by(lambda name, found: verify(found)):
        return optimize(graph)


@given(SEEDS, st.booleans())
def test_every_pass_keeps_the_meaning_of_random_graphs(seed, symbolic):
    g = random_graph(seed, 40, symbolic)
    for run in (fold, simplify, cse):
        assert_kept(run, g, random_arrays(g, seed))


@given(SEEDS)
def test_all_passes_together_keep_it_too(seed):
    g = random_graph(seed, 60)
    result = assert_kept(checked, g, random_arrays(g, seed))
    assert len(result) <= len(g)


@given(SEEDS)
def test_graphs_cut_at_any_node(seed):
    """Parts of a graph, with inputs that something had computed: nothing looks behind them."""
    whole = random_graph(seed, 40, symbolic=False)
    rng = np.random.default_rng(seed)
    nameless = [node for node in whole.body if not node.name]
    cuts = [nameless[i] for i in rng.permutation(len(nameless))[:4]]
    g = Graph([*whole.inputs, *cuts], whole.outputs)
    assert_kept(checked, g, random_arrays(g, seed))


@given(SEEDS)
def test_a_second_time_there_is_nothing_to_do(seed):
    g = optimize(random_graph(seed, 40))
    assert optimize(g) is g


def test_the_gradient_of_adding_one_is_one():
    x = input_node(spec(()), "x")
    g = optimize(gradient(Graph([x], [x + 1])))
    assert [n.op for n in g.body] == ["constant"]


def test_the_gradient_of_a_square_is_twice_its_root():
    x = input_node(spec(()), "x")
    g = optimize(gradient(Graph([x], [e.pow(x, full(2, x.type))])))
    assert [n.op for n in g.body] == ["constant", "mul"]


def test_the_gradient_of_a_layer_has_no_transposes_and_no_doubles():
    n = Dim("N")
    x, w = input_node(spec((n, 4)), "x"), input_node(spec((4, 3)), "w")
    h = e.relu(matmul(x, w))
    loss = ReduceSum((0, 1))(h * h)
    g = checked(gradient(Graph([x, w], [loss])))
    ops = [node.op for node in g.body]
    assert ops.count("dot_general") == 3
    assert "permute" not in ops
    assert "zmul" not in ops
    assert len(ops) <= 10


def test_outputs_may_repeat_and_be_inputs():
    x = input_node(spec((2, 2)), "x")
    y = Permute((1, 0))(Permute((1, 0))(x))
    g = optimize(Graph([x], [y, x, y]))
    assert g.outputs == (x, x, x)


def test_subclass_and_name_are_kept():
    class Mine(Graph):
        __slots__ = ()

    x = input_node(spec(()))
    cut = e.exp(x)
    for g in (Mine([x], [x * 1], "f"), Mine([cut], [cut * 1], "f"), Mine([x], [x], "f")):
        result = optimize(g)
        assert type(result) is Mine
        assert result.name == "f"


def chain(n):
    x, w = input_node(spec(()), "x"), input_node(spec(()), "w")
    y = x
    for _ in range(n // 2):
        y = e.tanh(y) * w
    return Graph([x, w], [y])


@pytest.mark.parametrize("build", [chain, lambda n: gradient(chain(n // 5))])
@pytest.mark.sample(1)
@pytest.mark.slow
def test_a_chain_of_100_000_nodes(build):
    """Deeper than any recursion limit; benchmarks/long_chain.py measures the time per node."""
    g = build(100_000)
    result = optimize(g)
    text = str(result)
    back = Graph.parse(text)
    assert back == result
    assert result.stats().nodes == len(result)
    verify(back)


@pytest.mark.slow
def test_long_chains_of_what_simplifies_away():
    x = input_node(spec((2, 3)), "x")
    y = x
    for _ in range(5_000):
        y = e.neg(e.neg(Permute((1, 0))(Permute((1, 0))(y * 1))))
    g = optimize(Graph([x], [y]))
    assert len(g) < 5
