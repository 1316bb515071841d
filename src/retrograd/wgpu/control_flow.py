"""Loops and choices: the host encodes the commands of each step, where it can as part of one
command buffer. A cursor is the buffer that it goes through, with the element where it points to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrograd.ir import evaluate
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.host_control_flow import HostControlFlow
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion
from retrograd.schedule.kernel import Kernel
from retrograd.wgpu.commands import BufferSlice, RegionStep
from retrograd.wgpu.run import CommandEncoder


class EncodedControlFlow(HostControlFlow):
    """A region of a call whose commands are encoded."""

    def __init__(self, encoder: CommandEncoder, step: RegionStep) -> None:
        self._encoder, self._kernel = encoder, step.kernel
        self.places, self.sizes = encoder.places, encoder.sizes

    def block(self, kernels: Sequence[Kernel]) -> None:
        self._encoder.block(kernels)

    def place(self, buffer: Buffer) -> BufferSlice:
        return self._encoder.place(buffer)

    def row(self, whole: Buffer, row: Buffer, number: int) -> BufferSlice:
        at = self.place(whole)
        return replace(at, first=at.first + number * evaluate(row.type.size, self.sizes))

    def copy(self, source: Buffer, target: Buffer) -> None:
        a, b = self.place(source), self.place(target)
        is_one = (a.gpu, a.offset, a.first) == (b.gpu, b.offset, b.first)
        if not is_one and evaluate(source.type.size, self.sizes):
            encoder = self._encoder
            encoder.step(encoder.program.copy(self._kernel, source, target, self.sizes))

    def read(self, buffer: Buffer) -> Array:
        return self._encoder.read(buffer)

    def write(self, buffer: Buffer, number: int) -> None:
        self._encoder.submit()
        self._encoder.write(buffer, number)

    def check(self) -> None:
        """Nothing: checks that fail are told at the end of the call."""

    def sized(self, region: ControlRegion, dim: str, size: int) -> None:
        encoder = self._encoder
        before, first, known = encoder.sizes, len(encoder.taken), set(encoder.places)
        encoder.sizes = {**before, dim: size}
        encoder.block(region.blocks[0])
        encoder.sizes = before
        for buffer in [b for b in encoder.places if b not in known and b.kind == "temporary"]:
            del encoder.places[buffer]
        encoder.give_back(first)


def run_region(encoder: CommandEncoder, step: RegionStep) -> None:
    """Encode a region."""
    EncodedControlFlow(encoder, step).run(step.region)


CommandEncoder.region = run_region
