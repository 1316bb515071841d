"""Writing the text of LLVM functions: registers, blocks, loops.

Text rather than llvmlite's objects, which take as long to build as LLVM takes to compile them.
"""

from __future__ import annotations

from collections.abc import Callable


class Loop:
    """An open loop."""

    __slots__ = ("counter", "label", "step")

    def __init__(self, label: str, counter: str, step: int) -> None:
        self.label = label
        self.counter = counter
        self.step = step


class Writer:
    """The text of one function. Registers and labels are numbered from 0, so that functions that
    do the same have the same text."""

    def __init__(self, declare: Callable[[str], None]) -> None:
        self.lines: list[str] = []
        self.entry: list[str] = []  # stack space, reserved once
        self.declare = declare  # makes a function known: "float @llvm.fabs.f32(float)"
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

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def open_loop(self, size: str, step: int = 1) -> Loop:
        """Start a loop of a counter from 0 up to `size`."""
        name = self.label()
        before = self.block
        self.jump(f"{name}.head")
        self.start_block(f"{name}.head")
        counter = f"%{name}.i"
        self.line(f"{counter} = phi i64 [ 0, %{before} ], [ %{name}.next, %{name}.latch ]")
        self.line(f"%{name}.more = icmp slt i64 {counter}, {size}")
        self.branch(f"%{name}.more", f"{name}.body", f"{name}.end")
        self.start_block(f"{name}.body")
        return Loop(name, counter, step)

    def close_loop(self, loop: Loop) -> None:
        name = loop.label
        self.jump(f"{name}.latch")
        self.start_block(f"{name}.latch")
        self.line(f"%{name}.next = add nuw nsw i64 {loop.counter}, {loop.step}")
        self.jump(f"{name}.head")
        self.start_block(f"{name}.end")

    def text(self) -> str:
        return "\n".join(["start:", *self.entry, *self.lines])
