"""Loops and choices: the commands of each step are put into the stream. A cursor is an address that
the host moves."""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.nvptx.run import CudaRun
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.host_control_flow import HostControlFlow
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion, regions_of
from retrograd.schedule.kernel import Kernel


class StreamControlFlow(HostControlFlow):
    """A region of a call whose commands go into a stream."""

    def __init__(self, call: CudaRun) -> None:
        self._call = call
        self.places, self.sizes = call.places, call.sizes

    def block(self, kernels: Sequence[Kernel]) -> None:
        self._call.kernels(kernels)

    def place(self, buffer: Buffer) -> int:
        return self._call.places[buffer]

    def row(self, whole: Buffer, row: Buffer, number: int) -> int:
        return self.place(whole) + number * self._call.bytes_of(row)

    def copy(self, source: Buffer, target: Buffer) -> None:
        self._call.copy(self.place(target), self.place(source), self._call.bytes_of(target))

    def read(self, buffer: Buffer) -> Array:
        return self._call.read(buffer)

    def write(self, buffer: Buffer, number: int) -> None:
        self._call.write(buffer, number)

    def check(self) -> None:
        if self._call.code.checks:
            self._call.check()

    def sized(self, region: ControlRegion, dim: str, size: int) -> None:
        """Get memory for what depends on the size, run, and give it back."""
        call, before = self._call, self._call.sizes
        call.sizes = {**before, dim: size}
        taken = []
        try:
            for buffer in region.dynamic:
                count = call.bytes_of(buffer)
                call.places[buffer] = call.device.allocate(count)
                taken.append((call.places[buffer], count))
            scratch = call.code.scratch_bytes(call.sizes)
            taken.append((call.device.allocate(scratch), scratch))
            with call.working_in(taken[-1][0]):
                call.kernels(region.blocks[0])
        finally:
            for address, count in taken:
                call.device.release(address, count)
            call.sizes = before


def run_region(call: CudaRun, kernel: Kernel) -> None:
    """What a kernel that is a region runs."""
    for region in regions_of(kernel):
        StreamControlFlow(call).run(region)


CudaRun.region = run_region
