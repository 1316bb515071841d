"""Tile groups that are cut inside of their elements: attention over long sequences, in blocks of
queries.

Values and gradients are compared with NumPy's in float64, bits with those of the same kernels run
one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from retrograd.nn import functional as F
from retrograd.passes import optimize
from retrograd.passes.lowering import strided_views
from retrograd.runtime.backend import Array
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling import groups
from retrograd.schedule.tiling.analysis import Rows, Sums, element
from retrograd.schedule.tiling.groups import TileGroup
from retrograd.tuning import TUNING
from tests.runtime.agreement import GuardedProgram
from tests.runtime.fuzz_checks import COUNTS, Threaded, gather_threads
from tests.schedule.tiling.attention import attention, given, graph_of


def by_hand(arrays: Sequence[Array], allowed: Array | None, added: Array | None) -> list[Array]:
    """The loss and its gradients in float64, written down."""
    q, k, v = (a.astype(np.float64) for a in arrays)
    scale = 1 / math.sqrt(q.shape[-1])
    s = q @ np.swapaxes(k, -1, -2) * scale + (0.0 if added is None else added)
    if allowed is not None:
        s = np.where(allowed, s, -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = e.sum(-1, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    y = p @ v
    inner = (y * np.sin(y)).sum()
    dy = 2 * inner * (np.sin(y) + y * np.cos(y))
    dp = dy @ np.swapaxes(v, -1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    turned = np.swapaxes(ds, -1, -2)
    return [inner**2, ds @ k * scale, turned @ q * scale, np.swapaxes(p, -1, -2) @ dy]


def inner_groups(plan: KernelPlan) -> list[groups.TileGroup]:
    return [b for b in plan.tile_groups if b.element_rows and b.tiles_per_element > 1]


def close(found: Sequence[Array], expected: Sequence[Array]) -> None:
    for y, r in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, r, rtol=0, atol=2e-5 * float(np.abs(r).max()))


# -- as it is used --------------------------------------------------------------------------------
def masked(rows: int, keys: int) -> Array:
    """What queries may look at; the first, the last and one between may look at nothing."""
    mask = np.random.default_rng(1).random((rows, keys)) < 0.5
    mask[[0, rows // 2, -1]] = False
    return mask


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "keys", "width", "kind"), [
    (409, 409, 13, "causal"), (401, 403, 16, "plain"), (412, 397, 7, "boolean"),
    (409, 409, 8, "boolean and causal"), (403, 401, 5, "added"),
])  # fmt: skip
@pytest.mark.sample(1)
def test_against_numpy(queries, keys, width, kind, monkeypatch):
    monkeypatch.setattr(TUNING, "uncached_bytes", 1 << 20)
    arrays = given((2, 2, queries), width, keys)
    mask = masked(queries, keys) if "boolean" in kind else None
    allowed, added = mask, None
    if kind == "added":
        mask = added = np.random.default_rng(3).normal(size=(queries, keys)).astype(np.float32)
    if "causal" in kind:
        below = np.tri(queries, keys, dtype=bool)
        allowed = below if mask is None else mask & below
    graph = graph_of(attention(mask, "causal" in kind), arrays)
    plan = KernelPlan(graph)
    assert len(inner_groups(plan)) == 2  # one forward, one backward
    assert any(b.summing for b in plan.tile_groups)
    assert any(k.again for k in plan.kernels)
    program = Threaded(graph, 2)
    found = program(arrays)
    program.check_guards()
    close(found, by_hand(arrays, allowed, added))
    if "boolean" in kind:
        empty = ~allowed.any(-1)
        assert (found[1][..., empty, :] == 0).all()


@pytest.mark.slow
def test_memory_grows_as_the_sequence_does():
    """Four times as much for four times the length, not sixteen times, and, beyond a group of
    queries, one more array like the keys, and the values, of a head for each thread."""
    causal = attention(causal=True)
    for function in (causal, rg.grad(causal, argnums=(0, 1, 2))):
        taken = [
            rg.trace(function, *given((1, 2, n), 32, n)).stats().compiled_bytes or 0
            for n in (4096, 16384)
        ]
        assert taken[0] > 0
        assert taken[1] <= 4.4 * taken[0]
        assert taken[1] < 64 * 16384 * 32 * 4  # a few dozen arrays like the queries


def test_a_large_mask_is_not_stored():
    arrays = given((1, 2, 2048), 8, 2048)
    plan = KernelPlan(graph_of(attention(causal=True), arrays))
    assert not any(b.type.shape == (2048, 2048) for b in plan.temporaries)


def test_short_sequences_stay_as_they_are():
    plan = KernelPlan(graph_of(attention(causal=True), given((16, 4, 128), 32, 128)))
    assert not inner_groups(plan)
    assert not any(k.again for k in plan.kernels)


def same_as_in_turn(graph: Graph, arrays: Sequence[Array]) -> None:
    cut = [Threaded(graph, n) for n in COUNTS]
    assert any(b.element_rows for b in cut[0].plan.tile_groups)
    with pytest.MonkeyPatch.context() as usual:
        usual.setattr(TUNING, "parallel_grain_ns", 1e18)
        plain = GuardedProgram(graph)
    expected = plain(arrays)
    for program in [*cut, *cut]:  # each twice: frames are used again
        for y, r in zip(program(arrays), expected, strict=True):
            assert y.tobytes() == r.tobytes()
        program.check_guards()


def turned(q: Any, k: Any, v: Any) -> Any:
    """Scores read row by row, and by another order of the batches."""
    p = rg.softmax(q @ k.mT)
    y = p @ v + rg.permute_dims(p, (1, 0, 2, 3)) @ v
    return (y * rg.sin(y)).sum()


def paired(q: Any, k: Any, v: Any) -> Any:
    """Scores also seen as rows of two queries, which some are added to."""
    p = rg.softmax(q @ k.mT)
    wide = rg.reshape(p, (*p.shape[:-2], p.shape[-2] // 2, 2 * p.shape[-1]))
    z = rg.reshape(rg.sin(wide + rg.sum(v) * rg.arange(wide.shape[-1]) / 9), p.shape)
    y = z @ v
    return (y * rg.sin(y)).sum()


def finished(q: Any, k: Any, v: Any) -> Any:
    """The gradients of keys and values, sums over queries, are changed once they are complete."""
    y = F.scaled_dot_product_attention(q, rg.sin(k), v * v)
    return (y * y).sum() + (k * v[..., :-1]).sum()


@pytest.mark.slow
@pytest.mark.parametrize("loss", [turned, paired, finished])
@pytest.mark.parametrize("far", [8, 1 << 30])
@pytest.mark.sample(1)
def test_bits_where_not_everything_goes_row_by_row(tiny, loss, far):
    tiny.setattr(TUNING, "tile_bytes", 8)
    tiny.setattr(TUNING, "uncached_bytes", far)
    arrays = given((2, 2, 6), 3, 6)
    same_as_in_turn(graph_of(loss, arrays), arrays)


def test_elements_are_what_all_kernels_agree_on():
    """A sum over six rows does not go with blocks of two rows, whoever comes first."""
    kernels = KernelPlan(graph_of(paired, given((2, 2, 6), 3, 6))).kernels
    pairs = next(k for k in kernels if k.nests[0].loops == [2, 2, 3, 12])
    adding = [k for k in kernels if Sums(k).divides(24, set())]
    assert element([pairs], [], 24) == 2
    assert element([adding[0]], adding[:1], 24) == 6
    assert element([pairs, adding[0]], adding[:1], 24) == 0


@pytest.mark.parametrize("rows", [12, 32, 35])
@pytest.mark.parametrize("tiles", [1, 3, 4, 8])
@pytest.mark.parametrize(("elements", "unit"), [(1, 1), (1, 4), (2, 1), (2, 4)])
def test_tiles_begin_at_multiples(rows, tiles, elements, unit):
    """As the launcher cuts them, see `do_tiles` in `runtime/native/launch.c`."""
    group = TileGroup([], elements * rows, elements * tiles, row_multiple=unit)
    group.element_rows = rows if elements > 1 else 0
    units, each = -(-rows // unit), group.tile_multiple
    for e in range(elements):
        edges = [e * rows + min(k * units // tiles * unit, rows) for k in range(tiles + 1)]
        assert all(edge % each == 0 for edge in edges)
    if rows % (unit * tiles) == 0:
        assert each == rows // tiles


SHAPES = [((3, 5), 4, 7), ((2, 3, 9), 3, 11), ((2, 17), 16, 33), ((2, 2, 6), 1, 5), ((5, 8), 2, 8)]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "width", "keys"), SHAPES, ids=str)
@pytest.mark.parametrize(("cache", "causal"), [(8, True), (100, False)])
@pytest.mark.sample(1)
def test_bits_are_those_of_kernels_in_turn(tiny, shape, width, keys, cache, causal):
    tiny.setattr(TUNING, "tile_bytes", cache)
    arrays = given(shape, width, keys)
    graph = graph_of(attention(causal=causal), arrays)
    same_as_in_turn(graph, arrays)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "width", "keys"), SHAPES, ids=str)
@pytest.mark.sample(1)
def test_products_by_the_routine(tiny, shape, width, keys):
    """Which are cut into rows and into terms of sums as well."""
    for name in strided_views.LIMITS:
        tiny.setattr(strided_views, name, 0)
    tiny.setattr(TUNING, "tile_bytes", 8)
    arrays = given(shape, width, keys)
    graph = graph_of(attention(), arrays)
    symbols = GuardedProgram(graph).recipe.facts.symbols
    assert any(name.startswith("rg_gemm") for name in symbols)
    close(GuardedProgram(graph)(arrays), by_hand(arrays, None, None))
    same_as_in_turn(graph, arrays)


@pytest.mark.slow
def test_half_precision_is_not_added_up_in_parts(tiny):
    """Partial sums in memory would be rounded to half precision."""
    tiny.setattr(TUNING, "tile_bytes", 8)
    arrays = [a.astype(np.float16) for a in given((2, 2, 6), 4, 6)]
    graph = graph_of(turned, arrays)
    program = Threaded(graph, 2)
    assert not any(b.summing for b in program.plan.tile_groups)
    with pytest.MonkeyPatch.context() as usual:
        usual.setattr(TUNING, "parallel_grain_ns", 1e18)
        plain = GuardedProgram(graph)
    for y, r in zip(program(arrays), plain(arrays), strict=True):
        assert y.tobytes() == r.tobytes()


def test_parts_of_a_concat_are_no_rows_of_it(monkeypatch):
    """A kernel whose nests each write a part of a buffer is not cut into rows of this buffer."""
    for name, value in {
        "parallel_grain_ns": 0,
        "row_split_bytes": 4,
        "group_rows": 1,
        "tile_grain_ns": 1e-3,
        "tile_bytes": 64,
    }.items():
        monkeypatch.setattr(TUNING, name, value)
    x = np.random.default_rng(0).integers(1, 200, (17, 17)).astype(np.uint8)

    def f(x):
        parts = rg.concat([x, *[rg.bitwise_invert(x)] * 5])
        return rg.remainder(parts, parts | 1)

    program = GuardedProgram(rg.trace(f, x))
    (kernel,) = (k for k in program.plan.kernels if len(k.nests) == 6)
    assert Rows(kernel).count == 0
    assert not Rows(kernel).divides(289, set())
    found = program([x])[0]
    program.check_guards()
    y = np.concatenate([x, *[~x] * 5])
    np.testing.assert_array_equal(found, y % (y | 1))


@pytest.mark.parametrize(
    ("columns", "rows", "strips"),
    [(16, 300, True), (64, 300, False), (64, 512, True), (64, 500, False), (300, 512, False)],
)
def test_blocks_of_a_product_that_reads_strips_are_wide(columns, rows, strips):
    """One for each thread, whatever follows; a product with more columns copies its strips, which
    are wide where these share places in the caches."""

    def step(w, x, g):
        return w - 0.1 * (x.T @ g)

    r = np.random.default_rng(0)
    shapes = (rows, columns), (600, rows), (600, columns)
    arrays = [r.normal(size=s).astype(np.float32) for s in shapes]
    graph = rg.trace(step, *arrays)
    [joined] = [b for b in KernelPlan(graph).tile_groups if len(b.kernels) > 1]
    assert (joined.tiles == 0) is strips
    assert joined.tile_rows == 0
    w, x, g = (a.astype(np.float64) for a in arrays)
    gather_threads()
    results = [Threaded(graph, count)(arrays)[0] for count in COUNTS]
    np.testing.assert_allclose(results[0], w - 0.1 * (x.T @ g), rtol=1e-4, atol=1e-4)
    assert len({y.tobytes() for y in results}) == 1


@pytest.mark.slow
def test_images_go_through_convolutions_a_few_at_a_time():
    """Though a product of matrices behind them, which wants more rows, has as many."""

    def f(x, w, head):
        h = rg.relu(F.conv2d(rg.relu(F.conv2d(x, w)), w))
        return h.reshape(len(x), -1) @ head

    r = np.random.default_rng(0)
    shapes = (64, 32, 16, 16), (32, 32, 5, 5), (2048, 10)
    arrays = [(r.normal(size=s) / 10).astype(np.float32) for s in shapes]
    graph = optimize(rg.trace(f, *arrays))
    tile_groups = [b for b in KernelPlan(graph).tile_groups if b.rows == len(arrays[0])]
    assert (
        max(b.max_tile_rows * b.row_bytes(o) for b in tile_groups for o in b.writes)
        < TUNING.tile_result_bytes
    )
    gather_threads()
    results = [Threaded(graph, count)(arrays)[0] for count in COUNTS]
    assert len({y.tobytes() for y in results}) == 1
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x, w, head = (torch.tensor(a).double() for a in arrays)
    h = torch.conv2d(torch.conv2d(x, w).relu(), w).relu()
    np.testing.assert_allclose(results[0], h.flatten(1) @ head, rtol=1e-4, atol=1e-5)


def test_large_rows_without_products_are_tiles_as_small_as_can_be():
    """No product wants rows enough; what is summed is still in the cache."""

    def f(a, b):
        p = a[:, :, None] * b[:, None, :]
        return (p * p).reshape((64, -1)).sum(1)

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(64, n)).astype(np.float32) for n in (400, 500)]
    program = GuardedProgram(graph := optimize(rg.trace(f, *arrays)))
    (group,) = (g for g in KernelPlan(graph).tile_groups if len(g.kernels) == 2)
    assert group.tiles == 64
    assert [b.bytes for b in group.local] == [4 * 64 * 400 * 500]
    (found,) = program(arrays)
    a, b = (x.astype(np.float64) for x in arrays)
    np.testing.assert_allclose(found, (a**2).sum(1) * (b**2).sum(1), rtol=1e-5)


@pytest.mark.parametrize(("columns", "tiles"), [(10, 1), (40, 1), (64, 2), (100, 2), (512, 8)])
def test_tiles_of_a_sum_of_columns_are_whole_lines_of_the_cache(columns, tiles):
    graph = optimize(rg.trace(lambda x: (x * x).sum(0), rg.spec((20_000, columns))))
    (group,) = KernelPlan(graph).tile_groups
    assert group.tiles == tiles
    assert group.max_tile_rows >= min(columns, TUNING.narrow_sum_columns)
