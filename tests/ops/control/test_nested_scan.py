"""Scans cut into segments: the same results, fewer carries kept."""

from typing import Any

import numpy as np
import pytest

from retrograd.errors import OptionError
from retrograd.ir import Dim, Graph, TensorType, float64
from retrograd.ops.control import Scan
from retrograd.ops.control.nested_scan import MOST, RADIX, UNKNOWN, nested_scan, segments_of
from retrograd.ops.elementwise import tanh
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run

T = TensorType(float64, ())
W, H, X = (input_node(T) for _ in range(3))
BODY = Graph([W, H, X], [tanh(W * H + X), H * X])


def results(length, reverse, segments):
    op = Scan(BODY, 1, 1, length, reverse)
    inputs = [input_node(T), input_node(T), input_node(TensorType(float64, (length,)))]
    xs = np.sin(np.arange(length) + 1.0)
    graph = Graph(inputs, nested_scan(op, inputs, segments))
    return graph, run(graph, [np.array(0.7), np.array(0.1), xs])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 3, 4, 12, 13, 31])
def test_segments_change_nothing(length, reverse):
    plain = results(length, reverse, ())[1]
    for segments in ((4,), (12, 4), (1,)):
        found = results(length, reverse, segments)[1]
        for a, b in zip(found, plain, strict=True):
            np.testing.assert_array_equal(a, b)


def test_outer_steps_are_segments():
    graph, _ = results(31, False, (12, 4))
    loops: Any = [n.prim for n in graph.nodes if n.op == "scan"]
    outer, rest, *_ = loops
    assert (outer.length, outer.recompute) == (2, True)
    inner = next(n.prim for n in outer.body.nodes if n.op == "scan")
    assert (inner.length, inner.recompute) == (3, True)
    assert rest.length in (1, 7)


def test_steps_that_fit_in_a_segment_are_one_loop():
    for length in (2, 4):
        graph, _ = results(length, False, (4,))
        (loop,) = [n.prim for n in graph.nodes if n.op == "scan"]
        assert loop == Scan(BODY, 1, 1, length)
    graph, _ = results(12, False, (4,))  # whole segments are cut from nothing
    assert not {"slice", "concat"} & {n.op for n in graph.nodes}


def test_policies():
    assert segments_of(None, 100, "f") == ()
    assert segments_of(7, 100, "f") == (7,)
    assert segments_of("log", RADIX, "f") == (RADIX,)
    assert segments_of("log", RADIX**3, "f") == (RADIX**2, RADIX)
    for unknown in (None, Dim("N")):
        found = segments_of("log", unknown, "f")
        assert found[-1] == UNKNOWN
        assert found[0] * UNKNOWN >= MOST
    refused: Any = (0, -1, True, 2.5, "all")
    for bad in refused:
        with pytest.raises(OptionError, match='f: checkpoint is a number of steps, or "log"'):
            segments_of(bad, 100, "f")
