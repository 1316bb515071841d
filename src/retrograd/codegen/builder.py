"""Writing the text of LLVM functions: registers, blocks, loops.

Text rather than llvmlite's objects, which take as long to build as LLVM takes to compile them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Registers = Sequence[str]


class Loop:
    """An open loop. `values` are what it carries from one iteration to the next."""

    __slots__ = ("_heads", "counter", "label", "step", "values")

    def __init__(self, label: str, counter: str, step: int | str) -> None:
        self.label = label
        self.counter = counter
        self.step = step
        self.values: list[str] = []
        self._heads: list[tuple[int, str]] = []  # lines to be completed when the loop is closed


class FunctionBuilder:
    """The text of one function. Registers and labels are numbered from 0, so that functions that
    do the same have the same text. A `brief` text is one that LLVM is quick to compile, in a form
    that takes longer to run, to the same bits."""

    def __init__(self, declare: Callable[[str], None], brief: bool = False) -> None:
        self.brief = brief
        self.lines: list[str] = []
        self.entry: list[str] = []  # stack space, reserved once
        # Makes a function known, "float @llvm.fabs.f32(float)", or a definition, as it stands.
        self.declare = declare
        self.block = "start"
        self._registers = 0
        self._labels = 0

    def new(self, text: str) -> str:
        """Compute something into a new register."""
        name = f"%r{self._registers}"
        self._registers += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def reserve(self, kind: str, align: int = 64) -> str:
        """Space on the stack."""
        name = f"%m{self._registers}"
        self._registers += 1
        self.entry.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def line_if(self, condition: str, *lines: str) -> None:
        """One line where a condition holds, the other where not; an empty one does nothing."""
        *labels, end = self.label(), self.label(), self.label()
        self.branch(condition, *labels)
        for label, line in zip(labels, lines, strict=True):
            self.start_block(label)
            if line:
                self.line(line)
            self.jump(end)
        self.start_block(end)

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def open_loop(
        self,
        end: str,
        step: int | str = 1,
        start: str = "0",
        carried: Sequence[tuple[str, str]] = (),
    ) -> Loop:
        """Start a loop of a counter from `start` while it is below `end`. `carried` are types and
        first values of what `close_loop` gives new values; after it, `values` are the last ones."""
        name, before = self.label(), self.block
        self.jump(f"{name}.head")
        self.start_block(f"{name}.head")
        loop = Loop(name, f"%{name}.i", step)
        self.line(
            f"{loop.counter} = phi i64 [ {start}, %{before} ], [ %{name}.next, %{name}.last ]"
        )
        for i, (kind, first) in enumerate(carried):
            value = f"%{name}.v{i}"
            loop._heads.append((len(self.lines), f"{value} = phi {kind} [ {first}, %{before} ]"))
            self.line("")
            loop.values.append(value)
        self.line(f"%{name}.more = icmp slt i64 {loop.counter}, {end}")
        self.branch(f"%{name}.more", f"{name}.body", f"{name}.end")
        self.start_block(f"{name}.body")
        return loop

    def close_loop(self, loop: Loop, values: Sequence[str] = ()) -> None:
        name = loop.label
        self.jump(f"{name}.last")
        self.start_block(f"{name}.last")
        self.line(f"%{name}.next = add nuw nsw i64 {loop.counter}, {loop.step}")
        self.jump(f"{name}.head")
        self.start_block(f"{name}.end")
        for (at, head), value in zip(loop._heads, values, strict=True):
            self.lines[at] = f"  {head}, [ {value}, %{name}.last ]"

    def repeat(
        self, count: str, carried: Sequence[tuple[str, str]], body: Callable[[list[str]], Registers]
    ) -> list[str]:
        """The last of what `body`, so many times, makes of these: types and first values."""
        loop = self.open_loop(count, carried=carried)
        self.close_loop(loop, body(loop.values))
        return loop.values

    def repeat_while(
        self,
        carried: Sequence[tuple[str, str]],
        more: Callable[[list[str]], str],
        body: Callable[[list[str]], Registers],
    ) -> list[str]:
        """The last of what `body` makes of these, types and first values, while `more` holds."""
        name, before = self.label(), self.block
        self.jump(f"{name}.head")
        self.start_block(f"{name}.head")
        values, at = [f"%{name}.v{i}" for i in range(len(carried))], len(self.lines)
        self.lines += [""] * len(carried)
        self.branch(more(values), f"{name}.body", f"{name}.end")
        self.start_block(f"{name}.body")
        new = body(values)
        last = self.block
        self.jump(f"{name}.head")
        self.start_block(f"{name}.end")
        self.lines[at : at + len(carried)] = [
            f"  {value} = phi {kind} [ {first}, %{before} ], [ {y}, %{last} ]"
            for value, (kind, first), y in zip(values, carried, new, strict=True)
        ]
        return values

    def either_of(
        self, condition: str, kind: str, yes: Callable[[], Registers], no: Callable[[], Registers]
    ) -> list[str]:
        """What one of the two writes, all of one type; only that one is computed."""
        on, off, end = self.label(), self.label(), self.label()
        self.branch(condition, on, off)
        found, ends = [], []
        for label, write in ((on, yes), (off, no)):
            self.start_block(label)
            found.append(write())
            ends.append(self.block)
            self.jump(end)
        self.start_block(end)
        return [
            self.new(f"phi {kind} [ {x}, %{ends[0]} ], [ {y}, %{ends[1]} ]")
            for x, y in zip(*found, strict=True)
        ]

    def text(self) -> str:
        return "\n".join(["start:", *self.entry, *self.lines])
