"""Where a run can be stopped: programs, and kernels in them, that take so long that somebody may
want to end them, up to the first one that overwrites what the caller gave."""

from __future__ import annotations

from retrograd.ir import Dim
from retrograd.schedule.cost_model import nanoseconds
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling.groups import EACH, TileGroup
from retrograd.tuning import TUNING


def is_stoppable(plan: KernelPlan) -> bool:
    """Whether a run may take so long that somebody wants to end it."""
    if plan.light:
        return False
    return (
        bool(plan.graph.dim_names)
        or plan.endless
        or plan.nanoseconds({}) >= TUNING.interruptible_ns
    )


def takes_long(kernel: Kernel, group: TileGroup) -> bool:
    """Whether a kernel has so much to do, of a block of rows if there are blocks, that it is to
    look by itself if the run is to stop."""
    if group.shared and not group.tiles and group.tile_rows not in (0, EACH):
        return False  # blocks of about so many rows, whatever the sizes
    if any(isinstance(b.bytes, Dim) for b in (*kernel.reads, *kernel.outs)):
        return True
    return nanoseconds(kernel) >= TUNING.stop_poll_ns * max(group.tiles, 1)


def first_overwriting(plan: KernelPlan) -> int:
    """The number of the first tile group that overwrites what the caller would want to keep; a run
    may be stopped until then. -1 where there is none."""
    taken = {plan.inputs[j] for j in plan.donated.values()}
    writing = (n for n, group in enumerate(plan.tile_groups) if not taken.isdisjoint(group.writes))
    return next(writing, -1)
