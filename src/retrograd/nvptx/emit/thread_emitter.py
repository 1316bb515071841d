"""A loop nest as a kernel of the device: kept loops become threads.

Everything that writes a nest for a CPU (`codegen/emit/`) writes it for one thread here: one lane,
and of the loops whose iterations are independent the one iteration that the thread is. So a result
has the bits it has on a CPU. A row whose partial results are those of lanes is gone through by as
many threads, a *team*, which combine theirs by shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.target import Target
from retrograd.ir import Dim
from retrograd.nvptx.emit.launch import Argument, Word

GPU = Target(width=1, registers=64, fma=True)


class ThreadEmitter(KernelEmitter):
    """Writes one kernel of the device. `parameters` are its arguments in the order of first use."""

    parameters: dict[Argument, str]  # type: ignore[assignment]

    def __init__(self, declare: Callable[[str], None]) -> None:
        super().__init__(declare, GPU, light=True)
        self.brief = False

    def parameter(self, what: Argument) -> str:
        found = self.parameters.get(what)
        if found is None:
            kind = "s" if isinstance(what, Dim | Word) else "p"
            found = self.parameters[what] = f"%{kind}{len(self.parameters)}"
        return found

    def _choose_lanes(self) -> int:
        return 1

    # -- threads ------------------------------------------------------------------------------
    def register(self, name: str) -> str:
        """`tid.x`, `ctaid.x`, `ntid.x` or `laneid`, as an i32."""
        self.declare(f"i32 @llvm.nvvm.read.ptx.sreg.{name}()")
        return self.new(f"call i32 @llvm.nvvm.read.ptx.sreg.{name}()")

    def thread(self) -> str:
        """The number of this thread among all."""
        block, size, own = (self.register(n) for n in ("ctaid.x", "ntid.x", "tid.x"))
        wide = [self.new(f"zext i32 {x} to i64") for x in (block, size, own)]
        start = self.new(f"mul nuw nsw i64 {wide[0]}, {wide[1]}")
        return self.new(f"add nuw nsw i64 {start}, {wide[2]}")

    def leave_unless(self, condition: str) -> None:
        """End the thread where a condition does not hold."""
        on = self.label()
        self.branch(condition, on, "out")
        self.start_block(on)

    def spread(self, sizes: Sequence[int | Dim | str], team: int = 1) -> list[str]:
        """The index of this thread, or of its team, in a domain; threads beyond it end. A size may
        be in a register."""
        at, total = self.thread(), "1"
        if team > 1:
            self.team, self.lane = team, self.new(f"and i64 {at}, {team - 1}")
            at = self.new(f"lshr i64 {at}, {team.bit_length() - 1}")
        named = [n if isinstance(n, str) else self.size(n) for n in sizes]
        for n in named:
            total = n if total == "1" else self.times(total, n)
        self.leave_unless(self.new(f"icmp slt i64 {at}, {total}"))
        return self.unravel(at, named)

    def unravel(self, at: str, sizes: Sequence[str]) -> list[str]:
        """The index of the element at a position in row-major order."""
        index = []
        for k in reversed(range(len(sizes))):
            if k == 0:
                index.append(at)
                break
            index.append("0" if sizes[k] == "1" else self.new(f"urem i64 {at}, {sizes[k]}"))
            at = at if sizes[k] == "1" else self.new(f"udiv i64 {at}, {sizes[k]}")
        return index[::-1]

    def times(self, a: str, b: str) -> str:
        if a.isdigit() and b.isdigit():
            return str(int(a) * int(b))
        return self.new(f"mul nsw i64 {a}, {b}")

    # -- teams --------------------------------------------------------------------------------
    def across(self, kind: str, x: str, step: int) -> str:
        return self.shuffled("bfly", kind, x, str(step))

    def shuffled(self, how: str, kind: str, x: str, by: str) -> str:
        """What another thread of the team has: of the lane `by` (`idx`), so many lanes below
        (`up`) or above (`down`), or that whose number differs in these bits (`bfly`)."""
        lane = self.register("laneid")
        first = self.new(f"and i32 {lane}, {-self.team}")
        members = self.new(f"shl i32 {(1 << self.team) - 1}, {first}")
        clamp = (32 - self.team) << 8 | (0 if how == "up" else 31)
        name = f"i32 @llvm.nvvm.shfl.sync.{how}.i32"
        self.declare(f"{name}(i32, i32, i32, i32)")

        def moved(word: str) -> str:
            return self.new(f"call {name}(i32 {members}, i32 {word}, i32 {by}, i32 {clamp})")

        return in_words(self, kind, x, moved)

    def barrier(self) -> None:
        """Wait until all threads of the block are here."""
        self.declare("void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent")
        self.line("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")

    # -- the function -------------------------------------------------------------------------
    def function(self, threads: int) -> str:
        """All of it but its name, which `{name}` stands for."""
        if self.block != "out":
            self.jump("out")
        self.start_block("out")
        self.line("ret void")
        kinds = ["i64" if isinstance(p, Dim | Word) else "ptr" for p in self.parameters]
        named = zip(kinds, self.parameters.values(), strict=True)
        listed = ", ".join(f"{kind} {name}" for kind, name in named)
        head = f'define ptx_kernel void {{name}}({listed}) "nvvm.maxntid"="{threads}" nounwind'
        return f"{head} {{\n{self.text()}\n}}"


def in_words(w: FunctionBuilder, kind: str, x: str, function: Callable[[str], str]) -> str:
    """A function of words of 32 bits on each of those that a register has."""
    bits = {"float": 32, "double": 64}.get(kind) or int(kind[1:])
    whole = x if kind.startswith("i") else w.new(f"bitcast {kind} {x} to i{bits}")
    if bits <= 32:
        short = whole if bits == 32 else w.new(f"zext i{bits} {whole} to i32")
        found = function(short)
        found = found if bits == 32 else w.new(f"trunc i32 {found} to i{bits}")
    else:
        low = function(w.new(f"trunc i64 {whole} to i32"))
        high = function(w.new(f"trunc i64 {w.new(f'lshr i64 {whole}, 32')} to i32"))
        low, high = (w.new(f"zext i32 {half} to i64") for half in (low, high))
        found = w.new(f"or i64 {low}, {w.new(f'shl i64 {high}, 32')}")
    return found if kind.startswith("i") else w.new(f"bitcast i{bits} {found} to {kind}")
