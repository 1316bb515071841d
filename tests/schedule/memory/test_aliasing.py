"""Outputs in the memory of donated inputs: where that is right, and what callers see of it."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend_registry import compile_graph
from retrograd.errors import IndexRangeError
from retrograd.ir import Dim, Graph, float32, float64, int64, spec
from retrograd.ops.elementwise import exp, tanh
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.scatter import ScatterSet
from retrograd.ops.shape import Flip, Permute, Slice, SliceSet, expand
from retrograd.runtime import fast_call
from retrograd.runtime.executable import Executable
from retrograd.schedule.loop_nest import MapNest
from retrograd.schedule.planning import KernelPlan
from tests.random_graphs import random_arrays, random_graph, same_values
from tests.runtime.agreement import sample


def x(name="x", shape=(7, 5), dtype=float32):
    return input_node(spec(shape, dtype), name)


def check(graph: Graph, arrays, donated: dict[int, int]) -> None:
    """The program overwrites these inputs for these outputs, with the results of one that does
    not."""
    program = Executable(graph, donate=range(len(graph.inputs)))
    assert program.donated == donated
    expected = Executable(graph)(arrays)
    own = [a.copy() for a in arrays]
    memory = [a.ctypes.data for a in own]
    results = program.consume(own)
    for k, (y, e) in enumerate(zip(results, expected, strict=True)):
        np.testing.assert_array_equal(y, e)
        if k in donated:
            assert y.ctypes.data == memory[donated[k]]
        else:
            assert y.ctypes.data not in memory


# -- what may be overwritten ----------------------------------------------------------------------
def test_elementwise_updates_are_made_in_place():
    w, m, g = x("w"), x("m"), x("g")
    new = m * 0.9 + g
    check(Graph([w, m, g], [w - new * 0.1, new]), [sample((7, 5), float32, k) for k in range(3)],
          {0: 0, 1: 1})  # fmt: skip


def test_an_input_that_was_read_before_may_be_overwritten():
    a, b = x("a"), x("b", (5, 7))
    y = matmul(a, b)  # reads all of a, before anything is written
    check(Graph([a, b], [tanh(expand(ReduceSum((0, 1))(y), (7, 5), (0, 1)))]),
          [sample((7, 5), float32, 0), sample((5, 7), float32, 1)], {0: 0})  # fmt: skip


def test_an_update_waits_for_those_who_read_what_it_overwrites():
    a = x()
    arrays = [sample((7, 5), float32, 0)]
    y = exp(a)
    z = CumSum(1)(a)
    check(Graph([a], [y, z]), arrays, {0: 0})


def test_an_input_that_is_read_after_the_output_is_needed_is_left_alone():
    a = x()
    y = exp(a)
    z = CumSum(1)(Flip((0,))(a) + CumSum(1)(y))
    check(Graph([a], [y, z]), [sample((7, 5), float32, 0)], {})


@pytest.mark.parametrize("f", [Flip((0,)), Flip((1,)), CumSum(0)], ids=str)
def test_elements_at_other_places_are_not_overwritten_before_they_are_read(f):
    a = x()
    check(Graph([a], [f(a)]), [sample((7, 5), float32, 0)], {})


def test_a_square_matrix_is_not_transposed_in_place():
    a = x(shape=(6, 6))
    check(Graph([a], [Permute((1, 0))(a)]), [sample((6, 6), float32, 0)], {})
    check(Graph([a], [a + Permute((1, 0))(a)]), [sample((6, 6), float32, 0)], {})


def test_a_product_does_not_overwrite_its_operands():
    a, b = x("a", (64, 64)), x("b", (64, 64))
    arrays = [sample((64, 64), float32, k) for k in range(2)]
    check(Graph([a, b], [matmul(a, b)]), arrays, {})


def test_only_inputs_of_the_same_type_are_taken():
    a, n = x(), x("n", (35,))
    b = input_node(spec((7, 5), int64), "b")
    arrays = [sample((7, 5), float32, 0), sample((35,), float32, 1), sample((7, 5), int64, 2)]
    check(Graph([a, n, b], [exp(n), b + 1, a]), arrays, {0: 1, 1: 2, 2: 0})


def test_only_what_is_donated_is_taken():
    a, b = x("a"), x("b")
    program = Executable(Graph([a, b], [a + b]), donate=[1])
    assert program.donated == {0: 1}
    assert Executable(Graph([a, b], [a + b])).donated == {}
    assert program.predicted_peak < Executable(Graph([a, b], [a + b])).predicted_peak


def test_sizes_that_are_named():
    n = Dim("N")
    a, b = x("a", (n, 5)), x("b", (n, 5))
    program = Executable(Graph([a, b], [a * b, a - b]), donate=[0, 1])
    assert program.donated == {0: 0, 1: 1}
    for size in (3, 17, 1, 0):
        p, q = sample((size, 5), float32, 1), sample((size, 5), float32, 2)
        y, z = program.consume([p.copy(), q.copy()])
        np.testing.assert_array_equal(y, p * q)
        np.testing.assert_array_equal(z, p - q)


def test_additions_at_indices():
    a, ids, u = x("a", (9, 4)), input_node(spec((3,), int64), "ids"), x("u", (3, 4))
    graph = Graph([a, ids, u], [ScatterAdd(0)(a, ids, u)])
    program = Executable(graph, donate=[0])
    arrays = [sample((9, 4), float32, 0), np.array([2, 2, 8]), sample((3, 4), float32, 1)]
    expected = Executable(graph)(arrays)[0]
    np.testing.assert_array_equal(program.consume([a.copy() for a in arrays])[0], expected)


def test_on_several_threads():
    """Rows of an update are shared; the order of reads and writes holds between threads."""
    shape = (512, 768)
    w, g = x("w", shape), x("g", shape)
    y = matmul(w, Permute((1, 0))(g))
    new = w - tanh(g) * expand(ReduceSum((1,))(y), shape, (1,)) * 1e-4
    graph = Graph([w, g], [new, y])
    arrays = [sample(shape, float32, k) for k in range(2)]
    check(graph, arrays, {0: 0})


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(4)
def test_random_graphs(seed):
    graph = random_graph(seed, nodes=30, symbolic=seed % 2 == 1)
    arrays = random_arrays(graph, seed)
    program = Executable(graph, donate=range(len(graph.inputs)), simplify=True)
    expected = compile_graph(graph, "llvm")(arrays)
    given = [a.copy() for a in arrays]
    own = [a.copy() for a in arrays]
    for results in (program(given), program.consume(own)):
        for y, e in zip(results, expected, strict=True):
            assert same_values(y, e)
    for a, b in zip(given, arrays, strict=True):
        assert same_values(a, b)


# -- what callers see -----------------------------------------------------------------------------
def doubled(shape=(4,)) -> Executable:
    a = x("a", shape)
    return Executable(Graph([a], [a + a]), donate=[0])


def test_a_plain_call_changes_nothing():
    program, a = doubled(), np.ones(4, np.float32)
    assert program([a])[0].tolist() == [2] * 4
    assert a.tolist() == [1] * 4
    held = [np.ones(4, np.float32)]
    program(held)
    assert held[0].tolist() == [1] * 4


def test_the_array_itself_is_the_result():
    program = doubled()
    arrays = [np.ones(4, np.float32)]
    number = id(arrays[0])
    (y,) = program.consume(arrays)
    assert id(y) == number
    assert y.tolist() == [2] * 4


@pytest.mark.parametrize("hold", [
    lambda a: a, lambda a: a[1:], lambda a: [a], memoryview, lambda a: a.reshape(2, 2).T,
    lambda a: a.__dlpack__(),
], ids=["array", "slice", "list", "buffer", "view of a view", "dlpack"])  # fmt: skip
def test_what_somebody_else_can_see_is_copied(hold):
    program = doubled()
    arrays = [np.ones(4, np.float32)]
    held = hold(arrays[0])
    address = arrays[0].ctypes.data
    (y,) = program.consume(arrays)
    assert y.ctypes.data != address
    assert y.tolist() == [2] * 4
    assert held is not None


def test_memory_of_others_is_copied():
    program = doubled()
    memory = bytearray(np.ones(4, np.float32).tobytes())
    (y,) = program.consume([np.frombuffer(memory, np.float32)])
    assert y.tolist() == [2] * 4
    assert np.frombuffer(memory, np.float32).tolist() == [1] * 4
    locked = np.ones(4, np.float32)
    locked.flags.writeable = False
    address = locked.ctypes.data
    arrays = [locked]
    del locked
    (y,) = program.consume(arrays)
    assert y.ctypes.data != address


def test_an_array_given_twice_is_copied():
    a, b = x("a", (4,)), x("b", (4,))
    program = Executable(Graph([a, b], [a + b, a - b]), donate=[0, 1])
    one = np.ones(4, np.float32)
    arrays = [one, one]
    del one
    y, z = program.consume(arrays)
    assert (y.tolist(), z.tolist()) == ([2] * 4, [0] * 4)


def test_layouts_that_are_not_plain():
    program = doubled((4, 4))
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    (y,) = program.consume([np.asfortranarray(a)])
    np.testing.assert_array_equal(y, a + a)
    (y,) = program.consume([np.repeat(a, 2, axis=1)[:, ::2]])
    np.testing.assert_array_equal(y, a + a)


def test_an_index_out_of_range_changes_nothing():
    a, ids = x("a", (4,)), input_node(spec((2,), int64), "ids")
    total = ReduceSum((0,))(Gather(0)(a, ids))
    program = Executable(Graph([a, ids], [a + expand(total, (4,), (0,)), a * 2.0]), donate=[0])
    assert program.donated
    arrays = [np.ones(4, np.float32), np.array([0, 9])]
    with pytest.raises(IndexRangeError):
        program.consume(arrays)
    assert arrays[0].tolist() == [1] * 4


@pytest.mark.parametrize("shared", [False, True])
def test_where_there_is_no_compiler(monkeypatch, shared):
    """Python looks at the array, with the same result: nobody else sees it change."""
    monkeypatch.setattr(fast_call, "compiled", None)
    program = doubled()
    arrays = [np.ones(4, np.float32)]
    kept = arrays[0] if shared else None
    address = arrays[0].ctypes.data
    (y,) = program.consume(arrays)
    assert y.tolist() == [2] * 4
    assert (y.ctypes.data == address) != shared
    assert kept is None or kept.tolist() == [1] * 4


def test_a_function_of_nothing_where_there_is_no_compiler(monkeypatch):
    monkeypatch.setattr(fast_call, "compiled", None)
    program = Executable(Graph([], [expand(constant(np.float32(2.0)), (3,), (0,))]))
    assert program([])[0].tolist() == [2] * 3


def test_an_update_of_few_rows_in_place_has_no_loop_over_the_others():
    table, rows, new = x("t", (4000, 5)), x("i", (3,), int64), x("n", (3, 5))
    for op in (ScatterSet(0), ScatterAdd(0)):
        graph = Graph([table, rows, new], [op(table, rows, new)])
        arrays = [sample((4000, 5), float32, 0), np.array([7, 3999, 7]), sample((3, 5), float32, 1)]
        check(graph, arrays, {0: 0})
        apart, plan = KernelPlan(graph), KernelPlan(graph, donate=[0])
        copies = [n for k in apart.kernels for n in k.nests if isinstance(n, MapNest)]
        left = [n for k in plan.kernels for n in k.nests if isinstance(n, MapNest)]
        assert any(4000 in n.loops or 20000 in n.loops for n in copies)
        assert not any(4000 in n.loops or 20000 in n.loops for n in left)


def test_updates_of_temporaries_take_their_memory():
    """Of a chain of updates one kernel copies, the first, and none if it may be the input's."""
    start, rows, new = x("t", (4000, 5)), x("i", (3,), int64), x("n", (3, 5))
    part = Slice((10, 0), (13, 5), (1, 1))
    y = SliceSet((7, 0), (12, 5), (2, 1))(start, part(start) + new)
    y = ScatterSet(0)(y, rows, new)
    y = SliceSet((0, 0), (3, 5), (1, 1))(y, part(y) * new)
    graph = Graph([start, rows, new], [y])
    arrays = [sample((4000, 5), float32, 0), np.array([7, 3999, 7]), sample((3, 5), float32, 1)]
    expected = arrays[0].copy()
    expected[7:12:2] = expected[10:13] + arrays[2]
    expected[arrays[1]] = arrays[2]
    expected[:3] = expected[10:13] * arrays[2]
    np.testing.assert_array_equal(Executable(graph)(arrays)[0], expected)
    check(graph, arrays, {0: 0})
    for donate, copies in ((), 1), ([0], 0):
        plan = KernelPlan(graph, donate=donate)
        maps = [n for k in plan.kernels for n in k.nests if isinstance(n, MapNest)]
        assert sum(4000 in n.loops or 20000 in n.loops for n in maps) == copies


def test_a_temporary_that_is_read_later_is_not_overwritten():
    a, new = x("a", (400,)), x("n", (3,))
    b = CumSum(0)(a)
    y = SliceSet((5,), (8,), (1,))(b, new)
    z = SliceSet((9,), (12,), (1,))(b, new)
    graph = Graph([a, new], [y, z, CumSum(0)(b)])
    arrays = [np.arange(400, dtype=np.float32) % 5, np.full(3, -7, np.float32)]
    for found, expected in zip(
        Executable(graph)(arrays), compile_graph(graph, "reference")(arrays), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_updates_of_what_a_loop_carries_are_made_in_place():
    """Two in a step, each of a value that is computed from what is there."""

    def step(i, x):
        y = x.at[3:5].set(x[7:9] * 2)
        return y.at[i].add(y[4] + 1)

    def run(x):
        return rg.fori_loop(0, 6, step, x)

    start = np.arange(5000, dtype=np.float32)
    expected = start.copy()
    for i in range(6):
        expected[3:5] = expected[7:9] * 2
        expected[i] += expected[4] + 1
    assert np.array_equal(rg.jit(run)(start), expected)
    plan = KernelPlan(rg.trace(run, rg.spec((5000,))))
    inside = [n for k in plan.every for n in k.nests if isinstance(n, MapNest)]
    assert inside
    assert not any(5000 in n.loops for n in inside)


def _assigned(w):
    return w.at[0].set(w[-1] * 0.5 + w[0])


def _added(w):
    return w.at[rg.asarray([0, 1, 0])].add(w[:3])


@pytest.mark.parametrize("update", [_assigned, _added])
def test_what_is_made_before_a_loop_is_not_overwritten_in_it(update):
    """Each step, and each branch, updates a copy of its own of what was computed outside."""

    def in_scan(a, v):
        return rg.scan(lambda c, _: (c * 0.5 + update(rg.exp(a)).sum(), None), v, v)[0]

    def in_while(a, v):
        w = rg.exp(a)
        return rg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + update(w)), (0, w))[1]

    def in_branch(a, v):
        w = rg.exp(a)
        return rg.cond(v[0] > 0, lambda: update(w), lambda: w * 2) + w

    a, v = sample((3, 2, 5), float64), np.ones(3)
    for f in (in_scan, in_while, in_branch):
        with rg.backend("reference"):
            expected = f(rg.tensor(a), rg.tensor(v)).numpy()
        program = rg.jit(f)
        for _ in range(3):
            np.testing.assert_allclose(program(a, v).numpy(), expected, rtol=1e-12)
