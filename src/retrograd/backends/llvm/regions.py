"""Regions as functions: loops and choices that call kernels.

The function of a region is a kernel like others to whoever calls it. It calls those inside one
after the other, on the thread it runs on, and sets the slots of cursors between the steps. Its
result is 0, the number of the check that failed inside, or what says that the run was stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrograd.backends.kernel import Band, Buffer, Kernel
from retrograd.backends.kernel.region import Region, length_of, regions_of
from retrograd.backends.llvm.drive_text import STOPPED
from retrograd.backends.llvm.team_text import VOTE
from retrograd.backends.llvm.walk import nodes, walk, walk_together
from retrograd.backends.llvm.writer import Writer
from retrograd.control import Cond, DagScan, Scan, Sized, WhileLoop
from retrograd.ir import Dim
from retrograd.ir.dim import Quotient

if TYPE_CHECKING:
    from retrograd.backends.llvm.module import Module

ALIGNMENT = 64
COPY = "void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


class RegionWriter(Writer):
    """Writes the function of one region. `check` is the number of its own check, or 0."""

    def __init__(self, module: Module, check: int, stoppable: bool) -> None:
        super().__init__(module.declare)
        self.module = module
        self.check = check
        self.stoppable = stoppable
        self.watched = "%block"  # the block with the word that stops the run
        self.dims: set[Dim] = set()  # that kernels inside read from the block

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

    # -- the block ----------------------------------------------------------------------------
    def slot(self, what: Buffer | Dim) -> str:
        """The address of the slot of a buffer or size."""
        if isinstance(what, Dim):
            self.dims.add(what)
        return self.new(f"getelementptr i64, ptr %block, i64 {self.module.slots.of(what)}")

    def load(self, what: Buffer | Dim) -> str:
        """The address of a buffer, or the value of a size."""
        kind = "i64" if isinstance(what, Dim) else "ptr"
        return self.new(f"load {kind}, ptr {self.slot(what)}, align 8")

    def size(self, size: int | Dim) -> str:
        return self.load(size) if isinstance(size, Dim) else str(size)

    def point(self, cursor: Buffer, pointer: str) -> None:
        self.line(f"store ptr {pointer}, ptr {self.slot(cursor)}, align 8")

    def copy(self, to: str, source: str, size: int | Dim) -> None:
        self.copy_bytes(to, source, self.size(size))

    def copy_bytes(self, to: str, source: str, size: str) -> None:
        self.declare(COPY)
        args = f"ptr {to}, ptr {source}, i64 {size}, i1 false"
        self.line(f"call void @llvm.memcpy.p0.p0.i64({args})")

    def run(self, kernels: Sequence[Kernel]) -> None:
        """Call kernels in order; leave with what is wrong."""
        for kernel in kernels:
            call = self.module.inner(kernel)
            self.dims.update(self.module.dims_of(kernel))
            given = f"ptr %block, ptr @inner{call.number}, i64 0, i64 0"
            code = self.new(f"call i64 @k{call.function}({given})")
            if call.check or regions_of(kernel):
                self.leave_if(
                    self.new(f"icmp ne i64 {code}, 0"), code if regions_of(kernel) else call.check
                )

    def leave_if(self, condition: str, result: str | int) -> None:
        on, off = self.label(), self.label()
        self.branch(condition, off, on)
        self.start_block(off)
        self.line(f"ret i64 {result}")
        self.start_block(on)

    def look(self) -> None:
        """End the run between two steps, if it is to be stopped."""
        if not self.stoppable:
            return
        at = self.new(f"getelementptr i64, ptr {self.watched}, i64 {{stop}}")
        word = self.new(f"load atomic i64, ptr {at} monotonic, align 8")
        self.leave_if(self.new(f"icmp ne i64 {word}, 0"), STOPPED)

    # -- loops --------------------------------------------------------------------------------
    def begin(self, region: Region) -> None:
        """Carries are where they start."""
        for c in region.carries:
            last = self.load(c.last)
            self.copy(last, self.load(c.first), c.last.bytes)
            self.point(c.into, last)
            if not c.in_place:
                self.point(c.out, self.load(c.spare))

    def turn(self, region: Region) -> None:
        """What came out of a step goes into the next."""
        for c in (c for c in region.carries if not c.in_place):
            into, out = self.load(c.into), self.load(c.out)
            self.point(c.into, out)
            self.point(c.out, into)

    def end(self, region: Region) -> None:
        """Carries are where they are expected."""
        for c in (c for c in region.carries if not c.in_place):
            found, last = self.load(c.into), self.load(c.last)
            yes, no = self.label(), self.label()
            self.branch(self.new(f"icmp eq ptr {found}, {last}"), no, yes)
            self.start_block(yes)
            self.copy(last, found, c.last.bytes)
            self.jump(no)
            self.start_block(no)

    def _scan(self, region: Region, prim: Scan) -> None:
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

    def _walk(self, region: Region, prim: DagScan) -> None:
        walk(self, region, prim)

    def mul(self, a: str, b: str) -> str:
        return self.new(f"mul i64 {a}, {b}")

    def holds(self, condition: Buffer) -> str:
        byte = self.new(f"load i8, ptr {self.load(condition)}, align 1")
        return self.new(f"icmp ne i8 {byte}, 0")

    def _while(self, region: Region, prim: WhileLoop) -> None:
        assert region.condition is not None
        assert region.count is not None
        test, body = region.blocks
        self.begin(region)
        count = self.load(region.count)
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
        self.end(region)

    def _cond(self, region: Region) -> None:
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
    def _sized(self, region: Region, prim: Sized) -> None:
        """Note the size and what depends on it, get memory, run, and give it back."""
        assert region.count is not None
        size = self.new(f"load i64, ptr {self.load(region.count)}, align 8")
        inner = RegionWriter(self.module, 0, self.stoppable)
        name = self.module.part(inner, region.blocks[0])
        own = Dim(prim.dim)
        wanted = {d for d in inner.dims if prim.dim in d.names} | {own}
        needed = [(b, b.bytes) for b in region.dynamic]
        values = {d: self.value(d, prim.dim, size) for d in sorted(wanted, key=str)}
        self.dims |= {d for d in inner.dims if prim.dim not in d.names}
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
        memory = self._allocate(total)
        start = self._aligned(memory)
        for (b, _), offset in zip(needed, offsets, strict=True):
            self.point(b, self.new(f"getelementptr i8, ptr {start}, i64 {offset}"))
        code = self.new(f"call i64 @{name}(ptr %block)")
        self.declare("void @free(ptr)")
        self.line(f"call void @free(ptr {memory})")
        for d, value in before.items():
            self.line(f"store i64 {value}, ptr {self.slot(d)}, align 8")
        self.dims -= set(values)
        self.leave_if(self.new(f"icmp ne i64 {code}, 0"), code)

    def _allocate(self, total: str) -> str:
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


TEAM = "ptr %main, i64 %thread, i64 %threads, ptr %team"  # what such a loop is called with
DRIVE = "i64 @rg_drive(ptr, i64, i64, ptr, ptr, ptr)"


class TeamWriter(RegionWriter):
    """Writes a loop whose steps all threads go through. Each has a block of its own, in which it
    moves its cursors; the first one does what is done once; after each step all wait, and hear
    whether to go on. Of the buffers in `own` each thread has one, in its scratch memory."""

    def __init__(self, module: Module, check: int, stoppable: bool, own: Sequence[Buffer]) -> None:
        super().__init__(module, check, stoppable)
        self.own = own

    def write_region(self, kernel: Kernel) -> str:
        (region,) = regions_of(kernel)
        if isinstance(region.node.prim, DagScan):
            self.part = self._part(region, region.node.prim)
            self._leave_alone(region.node.prim)
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
        return super().write_region(kernel)

    def copy(self, to: str, source: str, size: int | Dim) -> None:
        """Done by the first thread."""
        amount = self.size(size)
        mine, on = self.label(), self.label()
        self.branch(self.first, mine, on)
        self.start_block(mine)
        args = f"ptr {to}, ptr {source}, i64 {amount}, i1 false"
        self.line(f"call void @llvm.memcpy.p0.p0.i64({args})")
        self.jump(on)
        self.start_block(on)

    def begin(self, region: Region) -> None:
        super().begin(region)
        self.meet("0")

    def look(self) -> None:
        """That is seen after a step, by all."""

    def run(self, kernels: Sequence[Kernel]) -> None:
        bands = self.bands_of(kernels)
        table = self.module.table(bands)
        arguments = "ptr %block, i64 %thread, i64 %threads, ptr %team"
        code = self.new(f"call i64 @rg_drive({arguments}, ptr @{table}, ptr @kernels)")
        if self.stoppable:
            at = self.new("getelementptr i64, ptr %main, i64 {stop}")
            word = self.new(f"load atomic i64, ptr {at} monotonic, align 8")
            stop = self.new(f"icmp ne i64 {word}, 0")
            good = self.new(f"icmp eq i64 {code}, 0")
            both = self.new(f"and i1 {stop}, {good}")
            code = self.new(f"select i1 {both}, i64 {STOPPED}, i64 {code}")
        self.meet(code)

    def _walk(self, region: Region, prim: DagScan) -> None:
        walk_together(self, region, prim, self.part)

    def _part(self, region: Region, prim: DagScan) -> str:
        """A function that walks through the nodes from a place in their order to another."""
        inner = RegionWriter(self.module, self.check, self.stoppable)
        inner.watched = "%main"
        nodes(inner, region, prim, "%begin", "%until")
        inner.line("ret i64 0")
        self.dims |= inner.dims
        return self.module.function(inner, "ptr %block, ptr %main, i64 %begin, i64 %until")

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
        code = self.new(f"call i64 @{self.part}(ptr %main, ptr %main, i64 0, i64 {n})")
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
        worst = self.new(f"load i64, ptr {slot}, align 8")
        on, off = self.label(), self.label()
        self.branch(self.new(f"icmp eq i64 {worst}, 0"), on, off)
        self.start_block(off)
        self.tell_why()
        self.line(f"ret i64 {worst}")
        self.start_block(on)

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
