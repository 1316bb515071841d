"""Matrix products that fetch what kernels behind them overwrite: which buffers, and that results
are the same."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import retrograd as rg
from retrograd.runtime import compiler
from retrograd.runtime.executable import Executable
from retrograd.schedule.kernel import gemms
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING
from tests.runtime.fuzz_checks import Threaded, gather_threads

ROWS, COLUMNS, BATCH = 192, 160, 128


def step(w, m, x, g):
    """A step of gradient descent with momentum, for the weights of a linear layer."""
    m = 0.9 * m + g.T @ x
    return w - 0.1 * m, m


@pytest.fixture
def arrays():
    r = np.random.default_rng(0)
    shapes = (ROWS, COLUMNS), (ROWS, COLUMNS), (BATCH, COLUMNS), (BATCH, ROWS)
    return [r.normal(size=s).astype(np.float32) for s in shapes]


def fetched(plan: KernelPlan):
    """What products fetch: input, bytes of a row, and the most bytes."""
    nests = gemms(plan.kernels)
    return [(b.number, *sizes) for n in nests for b, *sizes in n.prefetch]


def test_what_is_updated_in_place_is_fetched_by_row(arrays):
    plan = KernelPlan(rg.trace(step, *arrays), donate=(0, 1))
    assert sorted(fetched(plan)) == [(k, 4 * COLUMNS, TUNING.tile_bytes // 2) for k in (0, 1)]


def test_nothing_is_fetched_where_results_are_new_arrays(arrays):
    assert fetched(KernelPlan(rg.trace(step, *arrays))) == []


def test_what_the_product_reads_itself_is_not_fetched():
    def f(w, x):
        return w - 0.1 * (w @ x)

    x = np.ones((256, 256), np.float32)
    assert fetched(KernelPlan(rg.trace(f, x, x), donate=(0,))) == []


def test_what_the_product_makes_is_not_fetched(arrays):
    """It is there, and rows of buffers that are no rows of the tile group are not known."""

    def f(w, x, g):
        y = g.T @ x
        return w + y.sum(0), rg.exp(y)

    w = np.ones((1, COLUMNS), np.float32)
    assert fetched(KernelPlan(rg.trace(f, w, *arrays[2:]), donate=(0,))) == []


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_are_those_of_new_arrays(arrays, threads):
    gather_threads()
    graph = rg.trace(step, *arrays)
    expected = Threaded(graph, threads)(arrays)
    w, m, x, g = (a.astype(np.float64) for a in arrays)
    m = 0.9 * m + g.T @ x
    np.testing.assert_allclose(expected[0], w - 0.1 * m, rtol=1e-4, atol=1e-4)
    with rg.num_threads(threads):
        found = Executable(graph, donate=(0, 1)).consume([a.copy() for a in arrays])
    for y, e in zip(found, expected, strict=True):
        assert y.tobytes() == e.tobytes()


@pytest.mark.parametrize("sizes", [(8, 48, 7), (100, 300, 65), (64, 100, 1000)], ids=str)
def test_areas_are_used_up_in_order_and_nothing_is_written(sizes):
    m, n, k = sizes
    r = np.random.default_rng(1)
    a, b = r.normal(size=(m, k)).astype(np.float32), r.normal(size=(k, n)).astype(np.float32)
    areas = [np.arange(size, dtype=np.uint8) for size in (640, 7, 1 << 20)]
    table = [word for area in areas for word in (area.ctypes.data, area.size)]
    soon = np.array([*table, 0, 0, 55], np.int64)
    work, c = np.empty(TUNING.gemm_pack_bytes, np.uint8), np.full((m, n), np.nan, np.float32)
    i64, ptr = ctypes.c_int64, ctypes.c_void_p
    kinds = [i64] * 3 + [ptr, i64, i64] * 2 + [ptr, i64, ctypes.c_bool, ptr, ptr, ptr, ptr]
    routine = ctypes.CFUNCTYPE(None, *kinds)(compiler.engine().address("rg_gemm_float32"))
    places = [x.ctypes.data for x in (a, b, c, work, soon)]
    routine(m, n, k, places[0], k, 1, places[1], n, 1, places[2], n, False, *places[3:], None, None)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
    left = soon[1:6:2]
    taken = [area.size - rest for area, rest in zip(areas, left.tolist(), strict=True)]
    assert [int(t) for t in soon[::2][:3] - np.array(table[::2])] == taken
    assert all(rest == 0 or sum(taken[i + 1 :]) == 0 for i, rest in enumerate(left.tolist()))
    assert soon[6:].tolist() == [0, 0, 55]
    assert all((area == np.arange(area.size, dtype=np.uint8)).all() for area in areas)
