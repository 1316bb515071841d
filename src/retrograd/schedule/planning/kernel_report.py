"""A plan as data for people to look at: kernels with what was fused into them, memory over time."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from retrograd.ir import Dim, Node, evaluate
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.memory.arena import layout
from retrograd.schedule.planning.explain import facts, results
from retrograd.schedule.planning.plan import KernelPlan


@dataclass(frozen=True)
class KernelReport:
    """One kernel. `nodes` are those it stores, then those fused into it. Numbers that depend on
    sizes which are not known are None, and so is the time of a kernel that was not measured."""

    nodes: list[Node]
    text: str
    ops: str
    bytes: int | None
    operations: int | None
    least: float | None  # nanoseconds
    measured: float | None  # nanoseconds
    tile_group: int


@dataclass(frozen=True)
class ArenaReport:
    """Memory for temporaries: bytes in use at each time, what is reserved, and who lives when."""

    used: list[int]
    peak: int
    lives: list[tuple[Node, int, int, int]]  # node, first and last time, bytes


def kernel_reports(
    plan: KernelPlan,
    sizes: Mapping[str, int] | None = None,
    measured: Sequence[float] | None = None,
) -> list[KernelReport]:
    """The kernels of a plan, in the order in which they run."""
    found, taken = [], set[Node]()
    stored = {b.node for b in (*plan.inputs, *plan.constants)}
    stored |= {n for kernel in plan.every for n in kernel.nodes}
    group_of = {id(k): i for i, group in enumerate(plan.tile_groups) for k in group.kernels}
    for number, kernel in enumerate(plan.kernels):
        told = facts(kernel, sizes)
        definite = told.definite
        nodes = [*kernel.nodes, *(n for n in _fused(kernel, stored) if n not in taken)]
        taken.update(nodes)
        found.append(
            KernelReport(
                nodes,
                results(kernel),
                told.fused,
                _count(told.bytes),
                _count(told.operations),
                told.least if definite else None,
                measured[number] if measured is not None else None,
                group_of[id(kernel)],
            )
        )
    return found


def arena_report(plan: KernelPlan, sizes: Mapping[str, int]) -> ArenaReport:
    """Memory over the moments of a plan at which temporaries come into use."""
    placed = layout(plan.lifetimes, sizes)
    moments = sorted({life.first for life in plan.lifetimes})  # when something new is written
    change = [0] * (len(moments) + 1)
    lives = []
    for life in plan.lifetimes:
        size = evaluate(life.bytes, sizes)
        first = bisect.bisect_left(moments, life.first)
        last = bisect.bisect_right(moments, life.last) - 1
        change[first] += size
        change[last + 1] -= size
        lives.append((life.buffer.node, first, last, size))
    used, now = [], 0
    for step in change[:-1]:
        now += step
        used.append(now)
    return ArenaReport(used, placed.arena, lives)


def _fused(kernel: Kernel, stored: Collection[Node]) -> list[Node]:
    """Nodes that are computed where the kernel reads them."""
    seen = dict[Node, None]()
    todo = list(kernel.nodes)
    while todo:
        for x in todo.pop().inputs:
            if x not in seen and x not in stored:
                seen[x] = None
                todo.append(x)
    return list(seen)


def _count(n: int | Dim) -> int | None:
    return None if isinstance(n, Dim) else n
