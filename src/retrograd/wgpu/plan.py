"""The plan of a graph for a GPU, whose memory holds elements of the types that shaders have."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from retrograd.ir import Dim, Graph, evaluate
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.lower import NodeLowering
from retrograd.schedule.planning import device_plan
from retrograd.wgpu.device import ALIGNMENT
from retrograd.wgpu.types import stored_bytes


class DeviceLowering(NodeLowering):
    """Leaves the accuracy of sums to the emitter of scatters."""

    blocks_sums = False


class ShaderPlanBuilder(device_plan.DevicePlanBuilder):
    lowering = DeviceLowering


class ShaderPlan(device_plan.DevicePlan):
    """With the bytes that buffers take there."""

    builder = ShaderPlanBuilder

    def __init__(self, graph: Graph, donate: Collection[int] = ()) -> None:
        def bytes_of(b: Buffer) -> int | Dim:
            return b.type.size * stored_bytes(b.type.dtype)

        super().__init__(graph, ALIGNMENT, bytes_of, donate)


def device_bytes(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    """The bytes of a buffer on the device."""
    return evaluate(buffer.type.size, sizes) * stored_bytes(buffer.type.dtype)
