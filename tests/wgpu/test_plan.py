"""What a graph's kernels are on a GPU, and what its arrays take there."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from retrograd.ir import Dim, TensorType, bool_, float16, float32, float64, uint8
from retrograd.ops.leaf import input_node
from retrograd.schedule import loop_nest
from retrograd.schedule.buffer import Buffer
from retrograd.wgpu.device import ALIGNMENT
from retrograd.wgpu.plan import ShaderPlan, device_bytes


def test_bytes_are_those_of_words() -> None:
    n = Dim("N")
    for dtype, each in ((bool_, 4), (uint8, 4), (float16, 4), (float32, 4), (float64, 8)):
        node = input_node(TensorType(dtype, (n, 3)))
        assert device_bytes(Buffer("input", 0, node.type, node), {"N": 7}) == 21 * each


def test_temporaries_are_placed_by_these_bytes() -> None:
    """A hundred bools between two loops take four hundred bytes, and are aligned."""
    plan = ShaderPlan(rg.trace(lambda x: rg.flip(rg.cumsum((x > 0), 0) > 3, (0,)), np.ones(100)))
    placed = plan.layout({}, [], {})
    assert placed.arena >= 400
    assert all(at % ALIGNMENT == 0 for at in placed.offsets.values())


def test_nothing_is_there_for_processors() -> None:
    """No packed matrices, no tiles, no blocks of scatters."""
    x = np.ones((300, 300), np.float32)
    graph = rg.trace(
        lambda x, i: (x @ x, rg.zeros((4, 300)).at[i].add(x), x.sum(1)), x, np.zeros(300, int)
    )
    kinds = {type(n) for k in ShaderPlan(graph).every for n in k.nests}
    assert loop_nest.GemmNest in kinds
    assert not kinds & {loop_nest.PackNest, loop_nest.BlockedScatter, loop_nest.ScatterTotals}


def test_what_is_donated_is_written_over_last() -> None:
    graph = rg.trace(lambda s, x: (s + x, (s * x).sum()), np.ones(6, "f4"), np.ones(6, "f4"))
    assert ShaderPlan(graph).donated == {}
    assert ShaderPlan(graph, [0]).donated == {0: 0}
