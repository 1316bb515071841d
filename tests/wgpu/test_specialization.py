"""A program at sizes that are known: grids, parameters, memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.wgpu.commands import Instruction
from retrograd.wgpu.executable import WgpuProgram
from retrograd.wgpu.shader_writer import MAX_GROUPS
from retrograd.wgpu.specialization import Specialization, grid_of
from tests.wgpu.gpu import device_with, needs_gpu

pytestmark = needs_gpu


@pytest.mark.parametrize(
    "groups",
    [1, 64, MAX_GROUPS, MAX_GROUPS + 1, 2**20 + 7, MAX_GROUPS**2, MAX_GROUPS**2 + 1, 2**34],
)
def test_grids_have_enough_groups_and_few_beyond(groups: int) -> None:
    grid = grid_of(groups)
    assert max(grid) <= MAX_GROUPS
    beyond = math.prod(grid) - groups
    assert 0 <= beyond < (MAX_GROUPS if groups <= MAX_GROUPS**2 else MAX_GROUPS**2)


def specialized(graph: rg.Graph, **sizes: int) -> tuple[WgpuProgram, Specialization]:
    program = WgpuProgram(graph)
    return program, Specialization(program.plan, program.status, sizes)


def test_programs_of_other_sizes_have_the_same_shaders() -> None:
    graph = rg.trace(lambda x: rg.softmax(x * 2, 1), rg.spec((rg.Dim("N"), 70)))
    texts = [
        [i.dispatch.source for i in specialized(graph, N=n)[1].items if isinstance(i, Instruction)]
        for n in (5, 9)
    ]
    assert texts[0] == texts[1]
    assert texts[0]


def test_temporaries_lie_in_one_arena() -> None:
    graph = rg.trace(lambda x: rg.flip(rg.cumsum(rg.sort(x, 1), 1), (0,)), np.ones((40, 50), "f4"))
    _, made = specialized(graph)
    places = made.places_in(memory := object())
    assert places
    assert {p.gpu for p in places.values()} == {memory}
    assert all(p.offset + p.bytes <= made.placed.arena for p in places.values())
    assert made.places_in(memory) is places  # of the same arena they are known


def test_commands_of_a_few_calls_are_kept() -> None:
    from retrograd.wgpu.specialization import KEPT_RECORDS

    _, made = specialized(rg.trace(lambda x: x + 1, np.ones(3, np.float32)))
    for k in range(KEPT_RECORDS + 3):
        made.remember((k,), ([k], []), [])
    assert list(made.recorded) == [(k,) for k in range(3, KEPT_RECORDS + 3)]
    made.device.trim()
    made.refresh()  # what was bound is kept alive by no one
    assert not made.recorded
    assert not made.bind_groups


def test_an_array_beyond_what_a_shader_may_bind_is_named() -> None:
    graph = rg.trace(lambda x: rg.flip(x[:, None] * x, (0,)) + 1, np.ones(200, np.float32))
    with (
        device_with(binding_bytes=100_000),
        pytest.raises(
            rg.MemoryLimitError, match=r"160 kB is more than a shader may bind on this GPU, 100 kB"
        ),
    ):
        specialized(graph)


def test_all_that_a_call_makes_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the GPU has the memory of the host: no array alone is too large."""
    from retrograd import memory_limit

    graph = rg.trace(lambda x: [x + k for k in range(5)], np.ones(1000, np.float32))
    program = WgpuProgram(graph)
    if not program.device.shares_memory:
        pytest.skip("this GPU has memory of its own")
    monkeypatch.setattr(memory_limit, "UNNOTICED", 0)
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 20_000)
    Specialization(program.plan, program.status, {})
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 19_999)
    with pytest.raises(rg.MemoryLimitError, match=r"needs 20 kB, more than the 20 kB"):
        Specialization(program.plan, program.status, {})
