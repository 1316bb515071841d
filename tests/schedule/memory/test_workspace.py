"""Totals that wait for others: as many as a walk through the batches shows."""

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.loop_nest import GemmNest
from retrograd.schedule.memory.workspace import waiting, work_bytes
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING


def most_at_once(k: int) -> int:
    """Pairs of equal size are joined as soon as both are there; the batch at hand has its own."""
    places: set[int] = set()
    for batch in range(1, -(-k // PRODUCTS.batch)):
        places |= {level for level in range(batch.bit_length()) if batch >> level & 1}
    return 1 + len(places)


def test_as_many_as_there_are_digits() -> None:
    batch = PRODUCTS.batch
    for k in (1, batch - 1, batch, batch + 1, 2 * batch, 2 * batch + 1, 5 * batch, 9 * batch + 3):
        assert waiting(k) == most_at_once(k), k


def test_only_long_sums_need_memory_for_totals() -> None:
    def taken(k: int | Dim) -> int:
        plan = KernelPlan(
            rg.trace(lambda x, y: x @ y, spec((70, k), float32), spec((k, 90), float32))
        )
        products = [n for kernel in plan.every for n in kernel.nests if isinstance(n, GemmNest)]
        assert products
        assert plan.work is not None
        assert plan.work.bytes == work_bytes(products, plan.tile_groups)
        return work_bytes(products, plan.tile_groups)

    assert taken(PRODUCTS.group) == TUNING.gemm_pack_bytes
    assert taken(PRODUCTS.group + 1) == TUNING.gemm_pack_bytes + TUNING.gemm_totals_bytes
    assert taken(Dim("K")) == TUNING.gemm_pack_bytes + TUNING.gemm_totals_bytes
