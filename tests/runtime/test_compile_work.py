"""The work of compiling grows like the graph: counted in calls of functions, without a clock."""

import sys
from collections.abc import Callable

import pytest

from retrograd.autodiff import gradient
from retrograd.codegen.program.module import ModuleEmitter
from retrograd.ir import Dim, Graph, Node, spec
from retrograd.ops.elementwise import add, mul, tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand
from retrograd.passes import optimize
from retrograd.runtime.compiler import engine
from retrograd.schedule.planning.plan import KernelPlan


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, those of Python and those of C."""
    count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def chain(count: int, rows: int | Dim) -> Graph:
    x = input_node(spec((rows,)), "x")
    y: Node = x
    for _ in range(count):
        y = tanh(y * 1.001 + 0.01)
    return Graph([x], [y])


def backwards(count: int, rows: int | Dim) -> Graph:
    graph = chain(count // 3, rows)
    return gradient(graph.with_outputs([ReduceSum((0,))(graph.outputs[0])]))


def training(count: int, rows: int | Dim) -> Graph:
    """A step of gradient descent, with as many layers as make about so many nodes."""
    layers, width = max(count // 5, 1), 16
    x = input_node(spec((rows, width)), "x")
    weights = [input_node(spec((width, width)), f"w{i}") for i in range(layers)]
    biases = [input_node(spec((width,)), f"b{i}") for i in range(layers)]
    y: Node = x
    for w, b in zip(weights, biases, strict=True):
        y = tanh(add(matmul(y, w), expand(b, y.shape, (0,))))
    loss = ReduceSum((0, 1))(mul(y, y))
    graph = gradient(Graph([x, *weights, *biases], [loss]))
    new = [p - g * 0.1 for p, g in zip(graph.inputs[1:], graph.outputs[1:], strict=True)]
    return graph.with_outputs(new)


def updates(count: int, rows: int | Dim) -> Graph:
    """Many updates that have nothing to do with each other."""
    inputs = [input_node(spec((rows, 4)), f"p{i}") for i in range(1 + count // 3)]
    return Graph(inputs, [tanh(p * 0.9) for p in inputs])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [4, 4096, Dim("N")], ids=["small", "threaded", "symbolic"])
@pytest.mark.parametrize("make", [chain, backwards, training, updates])
@pytest.mark.sample(2)
def test_compiling_is_linear(make, rows):
    """Optimising, planning, deciding what threads share, placing memory, writing the text."""

    def compiled(graph: Graph) -> None:
        donate = range(1, len(graph.inputs))
        plan = KernelPlan(optimize(graph), donate)
        plan.layout({"N": 100})
        ModuleEmitter(plan, engine().machine).text()

    small, large = make(200, rows), make(800, rows)
    compiled(small)  # what is remembered from one graph to the next is there afterwards
    ratio = len(large) / len(small)
    assert ratio > 3.5
    assert calls(lambda: compiled(large)) < 1.25 * ratio * calls(lambda: compiled(small))
