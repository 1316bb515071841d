"""Programs that are interpreted first: when it pays to compile them."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.backend_registry import start_graph
from retrograd.functions.broadcasting import broadcast_to
from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops import elementwise as el
from retrograd.ops.conv import Conv
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceSum
from retrograd.runtime.executors import op_kernels
from retrograd.runtime.executors.tiered import Patience, TieredProgram, compiling_cost
from retrograd.tuning import TUNING


def test_a_program_is_compiled_when_it_returns_often() -> None:
    x = input_node(spec((3,), float32))
    program = start_graph(Graph([x], [el.exp(x) * 0.3 + 0.7]), "llvm")
    assert isinstance(program, TieredProgram)
    array = np.linspace(-1, 1, 3, dtype=np.float32)
    results = []
    for _ in range(TUNING.interpreted_nodes):
        results.append(program([array])[0].tobytes())
        if program.is_compiled:
            break
    assert len(results) > 2
    assert program.is_compiled
    assert len(set(results)) == 1


def test_a_graph_of_many_nodes_is_interpreted_first() -> None:
    y = x = input_node(spec((3,), float32))
    for _ in range(500):
        y = y * 0.999 + x
    program = start_graph(Graph([x], [y]), "llvm")
    assert isinstance(program, TieredProgram)
    array = np.linspace(-1, 1, 3, dtype=np.float32)
    results = {program([array])[0].tobytes()}
    assert not program.is_compiled
    results |= {program([array])[0].tobytes() for _ in range(5)}
    assert program.is_compiled
    assert len(results) == 1


def test_large_work_is_compiled_at_once() -> None:
    x = input_node(spec((1000, 10_000), float32))
    program = start_graph(Graph([x], [el.tanh(x)]), "llvm")
    assert isinstance(program, TieredProgram)
    assert program.is_compiled


def test_huge_graphs_are_run_a_few_times_before_they_are_compiled() -> None:
    y = x = input_node(spec((), float32))
    for _ in range(TUNING.huge_nodes + 100):
        y = y + x
    program = start_graph(Graph([x], [y]), "llvm")
    assert isinstance(program, TieredProgram)
    for _ in range(3):
        assert program([np.full((), 0.5, np.float32)])[0].item() == (TUNING.huge_nodes + 101) / 2
    assert not program.is_compiled


def test_that_of_a_call_is_compiled_when_interpreting_it_has_cost_what_that_does() -> None:
    x = input_node(spec((3,), float32))
    array = np.linspace(-1, 1, 3, dtype=np.float32)
    graph = Graph([x], [el.exp(x) * 0.3 + 0.7])
    assert compiling_cost(graph) == max(TUNING.interpreted_nodes, 3 * TUNING.compiled_node)
    a, w = (input_node(spec((3, 3), float32)) for _ in range(2))
    n = input_node(spec((Dim("n"), 3), float32))
    known, named = (Graph([y, w], [DotGeneral((1,), (0,))(y, w)]) for y in (a, n))
    assert compiling_cost(named) > compiling_cost(known) >= TUNING.compiled_product
    program = TieredProgram(graph, Patience.COMPILING)
    for _ in range(10 * TUNING.interpreted_nodes):
        program.for_now([array])
    assert not program.is_compiled
    expected = program.for_now([array])[0].tobytes()
    assert program([array])[0].tobytes() == expected
    assert program.is_compiled
    assert program.for_now([array])[0].tobytes() == expected


def test_what_is_made_for_some_sizes_counts_where_there_will_be_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(op_kernels, "_PROGRAMS", {})
    x = input_node(spec((Dim("n"), 2, 5, 5), float32))
    w = input_node(spec((2, 2, 3, 3), float32))
    program = TieredProgram(
        Graph([x, w], [Conv((1, 1), (1, 1), (1, 1), (1, 1), (1, 1))(x, w)]), Patience.COMPILING
    )
    kernel = np.ones((2, 2, 3, 3), np.float32)
    for n in range(2, 20):
        program([np.ones((n, 2, 5, 5), np.float32), kernel])
        if program.is_compiled:
            break
    assert program.is_compiled


def test_what_would_store_much_inside_is_compiled_at_once(monkeypatch):
    def outer(n: int) -> Graph:
        x = input_node(spec((n, 1), float32))
        y = input_node(spec((1, n), float32))
        return Graph(
            [x, y], [ReduceSum((0, 1))(el.exp(broadcast_to(x, (n, n)) + broadcast_to(y, (n, n))))]
        )

    monkeypatch.setattr(TUNING, "interpreted_bytes", 4 * 50 * 50)
    assert not TieredProgram(outer(50), Patience.RUNS).is_compiled
    assert TieredProgram(outer(51), Patience.RUNS).is_compiled
    monkeypatch.setattr(TUNING, "interpreted_growth", 51)
    assert not TieredProgram(outer(51), Patience.RUNS).is_compiled
