"""A graph as a program of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.ir import Graph, evaluate
from retrograd.nvptx import control_flow  # noqa: F401  (what runs regions)
from retrograd.nvptx.device import CudaDevice
from retrograd.nvptx.device_code import DeviceCode, SpecializedCode
from retrograd.nvptx.memory import CudaMemory
from retrograd.nvptx.run import CudaRun
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.device_array import device_copy, host, numbers_for, pending, remember
from retrograd.runtime.executable import Executable
from retrograd.schedule.buffer import Buffer
from retrograd.tuning import TUNING


class DeviceProgram:
    """Runs a graph, which has real numbers only, on a device.

    Calling it gives arrays of NumPy; `resident` gives arrays that stay on the device. May be called
    from several threads; they take turns.
    """

    def __init__(self, graph: Graph, device: CudaDevice) -> None:
        self.graph, self.device = graph, device
        self.code = DeviceCode(graph, device)
        self.plan, self.ptx = self.code.plan, self.code.ptx
        self._shaped: dict[tuple[int, ...], SpecializedCode] = {}
        self._constants: dict[Buffer, CudaMemory] | None = None
        self._status: CudaMemory | None = None

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        return [host(y) for y in self.resident(arrays)]

    def resident(self, arrays: Sequence[Any]) -> list[Any]:
        """The same, of arrays and as arrays that may be on the device."""
        sizes = bind(self.graph.inputs, arrays)
        with self.device.lock:
            self.device.enter()
            key = tuple(sizes.values())
            found = self._shaped.get(key)
            if found is None:
                if len(self._shaped) >= TUNING.kept_arena_layouts:
                    self._forget()
                found = self._shaped[key] = SpecializedCode(self.code, sizes)
            return self._call(found, arrays)

    def _forget(self) -> None:
        for shaped in self._shaped.values():
            for graph in shaped.graphs.values():
                if graph is not None:
                    self.device.drop_graph(graph)
        self._shaped.clear()

    def _call(self, shaped: SpecializedCode, arrays: Sequence[Any]) -> list[Any]:
        device, plan = self.device, self.plan
        given = [self._upload(a) for a in arrays]
        places = {b: m.address for b, m in zip(plan.inputs, given, strict=True)}
        places |= {b: m.address for b, m in self.constants().items()}
        results, memories = [], []
        for buffer in plan.outputs:
            shape = [evaluate(d, shaped.sizes) for d in buffer.type.shape]
            memory = CudaMemory(device, shape, buffer.type.dtype.dtype)
            memories.append(memory)
            places[buffer] = memory.address
            results.append(pending(memory.shape, memory.dtype, memory))
        arena = device.allocate(shaped.bytes)
        try:
            for buffer, offset in shaped.offsets.items():
                places[buffer] = arena + offset
            status = self.status()
            if self.code.checks:
                device.upload(status.address, np.zeros(1, np.int64))
            run = CudaRun(shaped, places, shaped.sizes, arena, status.address)
            run.check = lambda: self._check(arrays)
            self._run(run, (*(m.address for m in (*given, *memories)), arena))
            if self.code.checks:
                self._check(arrays)
        finally:
            device.release(arena, shaped.bytes)
        return results

    def _run(self, run: CudaRun, addresses: tuple[int, ...]) -> None:
        """Put all commands into the stream; the third time that memory is the same, as one."""
        device, graphs = self.device, run.shaped.graphs
        if not self.code.fixed or run.count() > TUNING.cuda_captured_launches:
            run.kernels(self.plan.kernels)
            return
        if graphs.get(addresses) is not None:
            device.run_graph(graphs[addresses])
            return
        if addresses not in graphs:
            if len(graphs) >= TUNING.cuda_graphs:
                old = graphs.pop(next(iter(graphs)))
                if old is not None:
                    device.drop_graph(old)
            graphs[addresses] = None
            run.kernels(self.plan.kernels)
            return
        device.begin_graph()
        try:
            run.kernels(self.plan.kernels)
        finally:
            graphs[addresses] = device.end_graph()
        device.run_graph(graphs[addresses])

    def _check(self, arrays: Sequence[Any]) -> None:
        """Where a check failed, the error that a processor finds first."""
        if self.device.word(self.status().address, np.int64):
            given = [host(a) for a in arrays]
            Executable(self.graph, simplify=True)(given)
            raise RetrogradError("the cuda backend refused what the llvm backend does not")

    # -- memory -------------------------------------------------------------------------------
    def constants(self) -> dict[Buffer, CudaMemory]:
        """The constants of the program, on the device."""
        if self._constants is None:
            listed = self.plan.memory.constants
            self._constants = {b: self._upload(np.asarray(b.node.attrs["value"])) for b in listed}
        return self._constants

    def status(self) -> CudaMemory:
        if self._status is None:
            self._status = CudaMemory(self.device, (1,), np.dtype(np.int64))
        return self._status

    def _upload(self, array: Any) -> CudaMemory:
        """The copy of an array on the device; made, if there is none yet."""
        found: CudaMemory | None = device_copy(array, self.device)
        if found is None:
            numbers = numbers_for(array, "cuda")
            found = CudaMemory(self.device, numbers.shape, numbers.dtype)
            self.device.upload(found.address, np.require(numbers, requirements=("C", "A")))
            remember(array, found)
        return found
