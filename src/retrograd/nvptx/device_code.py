"""What a graph becomes for a device, before anything is run: its plan, its kernels as PTX, and what
is known once sizes are."""

from __future__ import annotations

from typing import Any

from retrograd.ir import Graph, evaluate
from retrograd.memory_limit import check_memory
from retrograd.nvptx.device import ALIGNMENT, CudaDevice, rounded
from retrograd.nvptx.emit.launch import Launch, Launches, Scratch, Sizes
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.nests import launches_of
from retrograd.nvptx.host_call import HostCall, host_call
from retrograd.nvptx.ptx import ptx_of
from retrograd.ops.control import Scan
from retrograd.passes import prepared
from retrograd.passes.lowering.libcall import CheckCall
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel, gemms
from retrograd.schedule.planning.device_plan import DevicePlan


class DeviceCode:
    """The kernels of a graph, loaded, and what they are called with."""

    def __init__(self, graph: Graph, device: CudaDevice) -> None:
        self.device = device
        self.plan = plan = DevicePlan(prepared(graph, True), ALIGNMENT)
        module = DeviceModule()
        self.made: dict[int, list[Launches]] = {}  # what kernels launch, by `id`
        self.calls: dict[int, HostCall] = {}
        for kernel in plan.every:
            self._make(module, kernel)
        self.ptx = ptx_of(module.text(), device.capability)
        self.kernels = device.kernels(self.ptx)
        if gemms(plan.every):
            _ = device.products  # loaded by now: a graph of launches could not note that down
        self._scratches = module.scratches
        self.checks = bool(plan.checks)
        # Whether all commands are known before the first one is run.
        self.fixed = not self.calls and not any(
            not isinstance(r.node.prim, Scan) for k in plan.every for r in regions_of(k)
        )

    def _make(self, module: DeviceModule, kernel: Kernel) -> None:
        """What a kernel launches; checks of what a call has returned are made by the call."""
        call = host_call(kernel)
        if call is not None:
            self.calls[id(kernel)] = call
            self.made[id(kernel)] = launches_of(module, kernel, kernel.nests[:-1])
        elif not regions_of(kernel) and not isinstance(kernel.nodes[0].prim, CheckCall):
            self.made[id(kernel)] = launches_of(module, kernel, kernel.nests)

    def scratch_bytes(self, sizes: Sizes) -> int:
        """What the launches of one kernel work in, at most."""
        return max(
            (sum(rounded(s.size(sizes)) for s in group) for group in self._scratches), default=0
        )

    def scratch_at(self, scratch: Scratch, sizes: Sizes) -> int:
        """Where that is, from the start of such memory."""
        group = next(g for g in self._scratches if scratch in g)
        return sum(rounded(s.size(sizes)) for s in group[: group.index(scratch)])


class SpecializedCode:
    """A program at sizes that are known."""

    def __init__(self, code: DeviceCode, sizes: Sizes) -> None:
        self.code = code
        plan = code.plan
        plan.check_sizes(sizes)
        self.sizes = {**dict.fromkeys(plan.hidden, 1), **sizes}
        placed = plan.layout(self.sizes)
        self.offsets, self.arena = placed.offsets, placed.arena
        self.scratch = self.arena  # where that begins
        self.bytes = self.arena + code.scratch_bytes(self.sizes)
        made = sum(rounded(evaluate(b.bytes, self.sizes)) for b in plan.outputs)
        check_memory(
            self.bytes + made, lambda: plan.arrays(sizes), sizes,
            code.device.available, f"on {code.device.name}",
        )  # fmt: skip
        self._launches: dict[tuple[Any, ...], list[Launch]] = {}
        self.graphs: dict[tuple[int, ...], Any] = {}  # by addresses; None: seen once

    def launches(self, kernel: Kernel, sizes: Sizes) -> list[Launch]:
        """Those of a kernel, at these sizes, of which some may have become known on the way."""
        key = id(kernel), *sizes.values()
        found = self._launches.get(key)
        if found is None:
            made = self.code.made[id(kernel)]
            found = self._launches[key] = [launch for f in made for launch in f(sizes)]
        return found
