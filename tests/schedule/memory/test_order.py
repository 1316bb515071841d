"""Kernels that free memory run early, and never before what they need."""

from itertools import pairwise

import numpy as np

from retrograd.ir import Graph, float32, spec
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.remat import After
from retrograd.schedule.planning.plan import KernelPlan


def graph(late: bool) -> Graph:
    """Products of large arrays, whose small contractions come last."""
    x, w = input_node(spec((8192, 64), float32)), input_node(spec((64, 64), float32))
    product = DotGeneral((1,), (0,))
    values = [x]
    for _ in range(10):
        y = product(values[-1], w)
        values.append(After()(y, x) if late else y)
    small = [DotGeneral((0,), (0,))(a, b) for a, b in pairwise(values)]
    return Graph([x, w], [*small, ELEMENTWISE["sin"](values[-1])])


def test_what_frees_memory_runs_as_soon_as_it_can():
    unit = 8192 * 64 * 4
    late, plain = KernelPlan(graph(True)), KernelPlan(graph(False))
    assert plain.peak_bytes({}) > 9 * unit
    assert late.peak_bytes({}) < 5 * unit


def test_the_order_respects_what_kernels_need():
    plan = KernelPlan(graph(True))
    written = set(plan.inputs) | set(plan.constants)
    for kernel in plan.kernels:
        assert written.issuperset(b for b in kernel.reads if b not in kernel.outs)
        written.update(kernel.outs)
    assert len(np.unique([id(k) for k in plan.kernels])) == len(plan.kernels)
