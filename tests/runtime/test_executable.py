"""Programs as their users meet them: errors, layouts of inputs, symbolic sizes, threads, memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from retrograd.autodiff import gradient
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, float32, float64, int64, spec
from retrograd.ops.elementwise import add, exp, log, mul, neg, sin, sub, tanh
from retrograd.ops.index import Gather
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import LogSumExp, ReduceMax, ReduceSum
from retrograd.ops.shape import Concat, Flip, Pad, Permute, Reshape, Slice, expand
from retrograd.runtime import executable
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.runtime.agreement import GuardedProgram, assert_same, sample


def network(dtype=float64, rows: int | Dim = 5) -> Graph:
    """Two layers, layer norm and cross-entropy of an embedded sequence."""
    table = input_node(spec((11, 8), dtype), "table")
    w1, w2 = input_node(spec((8, 16), dtype), "w1"), input_node(spec((16, 11), dtype), "w2")
    ids = input_node(spec((rows,), int64), "ids")
    x = Gather(0)(table, ids)
    mean = ReduceSum((1,))(x) * 0.125
    x = x - expand(mean, x.shape, (1,))
    h = tanh(matmul(x, w1))
    logits = matmul(h, w2)
    norm = LogSumExp((1,))(logits)
    chosen = Gather(1, 1)(logits, ids)
    loss = ReduceSum((0,))(norm - chosen)
    return Graph([table, w1, w2, ids], [loss])


def network_arrays(dtype=float64, rows: int = 5) -> list[np.ndarray]:
    shapes = [(11, 8), (8, 16), (16, 11)]
    arrays = [sample(s, dtype, i) * dtype.dtype.type(0.3) for i, s in enumerate(shapes)]
    return [*arrays, np.arange(rows) * 7 % 11]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_gradient_of_a_network(dtype) -> None:
    graph = network(dtype)
    assert_same(graph, network_arrays(dtype), ulps=200)
    assert_same(gradient(graph), network_arrays(dtype), ulps=400, scale=0.1)


def test_second_order() -> None:
    x = input_node(spec((4,), float64), "x")
    g = Graph([x], [ReduceSum((0,))(sin(x) * exp(x))])
    for _ in range(2):
        g = gradient(g)
        g = Graph(g.inputs, [ReduceSum((0,))(mul(g.outputs[0], g.outputs[0]))])
    assert_same(gradient(g), [sample((4,), float64)])


def test_one_program_for_all_sizes() -> None:
    n = Dim("N")
    program = GuardedProgram(gradient(network(float64, n)))
    for rows in (0, 1, 3, 64, 3):
        arrays = network_arrays(float64, rows)
        assert_same(program.graph, arrays, 1e4, program, scale=0.1)
    a, b = input_node(spec((n, 6)), "a"), input_node(spec((6, n)), "b")
    both = Concat(0)(a, Permute((1, 0))(b))
    outputs: list[Node] = [
        matmul(a, b), matmul(b, a), Reshape((2 * n, 3))(a), Reshape((3, n, 2))(b), both,
        Flip((0,))(both), Pad((1, 0), (n, 2), (0, 0))(a, constant(np.float32(7))),
        Slice((0, 0), (n, 6), (2, 3))(a), ReduceSum((0,))(a), ReduceSum((1,))(both),
        Reshape((6 * n,))(Permute((1, 0))(a)),
    ]  # fmt: skip
    program = GuardedProgram(Graph([a, b], outputs))
    for size in (0, 1, 2, 17, 40):
        arrays = [sample((size, 6), float32), sample((6, size), float32, 1)]
        assert_same(program.graph, arrays, 64, program)


def test_sizes_that_take_turns_are_told_by_one_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    n = Dim("n")
    x, y = input_node(spec((2 * n,), float64), "x"), input_node(spec((n, 3), float64), "y")
    program = Executable(Graph([x, y], [add(Reshape((n, 2))(x), Slice((0, 0), (n, 2), (1, 1))(y))]))
    given = {k: (np.arange(2.0 * k), np.arange(3.0 * k).reshape(k, 3)) for k in (2, 3, 5)}
    expected = {k: x.reshape(k, 2) + y[:, :2] for k, (x, y) in given.items()}
    for k, arrays in given.items():
        np.testing.assert_array_equal(program(arrays)[0], expected[k])
    with monkeypatch.context() as patched:
        patched.setattr(executable, "bind", None)  # nobody asks it
        for k in (3, 5, 2, 5):
            np.testing.assert_array_equal(program(given[k])[0], expected[k])
    with pytest.raises(ShapeError, match="axis 0 of input 'x'"):
        program([given[2][0], given[3][1]])
    with pytest.raises(ShapeError):
        program([given[3][0], np.array(1.0)])


def test_sizes_that_follow_from_others_only() -> None:
    n = Dim("n")
    x = input_node(spec((n + 1,), float64), "x")
    program = Executable(Graph([x], [mul(x, x)]))
    for k in (3, 5, 3):
        np.testing.assert_array_equal(program([np.arange(k + 1.0)])[0], np.arange(k + 1.0) ** 2)


def test_sizes_that_make_no_sense() -> None:
    n = Dim("N")
    x = input_node(spec((n, 3)), "x")
    top = Executable(Graph([x], [ReduceMax((0,))(x)]))
    with pytest.raises(ShapeError, match="over no elements"):
        top([np.zeros((0, 3), np.float32)])
    part = Executable(Graph([x], [Slice((2, 0), (4, 3), (1, 1))(x)]))
    assert part([np.ones((4, 3), np.float32)])[0].shape == (2, 3)
    with pytest.raises(ShapeError, match="slice"):
        part([np.ones((3, 3), np.float32)])


def test_any_layout_of_the_inputs() -> None:
    x, y = input_node(spec((4, 6)), "x"), input_node(spec((6,)), "y")
    program = Executable(Graph([x, y], [sub(x, expand(y, x.shape, (0,)))]))
    a, b = sample((4, 6), float32), sample((6,), float32, 1)
    expected = a - b
    fortran, reversed_, strided = np.asfortranarray(a), b[::-1].copy()[::-1], np.repeat(b, 3)[::3]
    odd = np.zeros(a.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(4, 6)
    odd[...] = a
    frozen = a.copy()
    frozen.setflags(write=False)
    assert not odd.flags.aligned
    for first in (a, fortran, odd, frozen):
        for second in (b, reversed_, strided):
            np.testing.assert_array_equal(program([first, second])[0], expected)


def test_outputs_are_fresh_and_writable() -> None:
    x = input_node(spec((3,)), "x")
    y = neg(x)
    program = Executable(Graph([x], [x, y, y, Reshape((3, 1))(y), constant(np.arange(3.0))]))
    a = np.arange(3, dtype=np.float32)
    first = program([a])
    for r in first:
        r[...] = 99
    second = program([a])
    np.testing.assert_array_equal(a, [0, 1, 2])
    for r, expected in zip(second, (a, -a, -a, -a[:, None], np.arange(3.0)), strict=True):
        np.testing.assert_array_equal(r, expected)


def test_a_graph_may_start_at_inner_nodes() -> None:
    x = input_node(spec((2, 3)), "x")
    flat = Reshape((6,))(Permute((1, 0))(x))
    y = Reshape((3, 2))(flat)
    assert_same(Graph([flat], [exp(y), y]), [sample((6,), float32)])


@pytest.mark.slow
def test_deep_chains_need_no_recursion() -> None:
    x = input_node(spec((3,)), "x")
    y: Node = x
    for i in range(20_000):
        y = sin(y) if i % 2 else add(y, x)
    for _ in range(3000):
        y = Flip((0,))(y)
    z = y
    for _ in range(200):  # each level reads the one below at two indices
        z = mul(add(z, Flip((0,))(z)), constant(np.full(3, 0.5, np.float32)))
    program = Executable(Graph([x], [y, z]))
    a = sample((3,), float32)
    found, expected = program([a]), ReferenceProgram(program.graph)([a])
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-5)
    assert len(program.plan.kernels) < 1500
    assert program.predicted_peak < 5000  # dead buffers are reused


def test_the_predicted_peak_is_that_of_the_latest_call() -> None:
    x = input_node(spec((Dim("N"),)), "x")
    program = Executable(Graph([x], [exp(x)]))
    assert program.predicted_peak == 0
    for n in (1000, 10, 1000):
        program([sample((n,), float32)])
        assert program.predicted_peak == program.peak_bytes({"N": n})


@pytest.mark.slow
def test_threads_share_a_program() -> None:
    graph = gradient(network(float64, Dim("N")))
    program = Executable(graph)
    expected = {n: program(network_arrays(float64, n)) for n in (2, 5, 40)}
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(200):
            for y, e in zip(program(network_arrays(float64, n)), expected[n], strict=True):
                if not np.array_equal(y, e):
                    wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 5, 40, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_programs_are_freed() -> None:
    program = Executable(network())
    gone = weakref.ref(program)
    program(network_arrays())
    del program
    gc.collect()
    assert gone() is None


def test_nothing_is_compiled_twice() -> None:
    """Equal kernels share one function, whatever the number of layers."""
    x = input_node(spec((40, 40)), "x")
    y: Node = x
    for _ in range(30):
        y = tanh(matmul(y, x))
    program = Executable(Graph([x], [y]))
    assert len(program.plan.kernels) == 60
    assert program.functions < 5


def test_explain_and_peak() -> None:
    n = Dim("N")
    x = input_node(spec((n, 100)), "x")
    program = Executable(Graph([x], [log(ReduceSum((1,))(exp(x))).renamed("norm")]))
    text = program.explain()
    assert "row" in text
    assert "exp" in text
    assert "norm" in text
    assert "N" in text
    # The sums, the result, and room to align the sums.
    assert program.peak_bytes({"N": 10_000}) == 40_000 + 40_000 + 64
    assert "400000 bytes" not in text
    assert "bytes" in program.explain({"N": 1000})


@pytest.mark.slow
def test_llvmlite_is_imported_by_the_first_program() -> None:
    code = (
        "import sys; from retrograd.runtime.executable import Executable;"
        "assert 'llvmlite' not in sys.modules;"
        "from retrograd.ir import *; from retrograd.ops.leaf import input_node;"
        "x = input_node(spec((2,))); Executable(Graph([x], [-x]));"
        "assert 'llvmlite' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
