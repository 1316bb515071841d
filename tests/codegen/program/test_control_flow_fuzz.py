"""Random graphs of every op inside of loops and choices: the bits they have outside.

A graph is run once for each sample of a stack of inputs by a scan, with some inputs the same in
every step, and its outputs stacked; by a branch; and with a size that becomes known on the way.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from retrograd.ir import Graph, Node, TensorType, bool_, int64
from retrograd.ops.control import Cond, Scan, Sized
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.passes import optimize
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.tuning import TUNING
from tests.runtime.fuzz_checks import COUNTS, Threaded, gather_threads
from tests.runtime.fuzz_graphs import Fuzz

STEPS = 3


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


def inner_graph(seed: int) -> tuple[Fuzz, Graph]:
    f = Fuzz(seed, rows=seed % 3 == 1)
    graph = f.graph(16)
    outputs = [y for y in graph.outputs if not y.dtype.is_complex]
    real = all(not n.dtype.is_complex for n in graph.nodes)
    return f, Graph(graph.inputs, outputs if real else [])


def in_scan(graph: Graph, r: random.Random) -> tuple[Graph, list[bool]]:
    """The graph in a scan; which of its inputs are gone through."""
    moving = [r.random() < 0.6 for _ in graph.inputs]
    order = sorted(range(len(moving)), key=lambda i: moving[i])
    body = Graph([graph.inputs[i] for i in order], graph.outputs)
    inputs = [
        input_node(x.type.with_shape((STEPS, *x.shape)) if m else x.type)
        for x, m in zip(graph.inputs, moving, strict=True)
    ]
    scan = Scan(body, 0, sum(moving), STEPS, r.random() < 0.5)
    return Graph(inputs, items(scan(*[inputs[i] for i in order]))), moving


def stacks(f: Fuzz, moving: list[bool]) -> tuple[list[Array], list[list[Array]]]:
    """Arguments of the scan, and of each step by itself."""
    steps = [f.arrays({}, seed) for seed in range(STEPS)]
    given = [np.stack([s[i] for s in steps]) if m else steps[0][i] for i, m in enumerate(moving)]
    each = [[s[i] if m else steps[0][i] for i, m in enumerate(moving)] for s in steps]
    return given, each


def equal(found: list[Array], expected: list[Array], seed: int) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 20, 10))
@pytest.mark.sample(1)
def test_in_a_scan(start):
    for seed in range(start, start + 10):
        f, graph = inner_graph(seed)
        if not graph.outputs:
            continue
        outer, moving = in_scan(graph, random.Random(seed))
        given, each = stacks(f, moving)
        plain = Executable(graph)
        steps = [plain(arrays) for arrays in each]
        expected = [np.stack(parts) for parts in zip(*steps, strict=True)]
        equal(Executable(outer)(given), expected, seed)
        equal(Executable(optimize(outer))(given), expected, seed)


@pytest.mark.parametrize("start", range(0, 8, 4))
@pytest.mark.sample(1)
@pytest.mark.slow
def test_in_a_scan_that_threads_go_through(start, monkeypatch):
    gather_threads()
    for seed in range(start, start + 4):
        f, graph = inner_graph(seed)
        if not graph.outputs:
            continue
        outer, moving = in_scan(graph, random.Random(seed))
        given, each = stacks(f, moving)
        plain = Executable(graph)
        steps = [plain(arrays) for arrays in each]
        expected = [np.stack(parts) for parts in zip(*steps, strict=True)]
        with monkeypatch.context() as small:
            for name, value in (
                ("parallel_grain_ns", 0), ("group_rows", 1), ("gemm_tile_rows", 1),
                ("tile_grain_ns", 20), ("tile_bytes", 256),
            ):  # fmt: skip
                small.setattr(TUNING, name, value)
            small.setattr(TUNING, "scatter_slice_elements", 1)
            for threads in COUNTS:
                program = Threaded(outer, threads)
                for _ in range(2):
                    equal(program(given), expected, seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.sample(1)
def test_in_a_branch_and_in_a_sized_graph(start):
    for seed in range(start, start + 5):
        f, graph = inner_graph(seed)
        if not graph.outputs:
            continue
        arrays = f.arrays({})
        expected = Executable(graph)(arrays)
        for op, first in (
            (Cond(graph, graph), TensorType(bool_, ())),
            (Sized(graph, "unused"), TensorType(int64, ())),
        ):
            inputs = [input_node(x.type) for x in graph.inputs]
            choice = input_node(first)
            results: list[Node] = items(op(choice, *inputs))
            program = Executable(Graph([choice, *inputs], results))
            for value in (0, 1):
                equal(program([np.asarray(value, first.dtype.dtype), *arrays]), expected, seed)
