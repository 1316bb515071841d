"""Large results that are computed again, rather than kept until the gradient needs them."""

from __future__ import annotations

import pytest

from retrograd.schedule.kernel import copied
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling import groups, remat
from retrograd.tuning import TUNING
from tests.schedule.tiling.attention import attention, given, graph_of


def test_nothing_is_computed_again_from_what_was_overwritten(tiny):
    """As a donated input may be, between the kernels that would run a second time."""
    graph = graph_of(attention(), given((2, 2, 6), 3, 6))

    def keeping() -> KernelPlan:
        with pytest.MonkeyPatch.context() as usual:
            usual.setattr(TUNING, "uncached_bytes", 1 << 60)
            return KernelPlan(graph)

    plan = keeping()
    assert len(remat.recompute(plan.kernels, plan.tile_groups, [])) > len(plan.kernels)
    plan = keeping()
    scores = next(k for k in plan.kernels if k.nodes[0].op == "dot_general")
    writer = copied(scores, [])
    writer.outs = scores.reads[:1]
    home = next(b for b in plan.tile_groups if any(k is scores for k in b.kernels))
    at = 1 + next(n for n, k in enumerate(plan.kernels) if k is home.kernels[-1])
    tile_groups = [*plan.tile_groups, groups.TileGroup([writer])]
    overwritten = [*plan.kernels[:at], writer, *plan.kernels[at:]]
    assert len(remat.recompute(overwritten, tile_groups, [])) == len(overwritten)
