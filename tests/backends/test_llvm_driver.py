"""The function that runs a program's kernels: what it costs to write, and that it runs them all."""

import numpy as np
import pytest

from retrograd import num_threads
from retrograd.autodiff import gradient
from retrograd.backends.kernel import Plan
from retrograd.backends.llvm import LLVMProgram
from retrograd.backends.llvm.alike import Likeness, Unknown
from retrograd.backends.llvm.engine import engine
from retrograd.backends.llvm.module import Module
from retrograd.ir import Dim, Graph, Node, float32, spec
from retrograd.ops.elementwise import div, mul, tanh
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import LogSumExp, ReduceSum
from retrograd.ops.shape import expand
from retrograd.passes import optimize
from tests.backends.agreement import assert_same, sample
from tests.backends.fuzz_graphs import Fuzz


def layers(count: int, rows: int | Dim = 32, width: int = 16) -> Graph:
    """The gradient of that many layers of the same size, each with a softmax of its rows."""
    x, *weights = inputs = [
        input_node(spec((rows, width)), "x"),
        *(input_node(spec((width, width)), f"w{k}") for k in range(count)),
    ]
    y: Node = x
    for w in weights:
        y = tanh(matmul(y, w))
        y = y - expand(LogSumExp((1,))(y), y.shape, (1,))
    loss = ReduceSum((0, 1))(mul(y, y))
    return optimize(gradient(Graph(inputs, [loss])))


def samples(graph: Graph) -> list[np.ndarray]:
    return [sample(x.shape, float32, k) * np.float32(0.2) for k, x in enumerate(graph.inputs)]


def lines(graph: Graph) -> int:
    return Module(Plan(graph), engine().machine).text().count("\n")


@pytest.mark.parametrize("rows", [32, 4096, Dim("N")], ids=["small", "threaded", "symbolic"])
def test_what_is_compiled_does_not_grow_with_equal_layers(rows):
    """They share kernels, and the function that runs these is a table."""
    few, many = layers(40, rows), layers(160, rows)
    assert len(Plan(many).kernels) > 3 * len(Plan(few).kernels)
    assert lines(many) < 1.1 * lines(few)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [2, 2048])
def test_many_kernels_are_run_in_order(rows, threads):
    graph = layers(40, rows)
    plan = Plan(graph)
    assert len(plan.kernels) > 100
    assert plan.threaded == (rows > 2)
    arrays = samples(graph)
    with num_threads(threads):
        assert_same(graph, arrays, 1000, scale=1.0)


def test_threads_keep_their_rows_of_local_buffers_apart():
    """What only a band uses exists once for each thread, in its own copy of the block."""
    graph = layers(3, 4096, 64)
    plan = Plan(graph)
    assert any(len(band.local) > 1 for band in plan.bands)
    arrays = samples(graph)
    program = LLVMProgram(graph)
    results = []
    for threads in (1, 2, 5):
        with num_threads(threads):
            results.append(program(arrays))
    for one, *others in zip(*results, strict=True):
        assert all(np.array_equal(one, other) for other in others)
    assert_same(graph, arrays, 1000, scale=10.0)


@pytest.mark.parametrize("seed", range(30))
def test_kernels_that_are_alike_are_written_alike(monkeypatch, seed):
    """The text of a module is the same whether they are recognised before or after writing."""
    f = Fuzz(seed, symbolic=seed % 3 == 2, rows=seed % 2 == 0)
    graph = f.graph(30)
    texts = []
    for hide in (False, True):
        with monkeypatch.context() as patch:
            if hide:
                patch.setattr(Likeness, "_nest", unknown)
            module = Module(Plan(graph), engine().machine)
            texts.append(module.text())
    assert texts[0] == texts[1]


def unknown(*given):
    raise Unknown


def test_numbers_that_are_equal_are_not_always_alike():
    numbers = [np.float32(v) for v in (0.0, -0.0, 1.0, np.nan)]
    inputs = [input_node(spec((4,)), f"x{k}") for k in range(4)]
    outputs = [
        div(x, expand(constant(v), (4,), (0,))) for x, v in zip(inputs, numbers, strict=True)
    ]
    program = LLVMProgram(Graph(inputs, outputs))
    assert len(program.plan.kernels) == program.functions == 4
    assert_same(program.graph, [sample((4,), float32)] * 4, 8, program)
