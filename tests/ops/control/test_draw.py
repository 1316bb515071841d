"""Samples as one operation: the bits of what they stand for, wherever that is computed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, TensorType, float64, reachable, uint32
from retrograd.ops.control import Draw
from retrograd.ops.leaf import input_node
from retrograd.ops.random.sampling import FORMULAS
from retrograd.passes.after_autodiff import settled, written
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.runtime.executors.tiered import TieredProgram

KEY = np.array([7, 11], np.uint32)
SHAPES = ((), (0,), (5,), (2, 3))
SETTINGS = {"truncated_normal": ((-0.5, 2.0), (3.0, 34.0))}
# Around the limits between methods, and out of range.
ODD = {
    "poisson": (0.0, 9.99, 10.0, 1e4, -1.0, math.nan),
    "gamma": (1e-3, 1.0, 300.0, 0.0, -1.0, math.nan, math.inf),
    "log_gamma": (1e-3, 1.0, 300.0, 0.0, -1.0, math.nan, math.inf),
    "geometric": (1e-5, 0.999, 1.0, 0.0, 2.0, math.nan),
    "von_mises": (0.0, 1e-3, 1e5, -1.0, math.nan),
    "beta": (1e-3, 1.0, 50.0, -1.0, math.nan),
    "binomial": (0.0, 0.3, 1.0, 50.0, 2000.0, -1.0, math.nan),
}


def cases(law):
    """Graphs of a draw, with arrays for their inputs."""
    formula, rng = FORMULAS[law], np.random.default_rng(3)
    for settings in SETTINGS.get(law, ((),)):
        for shape in SHAPES:
            given = [rng.uniform(0.1, 0.9, shape) for _ in range(formula.parameters)]
            yield graph_of(Draw(law, shape, settings)), [KEY, *given]
    if law in ODD:
        odd = np.array(ODD[law])
        more = [np.resize([0.3, 0.999, 1.0, 1.5], odd.shape)] * (formula.parameters - 1)
        yield graph_of(Draw(law, odd.shape)), [KEY, odd, *more]


def graph_of(op):
    types = [TensorType(uint32, (2,))]
    types += [TensorType(float64, op.shape)] * op.formula.parameters
    inputs = [input_node(t) for t in types]
    return Graph(inputs, [op(*inputs)])


@pytest.mark.parametrize("law", FORMULAS)
@pytest.mark.sample(4)
def test_bits_are_those_of_what_is_written_out(law):
    for graph, arrays in cases(law):
        expected = ReferenceProgram(written(graph))(arrays)[0].tobytes()
        assert not any(n.op == "draw" for n in written(graph).nodes)
        for make in (ReferenceProgram, OpByOpExecutor):
            assert make(graph)(arrays)[0].tobytes() == expected


@pytest.mark.parametrize("law", FORMULAS)
@pytest.mark.sample(4)
def test_bits_of_compiled_draws(law):
    *_, (graph, arrays) = cases(law)
    expected = ReferenceProgram(graph)(arrays)[0].tobytes()
    assert Executable(graph)(arrays)[0].tobytes() == expected


def test_a_draw_is_compiled_when_it_has_come_back_often():
    op = Draw("exponential", (3,))
    program = TieredProgram(graph_of(op))
    first = program([KEY])[0].tobytes()
    runs = 0
    while not program.is_compiled:
        assert program([KEY])[0].tobytes() == first
        runs += 1
        assert runs < 200
    assert program([KEY])[0].tobytes() == first
    assert TieredProgram(graph_of(Draw("gamma", (100_000,)))).is_compiled


@pytest.mark.usefixtures("recorded_first")
def test_a_draw_is_one_node_at_a_prompt_and_many_inside_a_function():
    y = rg.random.Generator(0).gamma(rg.tensor([1.0, 2.0]))
    assert [n.op for n in reachable([y.node])].count("draw") == 1
    traced = rg.trace(lambda a: rg.random.Generator(0).gamma(a), rg.spec((2,)))
    assert "draw" not in {n.op for n in traced.nodes}
    assert len(traced.nodes) > 100


def test_settled_graphs_do_not_compute_what_only_gradients_read():
    graph = rg.trace(lambda a: rg.random.Generator(0).dirichlet(a), rg.spec((2,)))
    assert {"logsumexp", "implicit_exp"} <= {n.op for n in graph.nodes}
    ops = {n.op for n in settled(graph).nodes}
    assert not ops & {"logsumexp", "implicit_exp", "implicit_log_gamma"}
