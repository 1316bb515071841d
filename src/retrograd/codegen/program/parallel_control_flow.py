"""Regions whose kernels threads share, as functions: see `control_flow.py`."""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen.program.control_flow import ControlFlowEmitter
from retrograd.codegen.program.dag_walk import nodes, walk_together
from retrograd.codegen.program.module_context import ModuleContext
from retrograd.codegen.program.serial_path import limits_of_region, takes_serial_path, way_of_region
from retrograd.ir import Dim
from retrograd.ops.control import DagScan
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.tiling.groups import TileGroup

TEAM = "ptr %block, i64 %threads, ptr %team"  # what such a region is called with
DRIVE = "i64 @rg_drive(ptr, i64, ptr, ptr, ptr)"


class ParallelControlFlowEmitter(ControlFlowEmitter):
    """Writes a region that the caller goes through, and whose tile groups it shares with the
    workers of the team. Of the buffers in `own` each thread has one, in its scratch memory."""

    def __init__(
        self, module: ModuleContext, check: int, stoppable: bool, own: Sequence[Buffer]
    ) -> None:
        super().__init__(module, check, stoppable)
        self.own = own

    def write_region(self, kernel: Kernel) -> str:
        few, most = self.label(), limits_of_region(kernel)
        if most is not None:
            many = self.label()
            self.branch(takes_serial_path(self, most, self._rows), few, many)
            self.start_block(many)
        super().write_region(kernel)
        if most is not None:
            self.start_block(few)
            part = way_of_region(self.module, kernel, self.check, self.stoppable)
            self.line(f"ret i64 {self.new(f'call i64 @{part}(ptr %block)')}")
        return self.text()

    def _rows(self, rows: Dim) -> str:
        slot = self.new(f"getelementptr i64, ptr %block, i64 {self.module.slots.of(rows)}")
        return self.new(f"load i64, ptr {slot}, align 8")

    def run(self, kernels: Sequence[Kernel]) -> None:
        table, dims = self.prepared(kernels)
        self.dims |= dims
        self.drive(table)

    def prepared(self, kernels: Sequence[Kernel]) -> tuple[str, set[Dim]]:
        """Kernels as a table of tile groups."""
        tile_groups = self._groups_of(kernels)
        table = self.module.table(tile_groups)
        dims = {d for group in tile_groups for k in group.kernels for d in self.module.dims_of(k)}
        return table, dims.union(*[group.sizes for group in tile_groups])

    def result_of(self, inside: str) -> str:
        self.declare(DRIVE)
        arguments = "ptr %block, i64 %threads, ptr %team"
        return self.new(f"call i64 @rg_drive({arguments}, ptr @{inside}, ptr @kernels)")

    def drive(self, table: str) -> None:
        """Run a table; leave with what is wrong."""
        code = self.result_of(table)
        self.leave_if(self.new(f"icmp ne i64 {code}, 0"), code)

    def _walk(self, region: ControlRegion, prim: DagScan) -> None:
        inner = ControlFlowEmitter(self.module, self.check, self.stoppable)
        nodes(inner, region, prim, "%begin", "%until")
        inner.line("ret i64 0")
        self.dims |= inner.dims
        part = self.module.function(inner, "ptr %block, i64 %begin, i64 %until")
        walk_together(self, region, prim, part, self.own, self.drive)

    def _groups_of(self, kernels: Sequence[Kernel]) -> list[TileGroup]:
        return next(
            tile_groups
            for tile_groups, block in zip(self.region.tile_groups, self.region.blocks, strict=True)
            if block is kernels
        )
