"""The function that runs a program's kernels: what it costs to write, and that it runs them all."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd import num_threads
from retrograd.codegen.launch_layout import END, TILES
from retrograd.ir import Graph, float32, int64, spec
from retrograd.ops.index import ScatterAdd
from retrograd.ops.leaf import input_node
from retrograd.runtime.executable import Executable
from retrograd.runtime.native import addresses
from retrograd.runtime.native.layout import CLAIM, GROUPS, SHARE, WORKER_BYTES, WORKERS
from retrograd.runtime.thread_pool import current_team
from retrograd.schedule.loop_nest import BlockedScatter, shared_destinations
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling.groups import EACH
from tests.codegen.program.layers import layers
from tests.runtime.agreement import assert_same, sample


def samples(graph: Graph) -> list[np.ndarray]:
    return [sample(x.shape, float32, k) * np.float32(0.2) for k, x in enumerate(graph.inputs)]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [2, 2048])
@pytest.mark.sample(2)
def test_many_kernels_are_run_in_order(rows, threads):
    graph = layers(40, rows)
    plan = KernelPlan(graph)
    assert len(plan.kernels) > 100
    assert plan.threaded == (rows > 2)
    arrays = samples(graph)
    with num_threads(threads):
        assert_same(graph, arrays, 1000, scale=1.0)


@pytest.mark.slow
def test_threads_keep_their_rows_of_local_buffers_apart():
    """What only a tile group uses exists once for each thread, in its own copy of the block."""
    graph = layers(3, 4096, 64)
    plan = KernelPlan(graph)
    assert any(len(group.local) > 1 for group in plan.tile_groups)
    arrays = samples(graph)
    program = Executable(graph)
    results = []
    for threads in (1, 2, 5):
        with num_threads(threads):
            results.append(program(arrays))
    for one, *others in zip(*results, strict=True):
        assert all(np.array_equal(one, other) for other in others)
    assert_same(graph, arrays, 1000, scale=10.0)


# -- the native function ---------------------------------------------------------------------------
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
WORK = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
SHARED = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64)
DRIVE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 3)


class TileGroupRun:
    """Tile groups of one kernel, of an epoch. It notes who calls it with which rows, and then does
    `act`. Threads come one after the other, in `order`, or when `act` has them `come`."""

    def __init__(
        self, rows: int, blocks: int, element: int, chain: int, threads: int, tile_groups: int = 1
    ) -> None:
        self.found: list[tuple[int, int, int]] = []
        self.act: Callable[[int], int] = lambda call: 0  # gets the number of the call
        self.order = list(range(threads))
        self._threads, self._who = threads, [0]
        self._called, self._shared = KERNEL(self._kernel), SHARED(self._share)
        self._kernels = np.array([ctypes.cast(self._called, ctypes.c_void_p).value], np.int64)
        table = [-1, -1, 0, 0, 0]
        for k in range(tile_groups):  # each with ten times as many rows as the one before
            table += [TILES, 12, rows * 10**k, blocks, element, 1, chain, 0, 0, 0, 0, 0]
        self._table = np.array([*table, END, 2], np.int64)
        self._memory = np.zeros(1, np.int64)
        self.team = np.zeros((WORKERS + WORKER_BYTES * threads) // 8, np.int64)
        self.team[SHARE // 8] = ctypes.cast(self._shared, ctypes.c_void_p).value or 0
        self.team[GROUPS // 8] = 1

    def _kernel(self, block: int, slots: int, lo: int, hi: int) -> int:
        self.found.append((self._who[-1], lo, hi))
        return self.act(len(self.found) - 1)

    def _share(self, team: int, work: int, argument: int, threads: int) -> int:
        assert threads == self._threads
        self._work = lambda thread: WORK(work)(argument, thread, threads, team)
        return max([self.come(thread) for thread in self.order])

    def come(self, thread: int) -> int:
        """One thread from beginning to end; also while another one is in the kernel."""
        self._who.append(thread)
        result = self._work(thread)
        self._who.pop()
        return result

    def run(self) -> int:
        self.found.clear()
        run = DRIVE(addresses()["rg_drive"])
        data = [x.ctypes.data for x in (self.team, self._table, self._kernels)]
        return run(self._memory.ctypes.data, self._threads, *data)

    def left(self, thread: int) -> tuple[int, int, int]:
        """What the word of a thread says: the number of the tile group, the first and the end."""
        word = int(self.team[(WORKERS + WORKER_BYTES * thread + CLAIM) // 8]) & (1 << 64) - 1
        return word >> 32, word & 65535, word >> 16 & 65535

    def parts(self) -> list[tuple[int, int]]:
        """What each thread begins with: the first unit, and the end."""
        found = []
        for thread in range(self._threads):
            seen: list[tuple[int, int, int]] = []

            def look(call: int, thread: int = thread, seen: list[Any] = seen) -> int:
                seen.append(self.left(thread))
                return 0

            self.act = look
            self.order = [thread]
            number = int(self.team[GROUPS // 8])
            assert self.run() == 0
            if seen and seen[0][0] == number:  # else there is nothing to begin with
                found.append((seen[0][1] - 1, seen[0][2]))
        return found


@pytest.mark.parametrize("chain", [1, 2])
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("who", [0, 1])
def test_one_thread_does_what_is_left_by_those_that_do_not_come(threads, chain, who):
    """Its own blocks in order, then the others' from their ends."""
    group = TileGroupRun(96, 12, 0, chain, threads)
    group.order = [who]
    share, told = 12 // threads, list(range(0, 12, chain))
    for again in range(3):
        assert group.run() == 0
        units = [lo // 8 for _, lo, _ in group.found][::chain]
        assert sorted(units) == told, again
        own = told[who * share // chain : (who + 1) * share // chain]
        after = (who + 1) % threads * share // chain
        theirs = told[after : after + share // chain][::-1]
        assert units[: 2 * share // chain] == own + theirs
        calls = [lo // 8 for _, lo, _ in group.found]
        assert calls == [k for unit in units for k in range(unit, unit + chain)]


@pytest.mark.parametrize("chain", [1, 2])
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_take_over_blocks_of_others(threads, chain):
    """While the first thread is in its first block, another does all that is left of its share,
    from the end; those who come later find nothing."""
    group = TileGroupRun(96, 12, 0, chain, threads)
    group.act = lambda call: group.come(1) if call == 0 else 0
    for again in range(3):
        assert group.run() == 0
        assert sorted(lo for _, lo, _ in group.found) == list(range(0, 96, 8)), again
        share = 12 // threads
        assert [lo // 8 for who, lo, _ in group.found if who == 0] == list(range(chain))
        taken = [lo // 8 for who, lo, _ in group.found if who == 1][12 - share :]
        ends = [k for end in range(share - chain, 0, -chain) for k in range(end, end + chain)]
        assert taken == ends


EVERY = [(lo, hi) for size in (8, 80, 800) for lo in range(0, 8 * size, size) for hi in [lo + size]]


@pytest.mark.parametrize("call", [0, 1, 7, 8, 9, 12, 15, 16, 17, 23])
def test_a_thread_that_comes_late(call):
    """It does not repeat what was done in earlier tile groups, nor does it take what is left of a
    later one, in which another thread is, for what is left of an earlier one."""
    group = TileGroupRun(64, 8, 0, 1, 3, tile_groups=3)
    group.act = lambda number: group.come(1) if number == call else 0
    for again in range(3):
        assert group.run() == 0
        assert sorted((lo, hi) for _, lo, hi in group.found) == sorted(EVERY), again
        assert [who for who, _, _ in group.found][: call + 1] == [0] * (call + 1)
        assert {who for who, _, _ in group.found[call + 1 :]} <= {1}


def test_numbers_of_groups_begin_anew_after_the_last():
    """They are 32 bits of a word; nothing is done twice or left out when they are used up."""
    group = TileGroupRun(64, 8, 0, 1, 2, tile_groups=2)
    group.team[GROUPS // 8] = (1 << 32) - 5
    for thread in range(2):
        group.team[(WORKERS + WORKER_BYTES * thread + CLAIM) // 8] = -6 << 32
    for order in ([0], [1], [0, 1], [1, 0], [0], [1]):
        group.order = order
        assert group.run() == 0
        assert sorted((lo, hi) for _, lo, hi in group.found) == sorted(EVERY[:16])
    assert group.left(0)[0] < 10


@pytest.mark.slow
@pytest.mark.parametrize("tile_groups", [1 << 30, 1 << 31, (1 << 31) + 12345, 1 << 32, 3 << 31])
@pytest.mark.sample(1)
def test_threads_that_were_not_needed_for_very_long(tile_groups):
    """Their words are not taken for those of newer tile groups."""
    graph = layers(3, 4096, 64)
    program, team = Executable(graph), current_team()
    with num_threads(3):
        program(samples(graph))
    team.words(GROUPS)[0] += tile_groups
    for k in range(3):
        arrays = [a * np.float32(1 + k / 7) for a in samples(graph)]
        with num_threads(1):
            wanted = program(arrays)
        with num_threads(3):
            found = program(arrays)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_what_a_thread_leaves_that_fails_is_done_by_others_or_not_at_all():
    """Nor is it in the next run."""
    group = TileGroupRun(64, 8, 0, 1, 2)
    group.act = lambda call: 5 if call == 1 else 0
    assert group.run() == 5
    assert sorted(lo // 8 for _, lo, _ in group.found) == list(range(8))
    group.order = [0]
    assert group.run() == 5
    assert [lo // 8 for _, lo, _ in group.found] == [0, 1]
    group.act = lambda call: 0
    group.order = [1]
    assert group.run() == 0
    assert [lo // 8 for _, lo, _ in group.found] == [4, 5, 6, 7, 3, 2, 1, 0]


@pytest.mark.parametrize(("blocks", "chain"), [
    (1 << 17, 1), ((1 << 15) - 1, 1), (1 << 15, 1), ((1 << 15) + 1, 1), ((1 << 16) + 6, 2),
])  # fmt: skip
def test_very_many_blocks(blocks, chain):
    """More than a word can count are taken several at a time."""
    group = TileGroupRun(blocks, blocks, 0, chain, 2)
    group.act = lambda call: group.come(1) if call == 0 else 0
    assert group.run() == 0
    assert sorted(lo for _, lo, _ in group.found) == list(range(blocks))
    assert 1 <= sum(who == 0 for who, _, _ in group.found) <= 5 * chain


@pytest.mark.parametrize(("rows", "blocks", "element", "chain", "told"), [
    (64, 7, 0, 1, 7), (3, 8, 0, 1, 8), (0, 4, 0, 1, 4), (60, 12, 10, 1, 12), (60, 12, 10, 2, 12),
    (100, -8, 0, 1, 12), (15, -8, 0, 1, 2), (1, -8, 0, 1, 1), (0, -8, 0, 1, 0),
])  # fmt: skip
@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_blocks_of_a_group(rows, blocks, element, chain, told, threads):
    """Every row once, no block across elements, blocks that add up one after the other; and equal
    parts for threads to begin with."""
    group = TileGroupRun(rows, blocks, element, chain, threads)
    assert group.run() == 0
    calls = [(lo, hi) for _, lo, hi in group.found]
    assert len(calls) == told
    for k in range(0, told, chain):
        assert calls[k : k + chain] == sorted(calls[k : k + chain])
        assert (
            not element or chain == 1 or len({lo // element for lo, _ in calls[k : k + chain]}) == 1
        )
    calls.sort()
    assert [lo for lo, _ in calls] == [0, *[hi for _, hi in calls]][:told]
    if told:
        assert calls[-1][1] == rows
    if element:
        assert all((hi - 1) // element == lo // element for lo, hi in calls)
    if threads > 1 and told:
        parts = group.parts()
        assert [first for first, _ in parts] == [0, *[end for _, end in parts]][: len(parts)]
        assert parts[-1][1] == told // chain
        sizes = [end - first for first, end in parts] + [0] * (threads - len(parts))
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.sample(1)
def test_each_thread_looks_at_the_positions_of_a_scatter_once(threads):
    """However many places it has: every block of them goes through all positions."""
    x, v = (input_node(spec((n, 64), float32)) for n in (100_000, 1000))
    i = input_node(spec((1000,), int64))
    graph = Graph([x, i, v], [ScatterAdd(0)(x, i, v)])
    (group,) = (
        b
        for b in KernelPlan(graph).tile_groups
        if any(shared_destinations(n) is not None for n in b.kernels[0].nests)
    )
    assert group.rows == 100_000
    assert group.tiles == 0
    assert group.tile_rows == EACH
    run = TileGroupRun(100_000, -group.tile_rows, 0, 1, threads)
    assert run.run() == 0
    assert [(hi - lo) // (100_000 // threads) for _, lo, hi in run.found] == [1] * threads
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
    scatters = [
        b
        for b in KernelPlan(graph).tile_groups
        if any(isinstance(n, BlockedScatter) for n in b.kernels[0].nests)
    ]
    assert [group.rows != 0 for group in scatters] == [shared]
