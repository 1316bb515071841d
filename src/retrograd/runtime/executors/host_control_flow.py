"""Loops and choices of a program on a device, which the host goes through.

Where a loop's length is known, the commands of all its steps are given to the device at once.
Whether a loop goes on, which branch is taken, and a size that becomes known are numbers on the
device: there the host waits until it has them. A *cursor* is a buffer whose place the host moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from retrograd.ir import evaluate
from retrograd.ops.control import Cond, Scan, Sized, WhileLoop
from retrograd.runtime.backend import Array
from retrograd.runtime.errors import failure_of
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion, length_of
from retrograd.schedule.kernel import Kernel


class HostControlFlow(ABC):
    """Goes through a region of one call. `places` says where buffers are, in a backend's own terms;
    `sizes` are those known so far."""

    places: dict[Buffer, Any]
    sizes: Mapping[str, int]

    @abstractmethod
    def block(self, kernels: Sequence[Kernel]) -> None:
        """Have the device run kernels."""

    @abstractmethod
    def place(self, buffer: Buffer) -> Any:
        """Where a buffer is."""

    @abstractmethod
    def row(self, whole: Buffer, row: Buffer, number: int) -> Any:
        """Where a row of a buffer is."""

    @abstractmethod
    def copy(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer, unless both are one memory."""

    @abstractmethod
    def read(self, buffer: Buffer) -> Array:
        """What a buffer holds, once it is computed."""

    @abstractmethod
    def write(self, buffer: Buffer, number: int) -> None:
        """Set a buffer of one number, after what the device was given so far."""

    @abstractmethod
    def sized(self, region: ControlRegion, dim: str, size: int) -> None:
        """Run what depends on a size that became known."""

    @abstractmethod
    def check(self) -> None:
        """Raise what has failed so far, where the host waits anyway."""

    def run(self, region: ControlRegion) -> None:
        """All of a region."""
        prim = region.node.prim
        if isinstance(prim, Scan):
            self._scan(region, prim)
        elif isinstance(prim, WhileLoop):
            self._while_loop(region, prim)
        elif isinstance(prim, Cond):
            self.block(region.blocks[0 if self._holds(region) else 1])
        else:
            assert isinstance(prim, Sized)
            assert region.count is not None
            self.check()
            self.sized(region, prim.dim, int(self.read(region.count).reshape(-1)[0]))

    def _holds(self, region: ControlRegion) -> bool:
        assert region.condition is not None
        return bool(self.read(region.condition).reshape(-1)[0])

    def _begin(self, region: ControlRegion) -> None:
        """Carries are where they start."""
        for c in region.carries:
            self.copy(c.first, c.last)
            self.places[c.into] = self.place(c.last)
            if not c.in_place:
                self.places[c.out] = self.place(c.spare)

    def _end(self, region: ControlRegion) -> None:
        """Carries are where they are expected."""
        for c in region.carries:
            if not c.in_place:
                self.copy(c.into, c.last)

    def _scan(self, region: ControlRegion, prim: Scan) -> None:
        length = length_of(region)
        assert length is not None
        self._begin(region)
        for t in range(evaluate(length, self.sizes))[:: -1 if prim.reverse else 1]:
            for row in region.rows:
                self.places[row.row] = self.row(row.whole, row.row, t)
            self.block(region.blocks[0])
            region.take_turns(self.places)
        self._end(region)

    def _while_loop(self, region: ControlRegion, prim: WhileLoop) -> None:
        assert region.count is not None
        test, body = region.blocks
        self._begin(region)
        steps = 0
        while True:
            self.block(test)
            if not self._holds(region):
                break
            self.check()
            if prim.most is not None and steps >= prim.most:
                raise failure_of(region.node, 0, self.sizes)
            self.block(body)
            region.take_turns(self.places)
            steps += 1
        self._end(region)
        self.write(region.count, steps)
