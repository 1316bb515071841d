"""Plans for devices: no tiles, nothing packed, memory in multiples of what a device wants."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from retrograd.schedule.loop_nest import PackNest
from retrograd.schedule.planning.device_plan import DevicePlan


def test_temporaries_lie_apart_by_what_a_device_wants() -> None:
    graph = rg.trace(lambda x: rg.softmax(rg.softmax(x)), np.ones((5, 7), np.float32))
    plan = DevicePlan(graph, 256)
    placed = plan.layout({})
    assert placed.offsets
    assert all(at % 256 == 0 for at in placed.offsets.values())
    assert placed.arena % 256 == 0
    wide = DevicePlan(graph, 256, lambda buffer: 1000 * buffer.bytes).layout({})
    assert wide.arena > 100 * placed.arena


def test_matrices_of_loops_are_left_as_they_are() -> None:
    w = np.ones((64, 64), np.float32)

    def f(w: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
        return rg.scan(lambda c, row: (c @ w + row, c), rg.zeros((48, 64)), x)[0]

    plan = DevicePlan(rg.trace(f, w, np.ones((5, 48, 64), np.float32)), 256)
    assert not any(isinstance(n, PackNest) for k in plan.every for n in k.nests)
    assert len(plan.every) > len(plan.kernels)


def test_checks_are_numbered() -> None:
    graph = rg.trace(lambda x, i: x[i], np.ones(3), np.array([0, 2]))
    plan = DevicePlan(graph, 256)
    assert [plan.number_of(k) for k in plan.kernels if plan.number_of(k)] == [1]
    assert any("f64[3]" in what for _, what in plan.arrays({}))
