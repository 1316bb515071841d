"""A device whose kernels are run by the interpreter: what is shipped, without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Graph
from retrograd.nvptx.device import CudaDevice
from retrograd.nvptx.executable import DeviceProgram
from retrograd.runtime.backend import Array, Program
from retrograd.runtime.paired_program import on_real
from tests.nvptx import ptx_interpreter


class InterpretedDevice(CudaDevice):
    """Memory is an array, commands are run at once."""

    name = "an interpreter"

    def __init__(self, capability: int = 80, memory: int = 1 << 34) -> None:
        super().__init__()
        self.capability = capability
        self.memory = ptx_interpreter.Memory()
        self.size, self.used = memory, 0
        self.launches = 0
        self.noted: list[Callable[[], None]] | None = None
        self.graphs = 0

    def enter(self) -> None:
        """There is nothing to do."""

    def new_memory(self, size: int) -> int | None:
        assert self.noted is None, "memory is asked for while commands are noted down"
        if self.used + size > self.size:
            return None
        self.used += size
        return self.memory.allocate(size)

    def delete_memory(self, address: int) -> None:
        self.used -= self.memory.lengths[address]
        self.memory.free(address)

    def free_bytes(self) -> int:
        return self.size - self.used

    def upload(self, address: int, array: Array) -> None:
        assert self.noted is None, "numbers of the host may be others when a graph is run"
        assert array.flags.c_contiguous
        self.memory.write(address, array.tobytes())

    def download(self, address: int, array: Array) -> None:
        assert self.noted is None, "a graph cannot wait"
        raw = self.memory.read(address, array.nbytes)
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(raw, np.uint8)

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def _do(self, command: Callable[[], None]) -> None:
        if self.noted is not None:
            self.noted.append(command)
        else:
            command()

    def copy(self, to: int, source: int, size: int) -> None:
        self._do(lambda: self.memory.write(to, self.memory.read(source, size)))

    def load(self, ptx: str) -> dict[str, Any]:
        module = ptx_interpreter.Module(ptx)
        tables = {}
        for name, data in module.tables.items():
            tables[name] = self.memory.allocate(len(data))
            self.memory.write(tables[name], data)
        return {name: (module, tables, name) for name in module.functions}

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        module, tables, name = kernel
        assert 0 < blocks < 1 << 31
        self.launches += 1
        given = list(arguments)
        self._do(
            lambda: ptx_interpreter.run(module, self.memory, tables, name, given, blocks, threads)
        )

    def begin_graph(self) -> None:
        self.noted, self.noting = [], True

    def end_graph(self) -> Any:
        noted, self.noted, self.noting = self.noted, None, False
        return noted

    def run_graph(self, graph: Any) -> None:
        self.graphs += 1
        for command in graph:
            command()

    def drop_graph(self, graph: Any) -> None:
        """There is nothing to do."""


def interpreted(graph: Graph, device: InterpretedDevice | None = None) -> Program:
    """A graph as a program of such a device."""
    own = device or InterpretedDevice()
    return on_real(graph, lambda real: DeviceProgram(real, own))
