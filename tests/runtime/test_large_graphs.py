"""Graphs of many nodes: compiled in a time that grows as they do, without recursion."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, Node, float32, spec
from retrograd.ops.elementwise import add, sin, tanh
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.shape import Concat, Flip, Pad, Permute, Slice
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING
from tests.runtime.agreement import assert_same

LONG = 5000


def given(*shape: int | Dim) -> Node:
    return input_node(spec(shape, float32))


@pytest.fixture(autouse=True, params=[False, True], ids=["usual", "threads"])
def no_store(request, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")
    if request.param:
        monkeypatch.setattr(TUNING, "parallel_grain_ns", 0)


@pytest.mark.slow
@pytest.mark.sample(1)
def test_thousands_of_slices_of_slices():
    x = y = given(LONG + 20)
    for _ in range(LONG):
        y = Slice((1,), (y.shape[0],), (1,))(y)
    assert_same(Graph([x], [y]), [np.arange(LONG + 20, dtype=np.float32)])


@pytest.mark.sample(1)
@pytest.mark.slow
def test_thousands_of_paddings_and_turns():
    x = y = given(8, 8)
    one = constant(np.float32(1))
    for k in range(LONG):
        y = Slice((0, 1), (8, 9), (1, 1))(Pad((0, 0), (0, 1), (0, 0))(y, one))
        if k % 7 == 0:
            y = Permute((1, 0))(Flip((1,))(y))
    assert_same(Graph([x], [y]), [np.arange(64, dtype=np.float32).reshape(8, 8)])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, Dim("N")], ids=str)
@pytest.mark.sample(1)
def test_deep_chains(rows):
    x = y = given(rows)
    for k in range(2 * LONG):
        y = sin(y) if k % 2 else add(y, x)
    assert_same(Graph([x], [y]), [np.full(3, 0.1, np.float32)])


@pytest.mark.sample(1)
@pytest.mark.slow
def test_many_inputs_and_outputs():
    inputs = [given(7) for _ in range(500)]
    outputs = [add(inputs[k % 500], sin(inputs[k * 7 % 500])) for k in range(1000)]
    total = inputs[0]
    for x in inputs[1:]:
        total = add(total, x)
    arrays = [np.full(7, k, np.float32) for k in range(500)]
    assert_same(Graph(inputs, [*outputs, total, Concat(0)(*inputs)]), arrays)


@pytest.mark.parametrize("rows", [64, Dim("N")], ids=str)
@pytest.mark.sample(1)
@pytest.mark.slow
def test_groups_do_not_grow_without_end(rows):
    """LLVM takes more than linear time for a long function."""
    x, w = given(rows, 64), given(64, 64)
    y = x
    for _ in range(1000):
        y = tanh(matmul(y, w))
    plan = KernelPlan(Graph([x, w], [y]))
    assert plan.threaded
    assert max(len(b.kernels) for b in plan.tile_groups) <= TUNING.group_kernels
