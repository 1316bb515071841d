"""One call of a program: where its buffers are, and the commands that the device gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from retrograd.ir import Dim, evaluate
from retrograd.nvptx.device_code import SpecializedCode
from retrograd.nvptx.emit.launch import Argument, Launch, Scratch, Sizes, Status, Word
from retrograd.runtime.backend import Array
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel


class CudaRun:
    """Puts the commands of one call into the stream. `places` are the addresses of buffers."""

    region: ClassVar[Any]  # `control_flow.py` sets it: what runs a kernel that is a region
    check: Callable[[], None]  # raises what a check that failed asks for

    def __init__(
        self,
        shaped: SpecializedCode,
        places: dict[Buffer, int],
        sizes: Sizes,
        arena: int,
        status: int,
    ) -> None:
        self.shaped, self.places, self.sizes = shaped, places, sizes
        self.code = shaped.code
        self.device = shaped.code.device
        self._scratch = arena + shaped.scratch
        self._status = status

    def kernels(self, kernels: Sequence[Kernel]) -> None:
        """These, in order."""
        code = self.code
        for kernel in kernels:
            if id(kernel) not in code.made:
                if regions_of(kernel):
                    self.region(kernel)
                continue  # or a check of what a call on the host has refused by itself
            for launch in self.shaped.launches(kernel, self.sizes):
                self._launch(launch)
            call = code.calls.get(id(kernel))
            if call is not None:
                if code.checks:
                    self.check()
                found = call([self.read(b) for b in call.operands], self.sizes)
                self.write(call.result, found)

    def count(self) -> int:
        """About how many launches there are, those that loops repeat counted once."""
        return sum(len(self.shaped.launches(k, self.sizes)) for k in self.code.plan.every
                   if id(k) in self.code.made)  # fmt: skip

    def _launch(self, launch: Launch) -> None:
        library = self.device.products
        if launch.products and library is not None:
            for product in launch.products:
                library.run(product, self.places)
            return
        given = [self._argument(a, launch) for a in launch.arguments]
        kernel = self.code.kernels[launch.function]
        self.device.launch(kernel, launch.blocks, launch.block, given)

    def _argument(self, what: Argument, launch: Launch) -> int:
        if isinstance(what, Buffer):
            return self.places[what]
        if isinstance(what, Dim):
            return evaluate(what, self.sizes)
        if isinstance(what, Word):
            return launch.words[what.name]
        if isinstance(what, Scratch):
            return self._scratch + self.code.scratch_at(what, self.sizes)
        assert isinstance(what, Status)
        return self._status

    @contextmanager
    def working_in(self, scratch: int) -> Iterator[None]:
        """Have launches work in other memory."""
        before, self._scratch = self._scratch, scratch
        yield
        self._scratch = before

    # -- numbers ------------------------------------------------------------------------------
    def bytes_of(self, buffer: Buffer) -> int:
        return evaluate(buffer.bytes, self.sizes)

    def read(self, buffer: Buffer) -> Array:
        """What a buffer holds, on the host."""
        shape = [evaluate(d, self.sizes) for d in buffer.type.shape]
        found: Array = np.empty(shape, buffer.type.dtype.dtype)
        self.device.download(self.places[buffer], found)
        return found

    def write(self, buffer: Buffer, value: Any) -> None:
        """Fill a buffer from the host."""
        array = np.ascontiguousarray(value, buffer.type.dtype.dtype)
        self.device.upload(self.places[buffer], array)

    def copy(self, to: int, source: int, size: int) -> None:
        if to != source and size:
            self.device.copy(to, source, size)
