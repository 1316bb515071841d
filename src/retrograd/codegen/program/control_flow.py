"""Regions as functions: loops and choices that call kernels.

The function of a region is a kernel like others to whoever calls it. It calls those inside one
after the other, on the thread it runs on, and sets the slots of cursors between the steps. Its
result is 0, the number of the check that failed inside, or what says that the run was stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen.program.dag_walk import walk
from retrograd.codegen.program.region_emitter import RegionEmitter
from retrograd.ir import Dim
from retrograd.ir.dim import Quotient
from retrograd.ops.control import Cond, DagScan, Scan, Sized, WhileLoop
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion, length_of, regions_of
from retrograd.schedule.kernel import Kernel

ALIGNMENT = 64


class ControlFlowEmitter(RegionEmitter):
    """Writes the function of one region."""

    def write_region(self, kernel: Kernel) -> str:
        (region,) = regions_of(kernel)
        self.region = region
        prim = region.node.prim
        if isinstance(prim, Scan):
            self._scan(region, prim)
        elif isinstance(prim, WhileLoop):
            self._while(region, prim)
        elif isinstance(prim, Cond):
            self._cond(region)
        elif isinstance(prim, DagScan):
            self._walk(region, prim)
        else:
            assert isinstance(prim, Sized)
            self._sized(region, prim)
        self.line("ret i64 0")
        return self.text()

    # -- loops --------------------------------------------------------------------------------
    def begin(self, region: ControlRegion) -> None:
        """Carries are where they start."""
        for c in region.carries:
            last = self.load(c.last)
            self.copy(last, self.load(c.first), c.last.bytes)
            self.point(c.into, last)
            if not c.in_place:
                self.point(c.out, self.load(c.spare))

    def turn(self, region: ControlRegion) -> None:
        """What came out of a step goes into the next."""
        for c in (c for c in region.carries if not c.in_place):
            into, out = self.load(c.into), self.load(c.out)
            self.point(c.into, out)
            self.point(c.out, into)

    def end(self, region: ControlRegion) -> None:
        """Carries are where they are expected."""
        for c in (c for c in region.carries if not c.in_place):
            found, last = self.load(c.into), self.load(c.last)
            yes, no = self.label(), self.label()
            self.branch(self.new(f"icmp eq ptr {found}, {last}"), no, yes)
            self.start_block(yes)
            self.copy(last, found, c.last.bytes)
            self.jump(no)
            self.start_block(no)

    def _scan(self, region: ControlRegion, prim: Scan) -> None:
        length = length_of(region)
        assert length is not None
        steps = self.size(length)
        self.begin(region)
        last = self.new(f"sub i64 {steps}, 1")
        strides = []
        for row in region.rows:
            first, stride = self.load(row.whole), self.size(row.row.bytes)
            if prim.reverse:
                first = self.new(f"getelementptr i8, ptr {first}, i64 {self.mul(last, stride)}")
                stride = self.new(f"sub i64 0, {stride}")
            self.point(row.row, first)
            strides.append(stride)
        loop = self.open_loop(steps)
        self.look()
        self.run(region.blocks[0])
        self.turn(region)
        for row, stride in zip(region.rows, strides, strict=True):
            moved = self.new(f"getelementptr i8, ptr {self.load(row.row)}, i64 {stride}")
            self.point(row.row, moved)
        self.close_loop(loop)
        self.end(region)

    def _walk(self, region: ControlRegion, prim: DagScan) -> None:
        walk(self, region, prim)

    def holds(self, condition: Buffer) -> str:
        byte = self.new(f"load i8, ptr {self.load(condition)}, align 1")
        return self.new(f"icmp ne i8 {byte}, 0")

    def _while(self, region: ControlRegion, prim: WhileLoop) -> None:
        assert region.condition is not None
        assert region.count is not None
        test, body = region.blocks
        self.begin(region)
        count = self.reserve("i64", 8)
        self.line(f"store i64 0, ptr {count}, align 8")
        again, inside, done = self.label(), self.label(), self.label()
        self.jump(again)
        self.start_block(again)
        self.look()
        self.run(test)
        self.branch(self.holds(region.condition), inside, done)
        self.start_block(inside)
        steps = self.new(f"load i64, ptr {count}, align 8")
        if prim.most is not None:
            self.leave_if(self.new(f"icmp sge i64 {steps}, {prim.most}"), self.check)
        self.run(body)
        self.turn(region)
        more = self.new(f"add i64 {steps}, 1")
        self.line(f"store i64 {more}, ptr {count}, align 8")
        self.jump(again)
        self.start_block(done)
        steps = self.new(f"load i64, ptr {count}, align 8")
        self.line(f"store i64 {steps}, ptr {self.load(region.count)}, align 8")
        self.end(region)

    def _cond(self, region: ControlRegion) -> None:
        assert region.condition is not None
        labels = [self.label(), self.label()]
        done = self.label()
        self.branch(self.holds(region.condition), *labels)
        for label, block in zip(labels, region.blocks, strict=True):
            self.start_block(label)
            self.run(block)
            self.jump(done)
        self.start_block(done)

    # -- sizes --------------------------------------------------------------------------------
    def _sized(self, region: ControlRegion, prim: Sized) -> None:
        """Note the size and what depends on it, get memory, run, and give it back."""
        assert region.count is not None
        size = self.new(f"load i64, ptr {self.load(region.count)}, align 8")
        inside, dims = self.prepared(region.blocks[0])
        wanted = {d for d in dims if prim.dim in d.names} | {Dim(prim.dim)}
        needed = [(b, b.bytes) for b in region.dynamic]
        values = {d: self.value(d, prim.dim, size) for d in sorted(wanted, key=str)}
        self.dims |= {d for d in dims if prim.dim not in d.names}
        before = {d: self.load(d) for d in values}
        for d, value in values.items():
            self.line(f"store i64 {value}, ptr {self.slot(d)}, align 8")
        self.dims -= set(values)
        offsets, total = [], "0"
        for _, count in needed:
            offsets.append(total)
            bytes_ = self.value(count, prim.dim, size)
            up = self.new(f"add i64 {bytes_}, {2 * ALIGNMENT - 1}")
            total = self.new(f"add i64 {total}, {self.new(f'and i64 {up}, -{ALIGNMENT}')}")
        memory = self.allocated(total)
        start = self._aligned(memory)
        for (b, _), offset in zip(needed, offsets, strict=True):
            self.point(b, self.new(f"getelementptr i8, ptr {start}, i64 {offset}"))
        code = self.result_of(inside)
        self.give_back(memory)
        for d, value in before.items():
            self.line(f"store i64 {value}, ptr {self.slot(d)}, align 8")
        self.dims -= set(values)
        self.leave_if(self.new(f"icmp ne i64 {code}, 0"), code)

    def prepared(self, kernels: Sequence[Kernel]) -> tuple[str, set[Dim]]:
        """Kernels as a function that runs them, and the sizes that they read from the block."""
        inner = ControlFlowEmitter(self.module, 0, self.stoppable)
        inner.run(kernels)
        inner.line("ret i64 0")
        return self.module.function(inner, "ptr %block"), inner.dims

    def result_of(self, inside: str) -> str:
        """What comes of running what was prepared."""
        return self.new(f"call i64 @{inside}(ptr %block)")

    def give_back(self, memory: str) -> None:
        self.declare("void @free(ptr)")
        self.line(f"call void @free(ptr {memory})")

    def allocated(self, total: str) -> str:
        """The address of so many bytes; leaves if there are none."""
        self.declare("ptr @malloc(i64)")
        memory = self.new(f"call ptr @malloc(i64 {self.new(f'add i64 {total}, {ALIGNMENT}')})")
        status = self.new("getelementptr i64, ptr %block, i64 {status}")
        self.line(f"store i64 {total}, ptr {status}, align 8")
        self.leave_if(self.new(f"icmp eq ptr {memory}, null"), self.check)
        return memory

    def _aligned(self, memory: str) -> str:
        number = self.new(f"ptrtoint ptr {memory} to i64")
        up = self.new(f"add i64 {number}, {ALIGNMENT - 1}")
        return self.new(f"inttoptr i64 {self.new(f'and i64 {up}, -{ALIGNMENT}')} to ptr")

    def value(self, size: int | Dim, name: str, known: str) -> str:
        """The value of a size, in which `name` has the value `known`; other names are in slots."""
        if not isinstance(size, Dim):
            return str(size)
        total = "0"
        for monomial, factor in size.terms:
            term = str(factor)
            for atom, power in monomial:
                part = self._atom(atom, name, known)
                for _ in range(power):
                    term = self.mul(term, part)
            total = self.new(f"add i64 {total}, {term}")
        return total

    def _atom(self, atom: str | Quotient, name: str, known: str) -> str:
        if isinstance(atom, str):
            return known if atom == name else self.load(Dim(atom))
        a = self.value(atom.numerator, name, known)
        b = self.value(atom.denominator, name, known)
        quotient, rest = self.new(f"sdiv i64 {a}, {b}"), self.new(f"srem i64 {a}, {b}")
        signs = self.new(f"icmp slt i64 {self.new(f'xor i64 {rest}, {b}')}, 0")
        inexact = self.new(f"icmp ne i64 {rest}, 0")
        down = self.new(f"and i1 {signs}, {inexact}")
        return self.new(f"sub i64 {quotient}, {self.new(f'zext i1 {down} to i64')}")
