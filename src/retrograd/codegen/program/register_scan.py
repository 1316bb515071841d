"""Scans of single numbers, whose carries stay in registers.

A step that does little takes as long as the call of its kernels, and as getting its carries through
memory. Where all that a step computes is single numbers, one function does the whole loop: carries
go from step to step as values, rows are found by counting.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen import types
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import mapping
from retrograd.codegen.launch_layout import STOPPED
from retrograd.codegen.program.module_context import ModuleContext
from retrograd.ir import Dim
from retrograd.ops.control import Scan
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion, length_of, regions_of
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import MapNest, Store
from retrograd.schedule.ssa import SSAValue


def of_numbers(region: ControlRegion) -> bool:
    """Whether a region is a scan of which each step computes single numbers only."""
    if not isinstance(region.node.prim, Scan) or not region.carries:
        return False
    nests = [nest for kernel in region.blocks[0] for nest in kernel.nests]
    return all(
        isinstance(nest, MapNest) and all(n == 1 for n in nest.loops) for nest in nests
    ) and all(c.into.type.size == 1 for c in region.carries)


class RegisterScanEmitter(KernelEmitter):
    """Writes the function of such a scan. `dims` are the sizes that it reads from the block."""

    def __init__(self, module: ModuleContext, stoppable: bool) -> None:
        super().__init__(module.declare, module.machine, light=module.plan.light)
        self.module = module
        self.stoppable = stoppable
        self.dims: set[Dim] = set()
        self.known: dict[Buffer, str] = {}  # numbers that are in registers
        self.rows_at: dict[Buffer, str] = {}  # where the rows of this step are

    def write_region(self, kernel: Kernel) -> str:
        (region,) = regions_of(kernel)
        length, prim = length_of(region), region.node.prim
        assert length is not None
        assert isinstance(prim, Scan)
        kinds = [types.register_type(c.into.type.dtype) for c in region.carries]
        starts = [
            types.load(self, self.parameter(c.first), c.first.type.dtype) for c in region.carries
        ]
        steps = self.size(length)
        loop = self.open_loop(steps, carried=list(zip(kinds, starts, strict=True)))
        self._look()
        at = loop.counter
        if prim.reverse:
            at = self.new(f"sub nsw i64 {self.new(f'sub nsw i64 {steps}, 1')}, {at}")
        for row in region.rows:
            by = self.new(f"mul nsw i64 {at}, {self.size(row.row.bytes)}")
            whole = self.parameter(row.whole)
            self.rows_at[row.row] = self.new(f"getelementptr i8, ptr {whole}, i64 {by}")
        self.known = {c.into: v for c, v in zip(region.carries, loop.values, strict=True)}
        self._step(region.blocks[0])
        self.close_loop(loop, [self.known[c.into if c.in_place else c.out] for c in region.carries])
        for carry, value in zip(region.carries, loop.values, strict=True):
            types.store(self, value, self.parameter(carry.last), carry.last.type.dtype)
        self.line("ret i64 0")
        self._find()
        return self.text()

    def _step(self, kernels: Sequence[Kernel]) -> None:
        for kernel in kernels:
            for nest in kernel.nests:
                mapping(self, nest)

    def _look(self) -> None:
        """End the run between two steps, if it is to be stopped."""
        if not self.stoppable:
            return
        word = self.new("load atomic i64, ptr %stop monotonic, align 8")
        stop, on = self.label(), self.label()
        self.branch(self.new(f"icmp ne i64 {word}, 0"), stop, on)
        self.start_block(stop)
        self.line(f"ret i64 {STOPPED}")
        self.start_block(on)

    def _find(self) -> None:
        """Have the function find all it uses in the block."""
        if self.stoppable:
            self.entry += [
                "  %stop.at = getelementptr i64, ptr %block, i64 {stop}",
                "  %stop = load ptr, ptr %stop.at, align 8",
            ]
        for what, name in self.parameters.items():
            if isinstance(what, Dim):
                self.dims.add(what)
            kind = "i64" if isinstance(what, Dim) else "ptr"
            self.entry += [
                f"  {name}.at = getelementptr i64, ptr %block, i64 {self.module.slots.of(what)}",
                f"  {name} = load {kind}, ptr {name}.at, align 8",
            ]

    # -- numbers in registers -----------------------------------------------------------------
    def parameter(self, what: Buffer | Dim) -> str:
        at = self.rows_at.get(what) if isinstance(what, Buffer) else None
        return at or super().parameter(what)

    def read(self, v: SSAValue, t: int, lanes: int) -> str:
        return self.known.get(v.attr) or super().read(v, t, lanes)

    def write(self, value: str, store: Store, t: int = 0) -> None:
        if store.buffer.kind == "cursor" and store.buffer not in self.rows_at:
            self.known[store.buffer] = value
        else:
            super().write(value, store, t)
            if store.buffer.kind == "temporary":
                self.known[store.buffer] = value
