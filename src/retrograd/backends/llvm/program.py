"""A graph compiled to one native function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.backends.backend import Array, bind
from retrograd.backends.kernel import ALIGNMENT, Plan, make_plan
from retrograd.backends.kernel.legalize import CheckIndex
from retrograd.backends.llvm.module import Module
from retrograd.errors import IndexRangeError
from retrograd.ir import Graph, evaluate

LAYOUTS = 64  # combinations of symbolic sizes whose memory layout is kept at hand


class Frame:
    """The memory of one call at a time: the block of slots and the arena behind it."""

    __slots__ = ("address", "arena", "block")

    def __init__(self, count: int, arena_bytes: int) -> None:
        self.arena = np.empty(arena_bytes + 2 * ALIGNMENT, np.uint8)
        self.block = np.zeros(count, np.int64)
        self.address = self.block.ctypes.data

    @property
    def start(self) -> int:
        """The first aligned address of the arena; 64 readable bytes lie behind its end."""
        return -(-self.arena.ctypes.data // ALIGNMENT) * ALIGNMENT


class Shaped:
    """What is fixed once the symbolic sizes are known: shapes, memory, frames ready for use."""

    def __init__(self, program: LLVMProgram, sizes: Mapping[str, int]) -> None:
        plan = program.plan
        self.program = program
        self.layout = plan.layout(sizes)
        self.peak = plan.peak_bytes(sizes, self.layout)
        self.outputs = [
            (tuple(evaluate(d, sizes) for d in b.type.shape), b.type.dtype.dtype)
            for b in plan.outputs
        ]
        self.sizes = [evaluate(d, sizes) for d in program.slots.sizes]
        self.frames: list[Frame] = []  # a stack; append and pop are atomic

    def frame(self) -> Frame:
        """A frame nobody uses."""
        try:
            return self.frames.pop()
        except IndexError:
            return self._make()

    def _make(self) -> Frame:
        program, slots = self.program, self.program.slots
        frame = Frame(slots.count, self.layout.arena)
        start = frame.start
        for k, array in enumerate(program.constants):
            frame.block[slots.of(program.plan.constants[k])] = array.ctypes.data
        for buffer in program.plan.temporaries:
            frame.block[slots.of(buffer)] = start + self.layout.offsets[buffer.number]
        frame.block[slots.first_size : slots.status] = self.sizes
        return frame


class LLVMProgram:
    """Runs a graph as native code. May be called from several threads at once."""

    def __init__(self, graph: Graph) -> None:
        # The one import inside a function: llvmlite is loaded when first needed, see engine.py.
        from retrograd.backends.llvm.engine import engine

        self.graph = graph
        self.plan: Plan = make_plan(graph)
        module = Module(self.plan)
        self.slots = module.slots
        self.constants = [constant_array(b.node.attrs["value"]) for b in self.plan.constants]
        external = [d[d.index("@") + 1 : d.index("(")] for d in module.declarations]
        symbols = [n for n in external if n.startswith("rg_") and not n.startswith("rg_power")]
        self._code = engine().compile(module.text(), symbols)
        self._shaped: dict[tuple[int, ...], Shaped] = {}
        self._static = not graph.dim_names
        self._expected = [
            (x.dtype.dtype, x.shape if x.type.is_static else None) for x in graph.inputs
        ]
        if self._static:
            self._shaped[()] = Shaped(self, {})

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        shaped = self._match(arrays)
        frame = shaped.frame()
        block, keep, slot = frame.block, [], 0
        for a in arrays:
            flags = a.flags
            if not (flags.c_contiguous and flags.aligned) or a.size == 0:
                a = readable(a)
                keep.append(a)
            block[slot] = a.ctypes.data
            slot += 1
        results = []
        for shape, dtype in shaped.outputs:
            y = np.empty(shape, dtype)
            block[slot] = y.ctypes.data
            slot += 1
            results.append(y)
        failed = self._code.run(frame.address)
        if failed:
            value = int(block[self.slots.status])
            shaped.frames.append(frame)
            raise self._index_error(failed - 1, value, arrays)
        shaped.frames.append(frame)
        return results

    def _match(self, arrays: Sequence[Array]) -> Shaped:
        """Check the arrays against the inputs' types; the shared part of calls of such sizes."""
        if self._static and len(arrays) == len(self._expected):
            for a, (dtype, shape) in zip(arrays, self._expected, strict=True):
                if a.dtype != dtype or a.shape != shape:
                    break
            else:
                return self._shaped[()]
        sizes = bind(self.graph.inputs, arrays)
        key = tuple(sizes.values())  # bind lists the sizes in the order of the inputs
        found = self._shaped.get(key)
        if found is None:
            found = Shaped(self, sizes)
            if len(self._shaped) >= LAYOUTS:
                self._shaped.clear()
            self._shaped[key] = found
        return found

    def _index_error(self, check: int, value: int, arrays: Sequence[Array]) -> IndexRangeError:
        prim = self.plan.checks[check].prim
        assert isinstance(prim, CheckIndex)
        size = evaluate(prim.size, bind(self.graph.inputs, arrays))
        index = self.plan.checks[check].inputs[0]
        if index.dtype.kind == "uint" and value < 0:
            value += 2**64
        axis = prim.target.attrs["axis"]
        return IndexRangeError(
            f"{prim.target.op} with the index {value} on axis {axis} of size {size}: "
            f"{prim.target.describe()}"
        )

    # -- about the program --------------------------------------------------------------------
    @property
    def predicted_peak(self) -> int:
        """Bytes that one call allocates: arena and outputs. Of a graph with symbolic sizes, those
        of the last sizes seen; see `peak_bytes`."""
        return next(reversed(self._shaped.values())).peak if self._shaped else 0

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        """Bytes that one call with these sizes allocates: arena and outputs."""
        return self.plan.peak_bytes(sizes)

    def explain(self, sizes: Mapping[str, int] | None = None) -> str:
        """The kernels and what they cost, as text."""
        return self.plan.explain(sizes)


def constant_array(value: Any) -> Array:
    """A constant in memory of its own."""
    return readable(np.array(value, order="C"))


def readable(a: Array) -> Array:
    """A contiguous, aligned array; one of no elements gets memory of which the first can be read.

    Compiled code reads element 0 instead of one that does not exist, where it is not used.
    """
    if a.size == 0:
        return np.zeros(ALIGNMENT, np.uint8)
    return np.array(a, order="C", copy=True)
