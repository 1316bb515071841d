"""Recipes of programs as bytes: read back whole, or refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.launch_layout import STATUS_SLOTS
from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.elementwise import exp, mul
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.runtime import executable_format
from retrograd.runtime.executable import Executable
from retrograd.runtime.executable_format import ExecutableRecord
from retrograd.schedule.planning.plan import KernelPlan


def test_a_recipe_survives_as_bytes():
    n = Dim("N")
    facts = executable_format.ExecutableLayout(
        "k", ["rg_cblas_sgemm"], 1, 2, True, 64, 3, 2, 1, 1, [(0, 1)], ["n"], False, True
    )
    constants = [np.arange(6, dtype=np.int16).reshape(2, 3), np.array(1.5)]
    placed = executable_format.BufferPlacement(64, [0], 128, 12.5, 2.5)
    again = executable_format.ExecutableRecord.from_bytes(
        executable_format.ExecutableRecord(facts, [n * 2 + 1, 3], constants, placed).to_bytes()
    )
    assert dict(again.facts.donated) == {0: 1}
    assert (again.sizes, again.placement, again.status) == ([n * 2 + 1, 3], placed, 9)
    for a, b in zip(again.constants, constants, strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def recipe() -> ExecutableRecord:
    x = input_node(spec((4, 3), float32))
    y = exp(mul(x, constant(np.arange(12, dtype=np.float32).reshape(4, 3))))
    program = Executable(Graph([x], [ReduceSum((0,))(y), y]))
    constants = [np.arange(12, dtype=np.float32).reshape(4, 3)]
    return replace(program.recipe, constants=constants)


@pytest.mark.parametrize("cut", [0, 1, 40, -1, -7])
def test_damaged_bytes_are_refused(cut: int) -> None:
    """A head that is cut, or constants that are not all there."""
    whole = recipe().to_bytes()
    assert ExecutableRecord.from_bytes(whole).to_bytes() == whole
    with pytest.raises((ValueError, KeyError, TypeError)):
        ExecutableRecord.from_bytes(whole[:cut])


def test_slots_follow_one_another() -> None:
    """Inputs and outputs, constants, temporaries, cursors, sizes, and then the status."""
    record = recipe()
    facts = record.facts
    assert facts.arguments == 3
    assert record.first_temporary == 3 + facts.constants
    assert record.first_cursor == record.first_temporary + facts.temporaries
    assert record.first_size == record.first_cursor + facts.cursors
    assert record.status == record.first_size + len(record.sizes)
    assert record.slots == record.status + STATUS_SLOTS


def test_temporaries_have_their_places_in_the_arena() -> None:
    n = Dim("N")
    types = [spec((n, n), float32)] * 2
    plan = KernelPlan(rg.trace(lambda x, y: rg.cumsum(rg.cumsum(x @ y, 0), 1).sum(), *types))
    for size in (3, 50):
        found = executable_format.place(plan, {"N": size})
        assert len(found.offsets) == len(plan.temporaries)
        inside = [at for b, at in zip(plan.temporaries, found.offsets, strict=True)
                  if b not in plan.scratch.offsets]  # fmt: skip
        assert all(0 <= at < found.arena for at in inside)
        assert found.peak >= found.arena
        assert 0 <= found.shared <= found.nanoseconds
