"""Bands that one thread goes through in one go.

A table of bands, and the function that follows it, serve any number of threads and rows. Where rows
have a name, they are often few, and then following the table takes longer than the work. So such
programs, and loops in them, have a second way through: one thread calls the kernels one after the
other, for all rows at once, if there are no more rows than in a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.launch_layout import LONG_ROWS, STOPPED
from retrograd.codegen.program.control_flow import ControlFlowEmitter
from retrograd.codegen.program.module_context import KernelCall, ModuleContext
from retrograd.ir import Dim
from retrograd.ops.control import Scan, WhileLoop
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.tiling.groups import EACH, TileGroup

MOST = 100  # kernels


def limits(bands: Sequence[TileGroup]) -> dict[Dim, int] | None:
    """The most rows with which bands can be gone through in one go, by the size that tells, and
    likewise the most blocks; None where that is never, or always, so."""
    found: dict[Dim, int] = {}
    for band in (b for b in bands if b.shared):
        if band.many is not None:
            found[band.many] = 0
        elif isinstance(band.rows, Dim):
            most = band.near or band.piece or LONG_ROWS
            found[band.rows] = min(found.get(band.rows, EACH), most)
        elif band.blocks or (band.piece and band.rows > band.piece):
            return None  # more than one block, whatever the sizes
    count = sum(len(band.kernels) for band in bands)
    return found if found and count <= MOST else None


def takes_serial_path(w: FunctionBuilder, most: dict[Dim, int], load: Callable[[Dim], str]) -> str:
    """Whether there is one thread, and no size above its limit."""
    condition = w.new("icmp eq i64 %threads, 1")
    for rows, limit in most.items():
        few = w.new(f"icmp ule i64 {load(rows)}, {limit}")
        condition = w.new(f"and i1 {condition}, {few}")
    return condition


class SerialEmitter(ControlFlowEmitter):
    """Writes kernels of bands, one after the other, for all rows of each; they have been made."""

    def __init__(self, module: ModuleContext, check: int, stoppable: bool) -> None:
        super().__init__(module, check, stoppable)

    def run(self, kernels: Sequence[Kernel]) -> None:
        index = next(i for i, block in enumerate(self.region.blocks) if block is kernels)
        for band in self.region.bands[index]:
            for kernel in band.kernels:
                self.call(band, self.module.made(kernel), "inner")

    def call(self, band: TileGroup, call: KernelCall, name: str) -> None:
        """One kernel, by the data of this name."""
        rows = self.size(band.rows)
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
    (region,) = [n.info["region"] for n in kernel.nests if n.kind == "region"]
    if not isinstance(region.node.prim, Scan | WhileLoop):
        return None
    return limits([band for block in region.bands for band in block])
