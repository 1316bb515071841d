"""A graph compiled to one native function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.backends.backend import Array, bind
from retrograd.backends.kernel import ALIGNMENT, GRAIN, Plan
from retrograd.backends.kernel.legalize import CheckIndex
from retrograd.backends.llvm.entry import expected
from retrograd.backends.llvm.module import Module
from retrograd.backends.threads import threads_here
from retrograd.errors import IndexRangeError
from retrograd.ir import Graph, evaluate

NDARRAY = id(np.ndarray)
KEPT_ARENA = 1 << 18  # bytes that may be kept for sizes not in use
LAYOUTS = 64  # combinations of symbolic sizes whose memory layout is kept at hand


class Frame:
    """The memory of one call at a time: the block of slots and the arena behind it."""

    __slots__ = ("address", "arena", "block", "threads")

    def __init__(self, count: int, arena: Array, threads: int) -> None:
        self.threads = threads
        self.arena = arena
        self.block = np.zeros(count, np.int64)
        self.address = self.block.ctypes.data

    @property
    def start(self) -> int:
        """The first aligned address of the arena."""
        return -(-self.arena.ctypes.data // ALIGNMENT) * ALIGNMENT


class Shaped:
    """What is fixed once the symbolic sizes are known: shapes, memory, frames ready for use."""

    def __init__(self, program: LLVMProgram, sizes: Mapping[str, int]) -> None:
        plan = program.plan
        self.program = program
        self.layout = plan.layout(sizes)
        self.peak = plan.peak_bytes(sizes, self.layout)
        self.shared = plan.threaded and (not sizes or plan.nanoseconds(sizes) >= GRAIN)
        self.outputs = [
            (tuple(evaluate(d, sizes) for d in b.type.shape), b.type.dtype.dtype)
            for b in plan.outputs
        ]
        self.results = expected([(dtype, shape) for shape, dtype in self.outputs])
        self.results_at = self.results.ctypes.data
        self.sizes = [evaluate(d, sizes) for d in program.slots.sizes]
        self.frames: list[Frame] = []  # a stack; append and pop are atomic

    def frame(self) -> Frame:
        """A frame nobody uses."""
        try:
            return self.frames.pop()
        except IndexError:
            return self._make()

    def rest(self) -> None:
        """Calls have gone on to other sizes: keep no large memory for these."""
        if self.layout.arena > KEPT_ARENA:
            self.frames.clear()

    def _make(self) -> Frame:
        program, slots = self.program, self.program.slots
        scratch = program.plan.scratch
        threads = program.threads() if self.shared else 1
        size = self.layout.arena + scratch.arena * threads
        arena = program.allocate((size + ALIGNMENT,), np.dtype(np.uint8))
        frame = Frame(slots.count, arena, threads)
        start = frame.start
        end = start + self.layout.arena
        for k, array in enumerate(program.constants):
            frame.block[slots.of(program.plan.constants[k])] = array.ctypes.data
        for buffer in program.plan.temporaries:
            own = scratch.offsets.get(buffer)
            at = start + self.layout.offsets[buffer] if own is None else end + own
            frame.block[slots.of(buffer)] = at
        frame.block[slots.first_size : slots.status] = self.sizes
        if program.times is not None:
            frame.block[slots.status + 1] = program.times.ctypes.data
        return frame


class LLVMProgram:
    """Runs a graph as native code. May be called from several threads at once."""

    def __init__(self, graph: Graph, timed: bool = False) -> None:
        # The one import inside a function: llvmlite is loaded when first needed, see engine.py.
        from retrograd.backends.llvm.engine import engine

        self.graph = graph
        self.plan = Plan(graph)
        compiler = engine()
        module = Module(self.plan, compiler.machine, timed)
        self.slots = module.slots
        self.constants = [constant_array(b.node.attrs["value"]) for b in self.plan.constants]
        self.functions = len(module.functions)  # kernels that differ
        self._code = compiler.compile(module.text(), module.symbols)
        self.times = np.zeros(len(self.plan.kernels), np.int64) if timed else None
        self._team = compiler.team if self.plan.threaded else None
        self._shaped: dict[tuple[int, ...], Shaped] = {}
        self._last: Shaped | None = None  # the sizes of the latest call
        self._count = len(graph.inputs)
        static = not graph.dim_names
        # Arrays of no elements need care, and those of symbolic sizes a look at every axis.
        fast = static and all(x.type.size != 0 for x in graph.inputs)
        self._take = compiler.bind if fast else None
        if static:
            self._only = self._last = self._shaped[()] = Shaped(self, {})
            types = [(x.dtype.dtype, x.type.shape) for x in graph.inputs]
            self._expected = expected(types)  # type: ignore[arg-type]
            self._expected_at = self._expected.ctypes.data

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        take, listed = self._take, arrays if type(arrays) is list else list(arrays)
        if take is not None and len(listed) == self._count:
            shaped = self._only
            frame = shaped.frame()
            if take(listed, self._expected_at, frame.address, self._count, NDARRAY) == 0:
                return self._run(shaped, frame, listed)
            shaped.frames.append(frame)
        shaped = self._shaped_for(listed)
        frame, keep = shaped.frame(), []
        for slot, a in enumerate(listed):
            flags = a.flags
            if not (flags.c_contiguous and flags.aligned and type(a) is np.ndarray and a.size):
                a = readable(a)
                keep.append(a)
            frame.block[slot] = a.ctypes.data
        return self._run(shaped, frame, listed)

    def _run(self, shaped: Shaped, frame: Frame, arrays: list[Array]) -> list[Array]:
        """Run on a frame that holds the addresses of the inputs."""
        allocate = self.allocate
        results = [allocate(shape, dtype) for shape, dtype in shaped.outputs]
        address = frame.address + 8 * self._count
        take = self._take
        if take is None or take(results, shaped.results_at, address, len(results), NDARRAY):
            for slot, y in enumerate(results, self._count):
                frame.block[slot] = y.ctypes.data
        failed = self._enter(frame)
        value = int(frame.block[self.slots.status]) if failed else 0
        shaped.frames.append(frame)
        if failed:
            raise self._index_error(failed - 1, value, arrays)
        return results

    def _enter(self, frame: Frame) -> int:
        if frame.threads == 1:
            return self._code.run(frame.address, 0, 1, 0)
        assert self._team is not None
        return self._team.run(self._code.address, frame.address, frame.threads)

    def threads(self) -> int:
        """How many threads a program that shares work may use."""
        return threads_here()

    @staticmethod
    def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for an output, or for the arena."""
        return np.empty(shape, dtype)

    def _shaped_for(self, arrays: Sequence[Array]) -> Shaped:
        """Check the arrays against the inputs' types; what calls of such sizes share."""
        sizes = bind(self.graph.inputs, arrays)
        key = tuple(sizes.values())  # bind lists the sizes in the order of the inputs
        found = self._shaped.get(key)
        if self._last is not found and self._last is not None:
            self._last.rest()
        if found is None:
            found = Shaped(self, sizes)
            if len(self._shaped) >= LAYOUTS:
                self._shaped.clear()
            self._shaped[key] = found
        self._last = found
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
        of the latest call; see `peak_bytes`."""
        return self._last.peak if self._last is not None else 0

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
