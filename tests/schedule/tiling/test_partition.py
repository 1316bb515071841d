"""Tile groups of as many rows as a size that is not known: blocks in the cache, whatever the size
is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.nn import functional as F
from retrograd.passes import optimize
from retrograd.runtime.executable import Executable
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling import groups
from retrograd.tuning import TUNING
from tests.runtime.fuzz_checks import Threaded, gather_threads

N = Dim("N")


def layer_norm(x: Any, w: Any) -> Any:
    return (F.layer_norm(x, (w.shape[0],), w) ** 2).sum()


def attention(x: Any, w: Any) -> Any:
    q = rg.reshape(x, (x.shape[0], 5, 8))
    return (rg.softmax(q @ rg.matrix_transpose(q)) @ q * w[0]).sum()


def perceptron(x: Any, w: Any) -> Any:
    y = rg.tanh(x * w)
    return rg.logsumexp(rg.softmax(y) @ rg.ones((w.shape[0], 7)), axis=1).sum()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("loss", [layer_norm, attention, perceptron])
@pytest.mark.sample(1)
def test_blocks_of_any_number_of_rows(
    loss: Callable[..., Any], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TUNING, "tile_bytes", 1 << 13)  # for blocks of a few rows
    monkeypatch.setattr(TUNING, "parallel_grain_ns", 1)
    gather_threads()
    f = rg.value_and_grad(loss, (0, 1))
    graph = optimize(rg.trace(f, spec((N, 40), float32), spec((40,), float32)))
    tile_groups = [b for b in KernelPlan(graph).tile_groups if b.local and isinstance(b.rows, Dim)]
    assert tile_groups
    named = Threaded(graph, threads)
    rng = np.random.default_rng(0)
    near = {b.tile_rows * k + d for b in tile_groups for k in (1, 2) for d in (-1, 0, 1)}
    for n in sorted({0, 1, 2, 3, 50, 333} | near):
        arrays = [rng.normal(size=s).astype(np.float32) for s in ((n, 40), (40,))]
        found = named(arrays)
        named.check_guards()
        known = Executable(rg.trace(f, *arrays), simplify=True)(arrays)
        for y, z in zip(found, known, strict=True):
            if n > 1:
                assert y.tobytes() == z.tobytes(), n
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


def test_the_largest_block_is_never_larger_than_said() -> None:
    """As the native code cuts: rows // piece blocks, two at least, of two rows."""
    for piece in range(1, 40):
        most = groups.TileGroup([], N, 0, piece).max_tile_rows
        for rows in range(300):
            blocks = max(rows // piece, min(rows, 2))
            sizes = [rows * (k + 1) // blocks - rows * k // blocks for k in range(blocks)]
            assert max(sizes, default=0) <= most


def test_sizes_come_in_an_order_that_no_hash_decides():
    """The text of a module numbers them in this order, and is looked up on disk."""
    group = groups.TileGroup([], N)
    assert group.sizes == [N]
