"""A graph as a program of the GPU."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from retrograd.ir import Graph, as_dtype, spec, uint32
from retrograd.ops.leaf import input_node
from retrograd.passes import prepared
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.device_array import (
    DeviceArray,
    device_copy,
    host,
    numbers_for,
    pending,
    remember,
)
from retrograd.runtime.errors import failure_of
from retrograd.runtime.executable import Executable
from retrograd.schedule.buffer import Buffer
from retrograd.wgpu import control_flow  # noqa: F401  (by operation)
from retrograd.wgpu.commands import LEAST_BYTES, BufferSlice
from retrograd.wgpu.device import Device, device
from retrograd.wgpu.memory import DeviceMemory
from retrograd.wgpu.plan import ShaderPlan
from retrograd.wgpu.run import CommandEncoder
from retrograd.wgpu.specialization import Specialization
from retrograd.wgpu.types import stored_dtype

KEPT_SIZES = 64  # of one program


def status_of(plan: ShaderPlan) -> Buffer:
    """What checks that fail write to: a word for each."""
    status = input_node(spec((max(len(plan.checks), 1),), uint32))
    return Buffer("status", 0, status.type, status)


class WgpuProgram:
    """Runs a graph, which has real numbers only, on the GPU.

    Calling it gives arrays of NumPy; `resident` gives arrays that stay on the device, and `consume`
    has results written over inputs of `donate`, where that can be.
    """

    def __init__(self, graph: Graph, donate: Collection[int] = ()) -> None:
        self.graph = graph
        self.device: Device = device()
        self.plan = ShaderPlan(prepared(graph, True), donate)
        self.status = status_of(self.plan)
        self._shaped: dict[tuple[int, ...], Specialization] = {}
        self._constants: dict[Buffer, BufferSlice] | None = None
        self._kept: list[DeviceMemory] = []  # of constants

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        return [host(y) for y in self.resident(arrays)]

    def resident(self, arrays: Sequence[Any]) -> list[Any]:
        """The same, of arrays and as arrays that may be on the device."""
        return self._run(arrays, ())

    def consume(self, arrays: list[Any]) -> list[Any]:
        """The same; the memory of donated arrays that nobody else has is written over. They are
        gone, and `arrays` is empty, once the checks of the program have passed."""
        return self._run(arrays, [j for j in self.plan.donated.values() if _is_own(arrays, j)])

    def _run(self, arrays: Any, own: Collection[int]) -> list[Any]:
        sizes = bind(self.graph.inputs, arrays)
        with self.device.lock:
            key = tuple(sizes.values())
            found = self._shaped.get(key)
            if found is None:
                if len(self._shaped) >= KEPT_SIZES:
                    self._shaped.clear()
                found = self._shaped[key] = Specialization(self.plan, self.status, sizes)
            return self._call(found, arrays, own)

    def _call(self, shaped: Specialization, arrays: Any, own: Collection[int]) -> list[Any]:
        device, plan = self.device, self.plan
        # Memory that must not be used for anything else before the call is encoded.
        held = [self.upload(array) for array in arrays]
        kept = [(j, held[j]) for j in plan.donated.values() if j not in own]
        for j, memory in kept:  # what somebody else has is not written over, but a copy of it
            held[j] = memory.another()
        made = [
            DeviceMemory(device, device.allocate(n), n, shape, d)
            if k not in plan.donated
            else held[plan.donated[k]]
            for k, (n, shape, d) in enumerate(shaped.outputs)
        ]
        run = CommandEncoder(shaped, shaped.sizes)
        try:
            if shaped.placed.arena:
                run.taken.append(device.allocate(shaped.placed.arena))
            used = [memory.gpu for memory in (*held, *made)] + run.taken
            if plan.checks:
                run.begin_checks(self._status[0])
            for j, memory in kept:
                run.duplicate(memory.gpu, held[j].gpu, memory.place.bytes)
            key = tuple(map(id, used))
            recorded = shaped.recorded.get(key)
            if recorded is not None:
                run.replay(recorded[0][0])
            else:
                self._places(run, [*held, *made])
                run.run(shaped.items)
            count = len(run.recorded)
            if plan.checks:
                self._check(run.end_checks(*self._status), arrays, shaped.sizes)
            if own:
                arrays.clear()
            if recorded is not None:
                run.replay(recorded[0][1])
            else:
                run.run(shaped.updates)
                if not shaped.has_regions:
                    commands = run.recorded[:count], run.recorded[count:]
                    shaped.remember(key, commands, used)
            run.submit()
        finally:
            run.give_back()
        return [pending(m.shape, m.dtype.dtype, m) for m in made]

    def _places(self, run: CommandEncoder, memories: Sequence[DeviceMemory]) -> None:
        """Say where all buffers are."""
        plan = self.plan
        run.places |= self.constants()
        buffers = (*plan.inputs, *plan.outputs)
        run.places |= {b: m.place for b, m in zip(buffers, memories, strict=True)}
        if run.taken:
            run.places |= run.program.places_in(run.taken[0])
        if plan.checks:
            run.places[self.status] = BufferSlice(self._status[0], 0, self._status[0].size)

    @cached_property
    def _status(self) -> tuple[Any, Any]:
        """What checks write to, and a copy that the host can read."""
        gpu, usage = self.device.gpu, self.device.wgpu.BufferUsage
        size = max(4 * len(self.plan.checks), LEAST_BYTES)
        own = gpu.create_buffer(size=size, usage=self.device.storage)
        return own, gpu.create_buffer(size=size, usage=usage.MAP_READ | usage.COPY_DST)

    def _check(self, status: Array, arrays: Sequence[Any], sizes: Mapping[str, int]) -> None:
        """Raise the error of a check that failed: the one that native code finds first."""
        failed = np.flatnonzero(status)
        if len(failed):
            Executable(self.graph, simplify=True)([host(a) for a in arrays])
            raise failure_of(self.plan.checks[failed[0]], 0, sizes)

    def constants(self) -> dict[Buffer, BufferSlice]:
        """The constants of the program, on the device."""
        if self._constants is None:
            found = {
                b: self.upload(np.asarray(b.node.attrs["value"]))
                for b in self.plan.memory.constants
            }
            self._kept = list(found.values())
            self._constants = {b: memory.place for b, memory in found.items()}
        return self._constants

    def upload(self, array: Any) -> DeviceMemory:
        """The copy of an array on the device; made, if there is none yet."""
        found = device_copy(array, self.device)
        if found is None:
            numbers = numbers_for(array, "wgpu")
            dtype = as_dtype(numbers.dtype)
            stored = np.ascontiguousarray(numbers, stored_dtype(dtype))
            gpu = self.device.allocate(stored.nbytes)
            self.device.write(gpu, stored)
            found = DeviceMemory(self.device, gpu, stored.nbytes, numbers.shape, dtype)
            remember(array, found)
        return found


def _is_own(arrays: Sequence[Any], j: int) -> bool:
    """Whether nothing but a call has an array, and its memory on the device: `arrays` and the array
    have one reference each, and so has what counts them."""
    array = arrays[j]
    if type(array) is not DeviceArray:
        return True  # its copy is made for the call
    memory = array.copy
    return sys.getrefcount(array) <= 3 and (memory is None or sys.getrefcount(memory) <= 3)
