"""What functions of regions are written with: slots of the block, calls of kernels, ways out."""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.launch_layout import STOPPED
from retrograd.codegen.program.module_context import ModuleContext
from retrograd.ir import Dim
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel

COPY = "void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


class RegionEmitter(FunctionBuilder):
    """Writes the function of a region, whose arguments are in the slots of the block. `check` is
    the number of its own check, or 0."""

    def __init__(self, module: ModuleContext, check: int, stoppable: bool) -> None:
        super().__init__(module.declare)
        self.module = module
        self.check = check
        self.stoppable = stoppable
        self.dims: set[Dim] = set()  # that kernels inside read from the block

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
            if call.polls:  # nothing is to be made of what it may have left undone
                self.look()

    def leave_if(self, condition: str, result: str | int) -> None:
        on, off = self.label(), self.label()
        self.branch(condition, off, on)
        self.start_block(off)
        self.line(f"ret i64 {result}")
        self.start_block(on)

    def look(self) -> None:
        """End the run between two steps, if it is to be stopped."""
        if self.stoppable:
            self.leave_if(self.asked_to_stop(), STOPPED)

    def asked_to_stop(self) -> str:
        at = self.new("getelementptr i64, ptr %block, i64 {stop}")
        stop = self.new(f"load ptr, ptr {at}, align 8")
        word = self.new(f"load atomic i64, ptr {stop} monotonic, align 8")
        return self.new(f"icmp ne i64 {word}, 0")

    def mul(self, a: str, b: str) -> str:
        return self.new(f"mul i64 {a}, {b}")
