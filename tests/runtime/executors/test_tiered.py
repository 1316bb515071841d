"""Programs that are interpreted first: when it pays to compile them."""

from __future__ import annotations

import numpy as np

from retrograd.ir import Graph, float32, spec
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from retrograd.runtime.backends import start_graph
from retrograd.runtime.executors.tiered import TieredProgram
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
