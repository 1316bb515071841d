"""Programs of very many small operations: the bits of other programs, made in linear time."""

import random
import threading

import numpy as np
import pytest

import retrograd as rg
from retrograd.autodiff import gradient
from retrograd.backend_registry import compile_graph
from retrograd.ir import Dim, Graph, float64, full, spec
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import Cholesky
from retrograd.ops.shape import reshape
from retrograd.passes import optimize
from retrograd.runtime.executors.bytecode import BytecodeExecutor
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.executors.tiered import TieredProgram, is_long
from retrograd.tuning import TUNING
from tests.random_graphs import random_arrays, random_graph


def straight(count: int, seed: int = 0) -> Graph:
    """A function of two numbers by so many operations, and its gradient."""
    choose = random.Random(seed)
    x, y = input_node(spec((), float64), "x"), input_node(spec((), float64), "y")
    values = [x, y]
    for _ in range(count):
        a, b = values[-1], choose.choice(values[-6:])
        values.append(choose.choice([el.sin(a), el.tanh(a + b), a * 0.7 + b, a - b * 0.3]))
    return gradient(Graph([x, y], [values[-1]]))


def numbers() -> list[np.ndarray]:
    return [np.array(0.3), np.array(0.9)]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(10)
def test_any_graph_gives_the_bits_of_the_interpreter(seed):
    graph = random_graph(seed)
    if graph.dim_names:
        graph = graph.bind(dict.fromkeys(graph.dim_names, 3))
    graph = optimize(graph)
    arrays = random_arrays(graph, seed)
    expected = OpByOpExecutor(graph)(arrays)
    program = BytecodeExecutor(graph)
    for _ in range(2):
        found = program(arrays)
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            assert a.tobytes() == b.tobytes() or np.isnan(np.asarray(b, np.float64)).any()


@pytest.fixture
def short(monkeypatch):
    """Have a tenth of the operations make a program long."""
    monkeypatch.setattr(TUNING, "bytecode_operations", TUNING.bytecode_operations // 10)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_a_long_function_and_its_gradient():
    graph = straight(600)
    assert is_long(graph)
    program = compile_graph(graph, "llvm")
    assert isinstance(program, BytecodeExecutor)
    found = program(numbers())
    reference = compile_graph(graph, "reference")(numbers())
    np.testing.assert_allclose(found, reference, rtol=1e-9)
    interpreted = OpByOpExecutor(optimize(graph))(numbers())
    assert [a.tobytes() for a in found] == [a.tobytes() for a in interpreted]


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_jit_and_eager_evaluation_of_long_functions_agree():
    choose = random.Random(1)
    steps = [choose.randrange(3) for _ in range(600)]

    def f(x):
        y = x
        for step in steps:
            y = rg.sin(y) * 0.9 if step == 0 else y * x + 0.1 if step == 1 else rg.tanh(y) + x
        return y

    x = rg.tensor(0.37, dtype=rg.float64)
    compiled = rg.jit(rg.grad(f))
    slope = (f(x + 1e-6) - f(x - 1e-6)).item() / 2e-6
    eager = [rg.grad(f)(x).item() for _ in range(3)]  # interpreted first, in steps when it returns
    assert compiled(x).item() == eager[0] == eager[1] == eager[2]
    assert eager[0] == pytest.approx(slope, rel=1e-6, abs=1e-9)
    assert compiled(rg.tensor(-0.2, dtype=rg.float64)).item() == rg.grad(f)(-0.2 + x * 0).item()


def test_work_that_no_single_function_does_is_done_between_the_others():
    a = input_node(spec((3, 3), float64), "a")
    i = input_node(spec((2,), "int64"), "i")
    factor = Cholesky()(el.add(a, full(0.0, a.type)))
    rows = Gather(0)(factor, i)
    graph = Graph([a, i], [el.sin(rows) * 2.0, factor, a, factor])
    arrays = [np.eye(3) * 4 + 0.5, np.array([2, 0])]
    found = BytecodeExecutor(graph)(arrays)
    lower = np.linalg.cholesky(arrays[0])
    np.testing.assert_allclose(found[0], 2 * np.sin(lower[[2, 0]]), rtol=1e-14)
    np.testing.assert_allclose(found[3], lower, rtol=1e-14)
    assert found[2] is not arrays[0]
    with pytest.raises(IndexError, match="gather"):
        BytecodeExecutor(graph)([arrays[0], np.array([2, 5])])


def test_arrays_without_elements_or_in_other_orders():
    x, e = input_node(spec((2, 3), float64)), input_node(spec((0, 3), float64))
    graph = Graph([x, e], [reshape(el.exp(x), (6,)), el.exp(e), e])
    given = np.arange(6.0).reshape(3, 2).T
    found = BytecodeExecutor(graph)([given, np.zeros((0, 3))])
    np.testing.assert_allclose(found[0], np.exp(given).reshape(6), rtol=1e-15)
    assert found[1].shape == found[2].shape == (0, 3)


def test_memory_of_values_that_are_not_needed_any_more_is_used_again():
    x = input_node(spec((8,), float64))
    y = x
    for _ in range(1000):
        y = el.sin(y)
    assert BytecodeExecutor(Graph([x], [y])).predicted_peak < 10 * 64


def test_long_tables_are_cut(monkeypatch):
    monkeypatch.setattr(TUNING, "bytecode_calls", 7)
    graph = optimize(straight(40))
    expected = OpByOpExecutor(graph)(numbers())
    assert [a.tobytes() for a in BytecodeExecutor(graph)(numbers())] == [
        a.tobytes() for a in expected
    ]


@pytest.mark.slow
def test_several_threads_at_once():
    program = BytecodeExecutor(optimize(straight(3000)))
    inputs = [[np.array(0.1 * k), np.array(0.5)] for k in range(8)]
    expected = [[a.tobytes() for a in program(given)] for given in inputs]
    found: list[list[bytes]] = [[]] * 8

    def work(k: int) -> None:
        for _ in range(20):
            found[k] = [a.tobytes() for a in program(inputs[k])]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == expected


@pytest.mark.slow
def test_what_is_compiled_into_one_function_all_the_same():
    x = input_node(spec((1000,), float64))
    y = x
    for _ in range(TUNING.bytecode_operations + 1):
        y = el.sin(y)
    assert not is_long(Graph([x], [y]))  # arrays, for which it pays to keep them in the cache
    n = input_node(spec((Dim("N"),), float64))
    y = n
    for _ in range(TUNING.bytecode_operations + 1):
        y = el.sin(y)
    assert not is_long(Graph([n], [y]))
    assert not is_long(straight(100))


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_a_long_program_that_returns_runs_in_steps():
    program = TieredProgram(optimize(straight(800)))
    first = program(numbers())
    assert not program.is_compiled
    again = program(numbers())
    assert program.is_compiled
    assert [a.tobytes() for a in first] == [a.tobytes() for a in again]
