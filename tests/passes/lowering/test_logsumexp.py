"""Logarithms of sums of exponentials, scaled by the largest term."""

import numpy as np
import pytest
from scipy import special

from retrograd.ir import Graph, float16, float32, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import LogSumExp
from retrograd.ops.scan import LogCumSumExp
from retrograd.passes.lowering.legalize import in_parts, legalize
from retrograd.runtime.executors.reference import ReferenceProgram

INF, NAN = np.inf, np.nan
ROWS = np.array(
    [[0, 0, 0], [1000, 999, -1000], [-1000, -1001, -1e30], [-INF, -INF, -INF], [INF, 1, -INF],
     [NAN, 1, 2], [-INF, 5, -INF], [INF, NAN, 0]]
)  # fmt: skip


def lowered(op, shape, dtype="float64"):
    x = input_node(spec(shape, dtype))
    return legalize(Graph([x], [op(x)]))


def value(graph, *arrays):
    with np.errstate(all="ignore"):
        return ReferenceProgram(graph)(arrays)[0]


def test_sums_do_not_overflow():
    graph = lowered(LogSumExp((1,)), ROWS.shape)
    assert {"reduce_max", "reduce_sum", "exp", "log"} <= {n.op for n in graph.body}
    assert "logsumexp" not in {n.op for n in graph.body}
    with np.errstate(all="ignore"):
        right = special.logsumexp(ROWS, axis=1)
    np.testing.assert_allclose(value(graph, ROWS), right, rtol=1e-15)


@pytest.mark.parametrize("axes", [(0, 1), (0,)])
def test_the_sum_of_nothing(axes):
    graph = lowered(LogSumExp(axes), (0, 3))
    assert [n.op for n in graph.body] == ["constant"]
    assert (value(graph, np.zeros((0, 3))) == -INF).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(reverse):
    graph = lowered(LogCumSumExp(1, reverse), ROWS.shape)
    assert "logcumsumexp" not in {n.op for n in graph.body}
    x = ROWS[:, ::-1] if reverse else ROWS
    with np.errstate(all="ignore"):
        right = np.logaddexp.accumulate(x, axis=1)
    right = right[:, ::-1] if reverse else right
    np.testing.assert_allclose(value(graph, ROWS), right, rtol=1e-14)


@pytest.mark.parametrize("op", [LogSumExp((0,)), LogCumSumExp(0)], ids=str)
def test_half_precision_is_rounded_once(op):
    x = np.linspace(-3, 9, 50).astype(np.float16)
    graph = lowered(op, x.shape, float16)
    assert {n.dtype for n in graph.body if n.op in ("exp", "log")} == {float32}
    right = np.logaddexp.accumulate(x.astype(np.float64))
    found = value(graph, x)
    expected = right[-1:] if found.ndim == 0 else right
    np.testing.assert_array_equal(found.reshape(-1), expected.astype(np.float16))
    node = input_node(spec(x.shape, float16))
    whole = Graph([node], [op(node)])
    assert in_parts(whole) is whole  # what interprets has no code of its own for the parts
