"""Regions that all threads go through, as functions: see `regions.py` and `TeamWriter`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from retrograd.backends.kernel import Band, Buffer, Kernel
from retrograd.backends.kernel.region import Region, regions_of
from retrograd.backends.llvm.alone import fit, limits_of_region, way_of_region
from retrograd.backends.llvm.drive_text import STOPPED
from retrograd.backends.llvm.regions import ALIGNMENT, COPY, RegionWriter
from retrograd.backends.llvm.team_text import VOTE
from retrograd.backends.llvm.walk import nodes, walk_together
from retrograd.control import DagScan
from retrograd.ir import Dim

if TYPE_CHECKING:
    from retrograd.backends.llvm.module import Module

TEAM = "ptr %main, i64 %thread, i64 %threads, ptr %team"  # what such a loop is called with
DRIVE = "i64 @rg_drive(ptr, i64, i64, ptr, ptr, ptr)"


class TeamWriter(RegionWriter):
    """Writes a region that all threads go through. Each has a block of its own, in which it moves
    its cursors; the first one does what is done once; after each step all wait, and hear whether to
    go on. Of the buffers in `own` each thread has one, in its scratch memory. A region `within`
    such a region is called with the thread's block there. The word before a block of a thread is
    the address of the block of the whole run, in which it says when to stop."""

    def __init__(self, module: Module, check: int, stoppable: bool, own: Sequence[Buffer]) -> None:
        super().__init__(module, check, stoppable)
        self.own = own

    def write_region(self, kernel: Kernel) -> str:
        (region,) = regions_of(kernel)
        if isinstance(region.node.prim, DagScan):
            self.part = self._part(region, region.node.prim)
            self._leave_alone(region.node.prim)
        few, most = self.label(), limits_of_region(kernel)
        if most is not None:
            many = self.label()
            self.branch(fit(self, most, self._rows_of_main), few, many)
            self.start_block(many)
        self.declare(DRIVE)
        self.declare(COPY)
        copies = self.new("add i64 %threads, 2")  # the block, and behind it what `rg_drive` needs
        size = self.new(f"mul i64 {copies}, {{count}}")
        self.line(f"%block = alloca i64, i64 {size}, align 64")
        bytes_ = self.new("mul i64 {count}, 8")
        args = f"ptr %block, ptr %main, i64 {bytes_}, i1 false"
        self.line(f"call void @llvm.memcpy.p0.p0.i64({args})")
        status = self.new("getelementptr i64, ptr %block, i64 {status}")
        self.line(f"store i64 0, ptr {status}, align 8")
        self.first = self.new("icmp eq i64 %thread, 0")
        self.alone = self.new("icmp eq i64 %threads, 1")
        scratch = self.mul("%thread", str(self.module.plan.scratch.arena))
        for buffer in self.own:
            place = self.load(buffer)
            self.point(buffer, self.new(f"getelementptr i8, ptr {place}, i64 {scratch}"))
        super().write_region(kernel)
        if most is not None:
            self.start_block(few)
            part = way_of_region(self.module, kernel, self.check, self.stoppable)
            self.line(f"ret i64 {self.new(f'call i64 @{part}(ptr %main)')}")
        return self.text()

    def _rows_of_main(self, rows: Dim) -> str:
        slot = self.new(f"getelementptr i64, ptr %main, i64 {self.module.slots.of(rows)}")
        return self.new(f"load i64, ptr {slot}, align 8")

    def copy(self, to: str, source: str, size: int | Dim) -> None:
        """Done by the first thread."""
        amount = self.size(size)
        with self.by_the_first():
            args = f"ptr {to}, ptr {source}, i64 {amount}, i1 false"
            self.line(f"call void @llvm.memcpy.p0.p0.i64({args})")

    @contextmanager
    def by_the_first(self) -> Iterator[None]:
        """What the first thread does."""
        mine, on = self.label(), self.label()
        self.branch(self.first, mine, on)
        self.start_block(mine)
        yield
        self.jump(on)
        self.start_block(on)

    def begin(self, region: Region) -> None:
        super().begin(region)
        self.meet("0")

    def look(self) -> None:
        """That is seen after a step, by all."""

    def run(self, kernels: Sequence[Kernel]) -> None:
        table, dims = self.prepared(kernels)
        self.dims |= dims
        self.meet(self._driven(table))

    def prepared(self, kernels: Sequence[Kernel]) -> tuple[str, set[Dim]]:
        """Kernels as a table of bands."""
        bands = self.bands_of(kernels)
        table = self.module.table(bands)
        dims = {d for band in bands for k in band.kernels for d in self.module.dims_of(k)}
        return table, dims.union(*[band.sizes for band in bands])

    def result_of(self, inside: str) -> str:
        code = self._agreed(self._driven(inside))
        self.tell_why()
        return code

    def allocated(self, total: str) -> str:
        """Memory that the first thread gets for all."""
        self.declare("ptr @malloc(i64)")
        slot = self.reserve("i64", 8)
        self.line(f"store i64 0, ptr {slot}, align 8")
        with self.by_the_first():
            more = self.new(f"add i64 {total}, {ALIGNMENT}")
            memory = self.new(f"call ptr @malloc(i64 {more})")
            self.line(f"store ptr {memory}, ptr {slot}, align 8")
        found = self._agreed(self.new(f"load i64, ptr {slot}, align 8"))
        none, on = self.label(), self.label()
        self.branch(self.new(f"icmp eq i64 {found}, 0"), none, on)
        self.start_block(none)
        status = self.new("getelementptr i64, ptr %block, i64 {status}")
        self.line(f"store i64 {total}, ptr {status}, align 8")
        self.tell_why()
        self.line(f"ret i64 {self.check}")
        self.start_block(on)
        return self.new(f"inttoptr i64 {found} to ptr")

    def give_back(self, memory: str) -> None:
        with self.by_the_first():
            super().give_back(memory)

    def _driven(self, table: str) -> str:
        """What comes of this thread's part of a table of bands, or of somebody's wish to stop."""
        arguments = "ptr %block, i64 %thread, i64 %threads, ptr %team"
        code = self.new(f"call i64 @rg_drive({arguments}, ptr @{table}, ptr @kernels)")
        if self.stoppable:
            stop = self.asked_to_stop()
            good = self.new(f"icmp eq i64 {code}, 0")
            both = self.new(f"and i1 {stop}, {good}")
            code = self.new(f"select i1 {both}, i64 {STOPPED}, i64 {code}")
        return code

    def _walk(self, region: Region, prim: DagScan) -> None:
        walk_together(self, region, prim, self.part)

    def _part(self, region: Region, prim: DagScan) -> str:
        """A function that walks through the nodes from a place in their order to another."""
        inner = RegionWriter(self.module, self.check, self.stoppable)
        nodes(inner, region, prim, "%begin", "%until")
        inner.line("ret i64 0")
        self.dims |= inner.dims
        return self.module.function(inner, "ptr %block, i64 %begin, i64 %until")

    def _leave_alone(self, prim: DagScan) -> None:
        """One thread needs no block of its own."""
        alone, many = self.label(), self.label()
        self.branch(self.new("icmp eq i64 %threads, 1"), alone, many)
        self.start_block(alone)
        n = str(prim.nodes)
        if isinstance(prim.nodes, Dim):
            slot = self.module.slots.of(prim.nodes)
            n = self.new(f"getelementptr i64, ptr %main, i64 {slot}")
            n = self.new(f"load i64, ptr {n}, align 8")
        code = self.new(f"call i64 @{self.part}(ptr %main, i64 0, i64 {n})")
        self.line(f"ret i64 {code}")
        self.start_block(many)

    def bands_of(self, kernels: Sequence[Kernel]) -> list[Band]:
        return next(
            bands
            for bands, block in zip(self.region.bands, self.region.blocks, strict=True)
            if block is kernels
        )

    def meet(self, code: str) -> None:
        """Wait for all threads; leave if one of them has a reason to."""
        worst = self._agreed(code)
        on, off = self.label(), self.label()
        self.branch(self.new(f"icmp eq i64 {worst}, 0"), on, off)
        self.start_block(off)
        self.tell_why()
        self.line(f"ret i64 {worst}")
        self.start_block(on)

    def _agreed(self, code: str) -> str:
        """The largest of what the threads bring, when all have come."""
        slot = self.reserve("i64", 8)
        self.line(f"store i64 {code}, ptr {slot}, align 8")
        agree, met = self.label(), self.label()
        self.branch(self.alone, met, agree)
        self.start_block(agree)
        at = self.new(f"getelementptr i8, ptr %team, i64 {VOTE}")
        vote = self.new(f"load ptr, ptr {at}")
        given = self.new(f"load i64, ptr {slot}, align 8")
        asked = f"ptr %team, i64 %thread, i64 %threads, i64 {given}"
        self.line(f"store i64 {self.new(f'call i64 {vote}({asked})')}, ptr {slot}, align 8")
        self.jump(met)
        self.start_block(met)
        return self.new(f"load i64, ptr {slot}, align 8")

    def tell_why(self) -> None:
        """What a check that failed left in the own block, in the one that the caller looks at."""
        own = self.new("getelementptr i64, ptr %block, i64 {status}")
        why = self.new(f"load i64, ptr {own}, align 8")
        say, done = self.label(), self.label()
        self.branch(self.new(f"icmp ne i64 {why}, 0"), say, done)
        self.start_block(say)
        main = self.new("getelementptr i64, ptr %main, i64 {status}")
        self.line(f"store i64 {why}, ptr {main}, align 8")
        self.jump(done)
        self.start_block(done)
