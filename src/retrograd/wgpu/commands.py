"""What a specialization is made of, and what a call encodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrograd.schedule.control_regions import ControlRegion
from retrograd.schedule.kernel import Kernel
from retrograd.wgpu.dispatch import Dispatch

LEAST_BYTES = 16  # that are bound, of an empty array, too


@dataclass(frozen=True, slots=True)
class BufferSlice:
    """Where a buffer is: memory of the GPU, from an offset on, so many bytes; for a cursor, the
    element of these where it points to."""

    gpu: Any
    offset: int
    bytes: int
    first: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """A dispatch, and the grid that its workgroups are."""

    dispatch: Dispatch
    grid: tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class RegionStep:
    """A region, and the kernel that it is."""

    region: ControlRegion
    kernel: Kernel


Item = Instruction | RegionStep
