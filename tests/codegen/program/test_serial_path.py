"""Programs of few rows, which one thread goes through in one go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.program.serial_path import limits
from retrograd.ir import Dim, float32, spec
from retrograd.passes import optimize
from retrograd.runtime.executable import Executable
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING
from tests.codegen.gemm.known_sizes import same
from tests.runtime.fuzz_checks import Threaded, gather_threads


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of other settings must not be found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_loops_of_few_rows(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop whose rows have a name: one thread goes through few of them in one go."""
    gather_threads()

    def loss(h: Any, w: Any, u: Any, xs: Any) -> Any:
        def body(s: Any, x: Any) -> Any:
            s = rg.tanh(s @ w + x @ u)
            return s, s

        return (rg.scan(body, h, xs)[1] ** 2).sum()

    f = rg.value_and_grad(loss, (0, 1, 2))
    shapes = (("B", 16), (16, 16), (8, 16), (5, "B", 8))
    specs = [spec(tuple(Dim(d) if isinstance(d, str) else d for d in s), float32) for s in shapes]
    graph = optimize(rg.trace(f, *specs))
    plan = KernelPlan(graph)
    regions = [r for k in plan.kernels for r in regions_of(k)]
    assert any(
        limits([b for block in r.tile_groups for b in block]) for r in regions if r.tile_groups
    )
    named = Threaded(graph, threads)
    monkeypatch.setattr(TUNING, "parallel_grain_ns", 0)  # from now on threads share all calls
    rng = np.random.default_rng(0)
    for n in (0, 1, 3, 17, 2500):
        arrays = [
            rng.normal(0, 0.3, [n if isinstance(d, str) else d for d in s]).astype(np.float32)
            for s in shapes
        ]
        found = named(arrays)
        named.check_guards()
        known = Executable(optimize(rg.trace(f, *arrays)))(arrays)
        for y, z in zip(found, known, strict=True):
            if n > 1:
                same(y, z, n)
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_only_named_rows_of_few_kernels_have_the_way() -> None:
    """Where sizes are known it is known, too, whether there is more than one block."""

    def chain(x: Any, count: int = 4) -> Any:
        for _ in range(count):
            x = rg.tanh(x @ rg.ones((4, 4)))
        return x

    def most(f: Any, rows: Any) -> dict[Dim, int] | None:
        return limits(KernelPlan(optimize(rg.trace(f, spec((rows, 4), float32)))).tile_groups)

    rows = Dim("N")
    found = most(chain, rows)
    assert found is not None
    assert list(found) == [rows]
    assert found[rows] > 16
    assert most(chain, 1 << 20) is None
    assert most(lambda x: [chain(x + k, 30) for k in range(8)], rows) is None
