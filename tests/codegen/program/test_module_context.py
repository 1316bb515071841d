"""Slots of the block of a run: one for each buffer and size, and then the status."""

import pytest

import retrograd as rg
from retrograd.codegen.launch_layout import STATUS_SLOTS
from retrograd.codegen.program.module_context import Slots
from retrograd.ir import Dim, float32, spec
from retrograd.schedule.planning.plan import KernelPlan


def f(x, y):
    return rg.softmax(x @ y) @ x, rg.scan(lambda c, row: (rg.tanh(c + row), c), y[0], y)[1]


def test_no_two_things_share_a_slot() -> None:
    n = Dim("N")
    plan = KernelPlan(rg.trace(f, spec((n, n), float32), spec((n, n), float32)))
    slots = Slots(plan)
    buffers = [*plan.inputs, *plan.outputs, *plan.constants, *plan.temporaries, *plan.cursors]
    assert plan.cursors
    found = [slots.of(b) for b in buffers]
    assert found == list(range(len(buffers)))
    square = n * n
    assert isinstance(square, Dim)
    sizes = [slots.of(d) for d in (n, square, n, square)]
    assert sizes[:2] == sizes[2:] == [len(buffers), len(buffers) + 1]
    assert slots.status == len(buffers) + 2
    assert slots.count == slots.status + STATUS_SLOTS


def test_no_size_comes_after_the_status_has_its_place() -> None:
    n = Dim("N")
    slots = Slots(KernelPlan(rg.trace(lambda x: x + 1, spec((n,), float32))))
    slots.of(n)
    slots.closed = True
    assert slots.of(n) == 2
    with pytest.raises(AssertionError, match="has no slot"):
        slots.of(Dim("M"))
