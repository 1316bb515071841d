"""What is read next to a padding stays in the rows of a tile group, also where nothing is to be
read.

Positions are evaluated by hand for all iterations of the loops, and results compared with NumPy's.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.passes import optimize
from retrograd.runtime.backend import Array
from retrograd.schedule.loop_nest import LoopNest, live
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.ssa import SSAValue
from retrograd.schedule.tiling.affine import Touch, touches
from retrograd.tuning import TUNING
from tests.runtime.fuzz_checks import COUNTS, Threaded, gather_threads

OPS: dict[str, Any] = {
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "imul": lambda a, b: a * b,
    "idiv": lambda a, b: a // b,
    "imod": lambda a, b: a % b,
    "ilt": lambda a, b: a < b,
    "ige": lambda a, b: a >= b,
    "bitwise_and": lambda a, b: a and b,
    "isel": lambda c, a, b: a if c else b,
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the smallest of work cut in many blocks."""
    gather_threads()
    for name, value in {
        "parallel_grain_ns": 0,
        "group_rows": 1,
        "tile_grain_ns": 1e-3,
        "tile_bytes": 64,
    }.items():
        monkeypatch.setattr(TUNING, name, value)


def evaluate(v: SSAValue, counters: tuple[int, ...]) -> Any:
    if v.op == "size":
        return v.attr
    if v.op == "loop":
        return counters[v.attr]
    return OPS[v.op](*(evaluate(a, counters) for a in v.args))


def positions(nest: LoopNest, load: SSAValue) -> dict[int, set[int]]:
    """By the iteration of the outermost loop, where a load reads."""
    found: dict[int, set[int]] = {}
    for counters in itertools.product(*(range(int(n)) for n in nest.loops)):
        found.setdefault(counters[0], set()).add(evaluate(load.args[0], counters))
    return found


def assert_in_rows(plan: KernelPlan) -> int:
    """How many loads of what exists as blocks are under a condition; all are in their rows."""
    guarded = 0
    for joined in plan.tile_groups:
        assert isinstance(joined.rows, int)
        for nest in (n for k in joined.kernels for n in k.nests):
            for load in (v for v in live(nest) if v.op == "load" and v.attr in joined.local):
                share = load.attr.type.size // joined.rows
                times = int(nest.loops[0]) // joined.rows
                for at, read in positions(nest, load).items():
                    first = at // times * share
                    assert first <= min(read)
                    assert max(read) < first + share
                guarded += load.args[0].op == "isel"
    return guarded


def padded(x: Any, widths: list[tuple[int, int]], library: Any) -> Any:
    """Sums of a function of x, moved: what is beyond its edges is zero."""
    y = library.sin(x) * 2 + library.cos(x)
    z = library.pad(y, widths) * library.pad(y * y, [(b, a) for a, b in widths])
    return library.sqrt(library.abs(z)) + library.sin(z)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sample(1)
def test_random_paddings(seed: int, tiny: None) -> None:
    r = np.random.default_rng(seed)
    shape = tuple(int(n) for n in r.integers(2, 19, 3))
    widths = [(0, 0), *((int(a), int(b)) for a, b in r.integers(0, 5, (2, 2)))]
    if seed % 4 == 3:
        widths[0] = (1, 2)  # rows next to the padding are no rows of x
    x = r.normal(size=shape).astype(np.float32)
    graph = optimize(rg.trace(lambda x: padded(x, widths, rg), x))
    programs = [Threaded(graph, count) for count in COUNTS]
    assert_in_rows(programs[0].plan)
    results = [program([x])[0] for program in programs]
    expected = padded(x.astype(np.float64), widths, np)
    np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-5)
    assert len({y.tobytes() for y in results}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("size", "kernel"), [(7, 3), (11, 3)])
@pytest.mark.sample(1)
def test_gradients_of_convolutions_by_pieces_of_images(size: int, kernel: int, tiny: None) -> None:
    """What the kernels contribute to the gradient of an input is never there as a whole."""

    def loss(x: Any, w: Any) -> Any:
        return (F.max_pool2d(rg.relu(F.conv2d(rg.tanh(x), w)), 2) ** 2).sum()

    r = np.random.default_rng(0)
    shapes = (6, 3, size, size), (4, 3, kernel, kernel)
    arrays: list[Array] = [r.normal(size=s).astype(np.float32) for s in shapes]
    graph = optimize(rg.trace(rg.grad(loss, argnums=(0, 1)), *arrays))
    programs = [Threaded(graph, count) for count in COUNTS]
    assert assert_in_rows(programs[0].plan) > 0
    results = [program(arrays) for program in programs]
    assert len({b"".join(y.tobytes() for y in ys) for ys in results}) == 1
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x, w = (torch.tensor(a).double().requires_grad_() for a in arrays)
    y = torch.max_pool2d(torch.conv2d(x.tanh(), w).relu(), 2)
    (y**2).sum().backward()
    for found, given in zip(results[0], (x, w), strict=True):
        np.testing.assert_allclose(found, given.grad, rtol=1e-4, atol=1e-4)


def test_a_condition_that_never_holds_reads_nothing_beyond() -> None:
    """Of an array without elements nothing is read but what is in any memory."""
    x = np.zeros((3, 0), np.float32)
    graph = rg.trace(lambda x: rg.pad(x, [(0, 0), (2, 2)]) + 1, x)
    nests = [n for k in KernelPlan(graph).kernels for n in k.nests]
    reads: list[Touch] = [t for nest in nests for t in touches(nest)[0]]
    assert all(t.position is not None and not t.position.steps for t in reads)
    np.testing.assert_array_equal(Threaded(graph, 1)([x])[0], np.ones((3, 4)))
