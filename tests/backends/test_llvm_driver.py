"""The function that runs a program's kernels: what it costs to write, and that it runs them all."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from retrograd import num_threads
from retrograd.autodiff import gradient
from retrograd.backends import real_graph
from retrograd.backends.kernel import EACH, Plan
from retrograd.backends.llvm import LLVMProgram
from retrograd.backends.llvm.alike import Likeness, Unknown
from retrograd.backends.llvm.drive_text import BAND, END
from retrograd.backends.llvm.engine import engine
from retrograd.backends.llvm.module import Module
from retrograd.backends.llvm.team_text import PLACES, THREAD_BYTES
from retrograd.ir import Dim, Graph, Node, float32, int64, spec
from retrograd.ops.elementwise import div, mul, tanh
from retrograd.ops.index import ScatterAdd
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
    graph = real_graph(f.graph(30))
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


# -- the native function ---------------------------------------------------------------------------
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
DRIVE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 3
)


class BandRun:
    """A band of one kernel, which notes who calls it with which rows, and then does `act`."""

    def __init__(self, rows: int, blocks: int, element: int, chain: int, threads: int) -> None:
        self.found: list[tuple[int, int, int]] = []
        self.act: Callable[[int], int] = lambda call: 0  # gets the number of the call
        self._threads, self._who = threads, [0]
        self._called = KERNEL(self._kernel)
        self._kernels = np.array([ctypes.cast(self._called, ctypes.c_void_p).value], np.int64)
        band = [rows, blocks, element, chain, 0, 0, 0, 0, 0]
        self._table = np.array([-1, -1, 0, 0, BAND, len(band) + 2, *band, END, 2], np.int64)
        self._memory = np.zeros(1, np.int64)
        self._team = np.zeros(PLACES + THREAD_BYTES * threads, np.uint8)

    def _kernel(self, block: int, slots: int, lo: int, hi: int) -> int:
        self.found.append((self._who[-1], lo, hi))
        return self.act(len(self.found) - 1)

    def run(self, thread: int) -> int:
        """One thread from beginning to end; also while another one is in the kernel."""
        self._who.append(thread)
        run = DRIVE(engine()._shared("rg_drive"))
        data = [x.ctypes.data for x in (self._team, self._table, self._kernels)]
        result = run(self._memory.ctypes.data, thread, self._threads, *data)
        self._who.pop()
        return result


def run_band(
    rows: int, blocks: int, element: int, chain: int, threads: int
) -> list[tuple[int, int, int]]:
    """The calls that threads make of a kernel, one thread after the other: who, and which rows."""
    band = BandRun(rows, blocks, element, chain, threads)
    assert [band.run(t) for t in range(threads)] == [0] * threads
    return band.found


@pytest.mark.parametrize("chain", [1, 2])
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_take_over_blocks_of_others(threads, chain):
    """While the first thread is in its first block, the others do all that is left of its share,
    from the end."""
    band = BandRun(96, 12, 0, chain, threads)
    band.act = lambda call: band.run(1) if call == 0 else 0
    assert [band.run(t) for t in range(threads) if t != 1] == [0] * (threads - 1)
    assert sorted(lo for _, lo, _ in band.found) == list(range(0, 96, 8))
    share = 12 // threads
    assert [lo // 8 for who, lo, _ in band.found if who == 0] == list(range(chain))
    taken = [lo // 8 for who, lo, _ in band.found if who == 1][share:]
    ends = [k for end in range(share - chain, 0, -chain) for k in range(end, end + chain)]
    assert taken == ends
    for again in range(2):  # the words are as they were for the next run
        band.found.clear()
        band.act = lambda call: 0
        assert [band.run(t) for t in range(threads)] == [0] * threads
        assert [who for who, _, _ in band.found] == sorted(list(range(threads)) * share), again


def test_nothing_is_left_for_others_by_a_thread_that_fails():
    """Nor in the next run."""
    band = BandRun(64, 8, 0, 1, 2)
    band.act = lambda call: 5 if call == 1 else 0
    assert [band.run(0), band.run(1)] == [5, 0]
    assert [lo // 8 for _, lo, _ in band.found] == [0, 1, 4, 5, 6, 7]
    band.found.clear()
    band.act = lambda call: 0
    assert band.run(1) == 0
    assert [lo // 8 for _, lo, _ in band.found] == [4, 5, 6, 7]


def test_so_many_blocks_that_each_thread_does_its_own():
    band = BandRun(1 << 17, 1 << 17, 0, 1, 2)
    band.act = lambda call: band.run(1) if call == 0 else 0
    assert band.run(0) == 0
    assert len(band.found) == 1 << 17
    assert sum(who for who, _, _ in band.found) == 1 << 16


@pytest.mark.parametrize(("rows", "blocks", "element", "chain", "told"), [
    (64, 7, 0, 1, 7), (3, 8, 0, 1, 8), (0, 4, 0, 1, 4), (60, 12, 10, 1, 12), (60, 12, 10, 2, 12),
    (100, -8, 0, 1, 12), (15, -8, 0, 1, 2), (1, -8, 0, 1, 1), (0, -8, 0, 1, 0),
])  # fmt: skip
@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_blocks_of_a_band(rows, blocks, element, chain, told, threads):
    """Every row once, in order, no block across elements, blocks that add up in one thread."""
    found = run_band(rows, blocks, element, chain, threads)
    count = told
    assert len(found) == count
    assert [lo for _, lo, _ in found] == [0, *[hi for _, _, hi in found]][:count]
    if count:
        assert found[-1][2] == rows
    if element:
        assert all((hi - 1) // element == lo // element for _, lo, hi in found)
    for k in range(0, count, chain):
        assert len({thread for thread, _, _ in found[k : k + chain]}) == 1
    shares = [sum(thread == t for thread, _, _ in found) for t in range(threads)]
    assert max(shares) - min(shares) <= chain


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_thread_looks_at_the_positions_of_a_scatter_once(threads):
    """However many places it has: every block of them goes through all positions."""
    x, v = (input_node(spec((n, 64), float32)) for n in (100_000, 1000))
    i = input_node(spec((1000,), int64))
    graph = Graph([x, i, v], [ScatterAdd(0)(x, i, v)])
    (band,) = (b for b in Plan(graph).bands if any("places" in n.info for n in b.kernels[0].nests))
    assert band.rows == 100_000
    assert band.blocks == 0
    assert band.piece == EACH
    blocks = run_band(100_000, -band.piece, 0, 1, threads)
    assert [(hi - lo) // (100_000 // threads) for _, lo, hi in blocks] == [1] * threads
    assert_same(
        graph, [sample(x.shape, float32), np.arange(0, 99_000, 99), sample(v.shape, float32)]
    )


@pytest.mark.parametrize(("places", "each", "shared"), [
    (100_000, 1, False), (2700, 16, False), (2700, 32, True), (100_000, 16, True),
])  # fmt: skip
def test_threads_share_places_where_much_is_done_at_each(places, each, shared):
    """To look at all positions is most of the work, unless places are wide, or far away."""
    x, v = (input_node(spec((n, each), float32)) for n in (places, 20_000))
    i = input_node(spec((20_000,), int64))
    graph = Graph([x, i, v], [ScatterAdd(0)(x, i, v)])
    scatters = [b for b in Plan(graph).bands if b.kernels[0].nests[-1].kind == "scatter"]
    assert [band.rows != 0 for band in scatters] == [shared]
