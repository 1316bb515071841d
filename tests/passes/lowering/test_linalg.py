"""Operations of linear algebra as calls of routines."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, float16, float32, float64, int64, spec
from retrograd.ops.elementwise import add
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import LU, QR, Cholesky, Det, Eigh, Inv, Solve, TriangularSolve
from retrograd.ops.linalg.matrix import Given, MatrixOp
from retrograd.ops.toposort import DagOrder
from retrograd.passes.lowering.complex import real_graph
from retrograd.passes.lowering.legalize import legalize
from retrograd.passes.lowering.libcall import PYTHON, LibCall
from retrograd.passes.pipeline import lowered
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.verify.records import RECORDS


def call_of(op, *shapes, dtype=float64):
    """The graph of an op as it is lowered, and the one call in it."""
    inputs = [input_node(spec(s, dtype)) for s in shapes]
    graph = legalize(Graph(inputs, [op(*inputs)]))
    (call,) = (n for n in graph.body if isinstance(n.prim, LibCall))
    return graph, call


def test_no_operation_on_matrices_is_left_to_python() -> None:
    """Whatever takes matrices, of real or complex numbers, is a routine."""
    for name, record in RECORDS.items():
        for sample in record.samples():
            if not isinstance(sample.op, MatrixOp):
                break
            nodes = sample.nodes()
            graph = lowered(real_graph(Graph(nodes, [sample.op(*nodes)])))
            calls = [n.prim.routine for n in graph.nodes if isinstance(n.prim, LibCall)]
            # What only passes on a value that is computed elsewhere is left out.
            given = isinstance(sample.op, Given) or name in ("det", "logabsdet", "pinv")
            assert calls or given, name
            assert not any(routine.startswith(PYTHON) for routine in calls), name


@pytest.mark.parametrize("upper", [False, True])
def test_a_factorisation_reads_the_triangle_of_the_symmetric_part(upper):
    """LAPACK has columns where there are rows here, and reads one half."""
    graph, call = call_of(Cholesky(upper), (3, 3))
    assert call.prim.routine == ("cholesky_upper" if upper else "cholesky_lower")
    assert (call.prim.sizes, call.prim.batch_rank, call.prim.can_fail) == ((3,), 0, True)
    x = np.arange(9.0).reshape(3, 3)
    (given,) = ReferenceProgram(Graph(graph.inputs, [call.inputs[0]]))([x])
    half = (x + x.T) / 2
    np.testing.assert_array_equal(given, np.triu(half) if upper else np.tril(half))


def test_axes_in_front_are_a_batch_and_sizes_may_have_names():
    b, n = Dim("B"), Dim("N")
    for op in (Eigh(), QR(), LU()):
        graph, call = call_of(op, (b, 2, n, n))
        assert call.prim.batch_rank == 2
        assert n in call.prim.sizes
        assert graph.outputs[0].type == op.infer(spec((b, 2, n, n), float64))


def test_half_precision_is_computed_in_single():
    graph, call = call_of(Cholesky(), (4, 4), dtype=float16)
    assert call.dtype is float32
    assert graph.outputs[0].dtype is float16
    assert graph.outputs[0].op == "cast"


def test_the_error_of_a_call_is_the_one_of_the_op_of_the_user():
    _, call = call_of(Cholesky(), (2, 3, 3))
    assert call.prim.target.op == "cholesky"
    text = str(call.prim.target.prim.refusal(1, (2,), 3))
    assert "matrix [1]" in text


def test_what_gives_a_derivative_costs_nothing():
    x, d = input_node(spec((3, 3), float64)), input_node(spec((), float64))
    graph = Graph([x, d], [add(Det()(x, d), d)])
    result = legalize(graph)
    assert [n.op for n in result.body] == ["add"]
    assert result.outputs[0].inputs == (d, d)


@pytest.mark.parametrize("op", [Solve(), Inv(), TriangularSolve()], ids=str)
def test_systems_are_one_call_for_all_columns(op):
    shapes = {"solve": [(3, 3), (5, 3), (3, 5)], "inv": [(3, 3), (5, 3)]}
    graph, call = call_of(op, *shapes.get(op.name, [(3, 3), (3, 5)]))
    assert call.prim.target.op == op.name
    assert graph.outputs[0].shape == ((3, 3) if op.name == "inv" else (3, 5))


def test_the_order_of_the_nodes_of_a_graph_is_a_call_too():
    _, call = call_of(DagOrder(4), (2, 6), dtype=int64)
    assert call.prim.can_fail
    assert not call.prim.routine.startswith(PYTHON)
