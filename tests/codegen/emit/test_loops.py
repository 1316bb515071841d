"""Loops in lanes: whole vectors, and what is left of rows of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.passes import optimize
from retrograd.runtime.executable import Executable
from retrograd.tuning import TUNING
from tests.codegen.gemm.known_sizes import same
from tests.runtime.agreement import GuardedProgram


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of other settings must not be found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


@pytest.mark.slow
def test_last_lanes_of_rows_of_any_length() -> None:
    """Vectors of two sizes for what is left of a row."""

    def f(x: Any, y: Any) -> Any:
        z = rg.where(x > y, rg.exp(x), x * y[:, :1])
        return z, z.astype(rg.float64) / 3.0, x.max(1), rg.cumsum(x[:, ::-1], 1), x[:, ::2] > 0

    named = GuardedProgram(optimize(rg.trace(f, *[spec((Dim("N"), Dim("M")), float32)] * 2)))
    rng = np.random.default_rng(0)
    for m in (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 25, 31, 33, 100):
        arrays = [rng.normal(size=(5, m)).astype(np.float32) for _ in range(2)]
        found = named(arrays)
        named.check_guards()
        known = Executable(optimize(rg.trace(f, *arrays)))(arrays)
        for y, z in zip(found, known, strict=True):
            same(y, z, m)


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 24])
@pytest.mark.sample(4)
def test_rows_of_tiles(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles have a known number of rows, so that fewer ways through what is left are written."""

    def f(x: Any, y: Any) -> Any:
        return rg.sum(x * y, 1), rg.tanh(x) + y[:1], rg.sum(x * x, 0)

    rng = np.random.default_rng(rows)
    arrays = [rng.normal(size=(rows, 40)).astype(np.float32) for _ in range(2)]
    graph = optimize(rg.trace(f, *arrays))
    whole, all_found = Executable(graph)(arrays), []
    monkeypatch.setattr(TUNING, "parallel_grain_ns", 0)
    monkeypatch.setattr(TUNING, "tile_grain_ns", 1)
    for size in (40, 320, 1 << 10, 1 << 19):
        monkeypatch.setattr(TUNING, "tile_bytes", size)
        for threads in (1, 2):
            with rg.num_threads(threads):
                all_found.append(Executable(graph)(arrays))  # all in memory of their own
    for found in all_found:
        for y, z in zip(found, whole, strict=True):
            same(y, z, rows)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 100])
def test_parts_in_turn_and_steps_of_two_or_back(n: int) -> None:
    """Read and written in whole vectors: memory next to the arrays is neither read nor written."""
    rng = np.random.default_rng(n)
    z = (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(np.complex64)
    x = rng.normal(size=2 * n).astype(np.float32)
    points = [rng.normal(size=n) for _ in range(3)]
    f = rg.jit(lambda z, x, a, b, c: (
        rg.conj(z) + 1, x[::2] * 2, x[1::2], x[::-1], rg.stack([a, b, c], axis=-1), rg.real(z)
    ))  # fmt: skip
    found = f(z, x, *points)
    a, b, c = points
    wanted = (np.conj(z) + 1, x[::2] * 2, x[1::2], x[::-1], np.stack([a, b, c], -1), z.real)
    for y, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(y), right)
