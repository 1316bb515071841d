"""Products of sizes that are known when they are there: small ones by a routine of their own, to
the bits of programs that know the sizes, inside their memory; and programs of few rows, which one
thread goes through in one go."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.target import Target
from retrograd.ir import Dim, Graph, float32, float64, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.passes import optimize
from retrograd.runtime import compiler
from retrograd.runtime.executable import Executable
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING
from tests.codegen.gemm.known_sizes import same
from tests.runtime.agreement import GuardedProgram
from tests.runtime.fuzz_checks import Threaded, gather_threads

LAYOUTS = list(itertools.product((False, True), repeat=2))
# Around the sizes of tiles and vectors; (m, k, n).
SIZES = [
    (0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (1, 3, 17), (3, 17, 1), (4, 2, 5), (5, 9, 8),
    (8, 4, 16), (9, 1, 17), (7, 16, 32), (17, 3, 31), (16, 33, 33), (40, 5, 49), (3, 100, 65),
    (17, 17, 17), (100, 2, 16), (2, 7, 500),
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of other settings must not be found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


def product(
    shapes: tuple[tuple[Any, ...], tuple[Any, ...]], turned: tuple[bool, ...], dtype: Any
) -> Graph:
    a, b = (input_node(spec(s, dtype)) for s in shapes)
    first = len(shapes[0]) - 2
    axes = (first + (not turned[0]),), (first + turned[1],)
    return Graph([a, b], [DotGeneral(*axes, tuple(range(first)), tuple(range(first)))(a, b)])


def shapes_of(batch: Any, sizes: Any, turned: tuple[bool, ...]) -> Any:
    m, k, n = sizes
    a, b = (k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)
    return (*batch, *a), (*batch, *b)


@pytest.mark.parametrize("turned", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("count", [1, 3], ids=["one", "stack"])
@pytest.mark.sample(2)
def test_one_program_for_all_sizes(turned: Any, dtype: Any, count: int) -> None:
    """One program, to the bit what programs of known sizes give."""
    batch = () if count == 1 else (Dim("S"),)
    named = GuardedProgram(product(shapes_of(batch, map(Dim, "MKN"), turned), turned, dtype))
    rng = np.random.default_rng(0)
    for m, k, n in SIZES:
        for s in (0, 1, 5) if batch else (1,):
            shapes = shapes_of((s,) if batch else (), (m, k, n), turned)
            arrays = [rng.normal(size=x).astype(dtype.dtype) for x in shapes]
            found = named(arrays)[0]
            named.check_guards()
            a, b = (np.swapaxes(x, -1, -2) if t else x for x, t in zip(arrays, turned, strict=True))
            np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)
            if n != 1 and s:  # without columns the sums of known sizes are taken in another order
                known = Executable(product(shapes, turned, dtype))
                same(found, known(arrays)[0], (s, m, k, n))


def test_stacks_of_views() -> None:
    """Matrices of a stack may lie anywhere in memory, turned and in several axes."""

    def f(x: Any, y: Any) -> Any:
        z = rg.swapaxes(x, 1, 2)  # [S, H, N, D]
        return z @ rg.swapaxes(rg.swapaxes(y, 1, 2), 2, 3), rg.swapaxes(z, 0, 1) @ y[0, 0, :2].T

    named = Executable(rg.trace(f, *[spec((*map(Dim, "SNH"), 4), float32)] * 2), simplify=True)
    rng = np.random.default_rng(0)
    for s, n, h in [(1, 4, 3), (3, 17, 3), (2, 5, 4)]:
        arrays = [rng.normal(size=(s, n, h, 4)).astype(np.float32) for _ in range(2)]
        x, y = (a.swapaxes(1, 2) for a in arrays)
        found = named(arrays)
        np.testing.assert_allclose(found[0], x @ y.swapaxes(2, 3), rtol=1e-4, atol=1e-5)
        known = Executable(rg.trace(f, *arrays), simplify=True)(arrays)
        for a, b in zip(found, known, strict=True):
            same(a, b, (s, n, h))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "registers"), [(16, 32), (8, 16), (4, 32), (4, 16), (2, 16)])
@pytest.mark.sample(1)
def test_other_machines(monkeypatch: pytest.MonkeyPatch, width: int, registers: int) -> None:
    """Tiles of every shape; all of them give the same bits."""
    here, made = compiler.Compiler(), compiler.Compiler()
    made.machine = Target(width, registers, here.machine.fma)
    rng = np.random.default_rng(0)
    for dtype, turned in itertools.product((float32, float64), LAYOUTS):
        graph = product(shapes_of((), map(Dim, "MKN"), turned), turned, dtype)
        own = []
        for one in (here, made):
            monkeypatch.setattr(compiler, "_ENGINE", one)
            own.append(Executable(graph))
        for m, k, n in [(3, 5, 7), (9, 4, 37), (20, 17, 16)]:
            shapes = shapes_of((), (m, k, n), turned)
            arrays = [rng.normal(size=x).astype(dtype.dtype) for x in shapes]
            same(own[0](arrays)[0], own[1](arrays)[0], (m, k, n))


def stacked(x: Any, y: Any) -> Any:
    return rg.tanh(x @ y)


def rowwise(x: Any, y: Any) -> Any:
    return rg.softmax(x * 2.0, -1) + y, rg.exp(x - y).sum(-1), x.sum(1)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("f", "shapes"), [(stacked, ("SNK", "SKM")), (rowwise, ("SNK", "SNK"))], ids=["stack", "rows"]
)
@pytest.mark.sample(1)
def test_blocks_by_bytes(
    f: Any, shapes: tuple[str, str], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a size that is not known are cut by what they turn out to have."""
    monkeypatch.setattr(TUNING, "tile_bytes", 1 << 12)
    monkeypatch.setattr(TUNING, "parallel_grain_ns", 1)
    gather_threads()
    graph = optimize(rg.trace(f, *[spec(tuple(map(Dim, s)), float32) for s in shapes]))
    assert any(b.tile_count is not None for b in KernelPlan(graph).tile_groups)
    named = Threaded(graph, threads)
    monkeypatch.setattr(TUNING, "parallel_grain_ns", 0)  # from now on threads share all calls
    rng = np.random.default_rng(0)
    for sizes in [(0, 3, 4, 5), (1, 1, 3, 3), (3, 17, 8, 9), (40, 3, 3, 3), (2, 60, 33, 50)]:
        values = dict(zip("SNKM", sizes, strict=True))
        arrays = [rng.normal(size=[values[d] for d in s]).astype(np.float32) for s in shapes]
        found = named(arrays)
        named.check_guards()
        known = Executable(optimize(rg.trace(f, *arrays)))(arrays)
        for y, z in zip(found, known, strict=True):
            same(y, z, sizes)
