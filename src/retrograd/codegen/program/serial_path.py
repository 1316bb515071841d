"""Tile groups that one thread goes through in one go.

A table of tile groups, and the function that follows it, serve any number of threads and rows.
Where rows have a name, they are often few, and then following the table takes longer than the work.
So such programs, and loops in them, have a second way through: one thread calls the kernels one
after the other, for all rows at once, if there are no more rows than in a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.launch_layout import LONG_ROWS, STOPPED
from retrograd.codegen.program.control_flow import ControlFlowEmitter
from retrograd.codegen.program.module_context import KernelCall, ModuleContext
from retrograd.ir import Dim
from retrograd.ops.control import Scan, WhileLoop
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.tiling.groups import EACH, TileGroup
from retrograd.tuning import TUNING


def limits(tile_groups: Sequence[TileGroup]) -> dict[Dim, int] | None:
    """The most rows with which tile groups can be gone through in one go, by the size that tells,
    and likewise the most blocks; None where that is never, or always, so."""
    found: dict[Dim, int] = {}
    for group in (b for b in tile_groups if b.shared):
        if group.tile_count is not None:
            found[group.tile_count] = 0
        elif isinstance(group.rows, Dim):
            most = group.cached_rows or group.tile_rows or LONG_ROWS
            found[group.rows] = min(found.get(group.rows, EACH), most)
        elif group.tiles or (group.tile_rows and group.rows > group.tile_rows):
            return None  # more than one block, whatever the sizes
    count = sum(len(group.kernels) for group in tile_groups)
    return found if found and count <= TUNING.serial_path_kernels else None


def takes_serial_path(w: FunctionBuilder, most: dict[Dim, int], load: Callable[[Dim], str]) -> str:
    """Whether there is one thread, and no size above its limit."""
    condition = w.new("icmp eq i64 %threads, 1")
    for rows, limit in most.items():
        few = w.new(f"icmp ule i64 {load(rows)}, {limit}")
        condition = w.new(f"and i1 {condition}, {few}")
    return condition


class SerialEmitter(ControlFlowEmitter):
    """Writes kernels of tile groups, one after the other, for all rows of each; they have been
    made."""

    def __init__(self, module: ModuleContext, check: int, stoppable: bool) -> None:
        super().__init__(module, check, stoppable)

    def run(self, kernels: Sequence[Kernel]) -> None:
        index = next(i for i, block in enumerate(self.region.blocks) if block is kernels)
        for group in self.region.tile_groups[index]:
            for kernel in group.kernels:
                self.call(group, self.module.made(kernel), "inner")

    def call(self, group: TileGroup, call: KernelCall, name: str) -> None:
        """One kernel, by the data of this name."""
        rows = self.size(group.rows)
        given = f"ptr %block, ptr @{name}{call.number}, i64 0, i64 {rows}"
        code = self.new(f"call i64 @k{call.function}({given})")
        if call.check or call.region:
            result = code if call.region else call.check
            self.leave_if(self.new(f"icmp ne i64 {code}, 0"), result)
        if call.polls:
            self.leave_if(self.asked_to_stop(), STOPPED)


def way_of_region(module: ModuleContext, kernel: Kernel, check: int, stoppable: bool) -> str:
    """The name of a function that goes through a loop so: `f(block)`."""
    w = SerialEmitter(module, check, stoppable)
    w.write_region(kernel)
    return module.function(w, "ptr %block")


def limits_of_region(kernel: Kernel) -> dict[Dim, int] | None:
    """The same as `limits`, for what a loop runs."""
    (region,) = regions_of(kernel)
    if not isinstance(region.node.prim, Scan | WhileLoop):
        return None
    return limits([group for block in region.tile_groups for group in block])
