"""A graph of very many small operations, run by native code one operation after the other.

What is computed from a handful of numbers does not gain by fusion what it takes to compile a
hundred thousand operations into one function: minutes. Here each *kind* of operation is compiled
once, and a program is a table of calls, made in microseconds an operation and run in some ten
nanoseconds each. The bits are those of any other program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.ir import Graph, Node, TensorType
from retrograd.memory_limit import check_memory
from retrograd.ops.leaf import Constant
from retrograd.passes.after_autodiff import settled, written
from retrograd.runtime import executors
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.device_array import host
from retrograd.runtime.executors.op_by_op import OpCall
from retrograd.runtime.executors.op_kinds import Kind, Step, kind_of
from retrograd.schedule.buffer import ALIGNMENT
from retrograd.tuning import TUNING

HEAD = [-1, -1, 0, 0, 0]  # of a table: not stopped, no times, no scratch, nothing to fail
CALLS, END = 1, 0
WORD = 8


@dataclass(frozen=True)
class Alone:
    """A node that no single function computes: Python does, between two tables."""

    call: OpCall
    inputs: list[int]  # slots
    out: int


class BytecodeExecutor:
    """Runs a graph of very many small operations (`is_long`) one by one. May be called from several
    threads at once; each call works on one thread."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        body = written(settled(graph))
        first = {kind_of(n): n for n in reversed(body.body) if not isinstance(n.prim, Constant)}
        self._steps = executors.Steps(reversed(first.items()))
        places = _Places(body)
        self._parts = list(_parts(body, places, self._steps.of))
        self._places = places
        self._ends = [places.slot[y] for y in body.outputs]
        self._frames: list[_Frame] = []  # a stack; append and pop are atomic
        self.predicted_peak = places.bytes + sum(
            [int(y.type.size) * y.dtype.itemsize for y in graph.outputs]
        )
        check_memory(self.predicted_peak, lambda: [(places.bytes, "intermediate results")], {})

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        bind(self.graph.inputs, arrays)
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._places)
        held = frame.given(list(map(host, arrays)))
        code = self._steps.code
        with np.errstate(all="ignore"):
            for part in self._parts:
                if isinstance(part, Alone):
                    given = [frame.view(k, held) for k in part.inputs]
                    frame.view(part.out, held)[...] = part.call(given)
                elif code is not None:
                    code.run(frame.address, 0, 1, part.ctypes.data)
        results = [np.array(frame.view(k, held), order="C") for k in self._ends]
        self._frames.append(frame)
        return results


class _Places:
    """Where values are: a slot for each place in memory, which values share one after the other.
    Inputs come first, then constants, which stay."""

    def __init__(self, graph: Graph) -> None:
        self.count = len(graph.inputs)
        self.slot: dict[Node, int] = {x: k for k, x in enumerate(graph.inputs)}
        self.types: list[TensorType] = [x.type for x in graph.inputs]
        self.offsets: list[int] = [0] * self.count
        self.constants: list[tuple[int, Any]] = []
        self.bytes = 0
        self._free: dict[TensorType, list[int]] = {}
        last = {x: n for n in graph.body for x in n.inputs}
        self.ends: dict[Node, list[Node]] = {}
        kept = {*graph.inputs, *graph.outputs}
        for node in graph.body:
            if isinstance(node.prim, Constant):
                kept.add(node)
                self.constants.append((self.take(node), node.attrs["value"]))
        for x, node in last.items():
            if x not in kept:
                self.ends.setdefault(node, []).append(x)

    def take(self, node: Node) -> int:
        """A slot for the value of a node."""
        free = self._free.get(node.type)
        if free:
            found = free.pop()
        else:
            found = len(self.offsets)
            size = int(node.type.size) * node.dtype.itemsize
            unit = WORD if size <= WORD else ALIGNMENT
            start = -(-self.bytes // unit) * unit
            self.types.append(node.type)
            self.offsets.append(start)
            self.bytes = start + -(-max(size, 1) // unit) * unit
        self.slot[node] = found
        return found

    def release(self, node: Node) -> None:
        """What is not needed after a node is free to be overwritten."""
        for x in self.ends.get(node, ()):
            self._free.setdefault(x.type, []).append(self.slot[x])


class _Frame:
    """The memory of one call at a time: values, and the block that says where they are."""

    def __init__(self, places: _Places) -> None:
        self.places = places
        self._arena = np.empty(places.bytes + ALIGNMENT, np.uint8)
        self._skip = -self._arena.ctypes.data % ALIGNMENT
        self._start = self._arena.ctypes.data + self._skip
        self.block = np.array(places.offsets, np.int64) + self._start
        self.address = self.block.ctypes.data
        for slot, value in places.constants:
            self.view(slot, [])[...] = value

    def given(self, arrays: Sequence[Array]) -> list[Array]:
        """Take up the arguments; the arrays that are read, to be held while that goes on."""
        held = []
        for k, a in enumerate(arrays):
            if not (a.flags.c_contiguous and a.flags.aligned):
                a = np.array(a, order="C")
            held.append(a)
            # Of no elements the first may be read all the same, and not be used.
            self.block[k] = a.ctypes.data if a.size else self._start
        return held

    def view(self, slot: int, held: Sequence[Array]) -> Array:
        """The value in a slot."""
        if slot < self.places.count:
            return held[slot].reshape(self.places.types[slot].shape)
        kind, start = self.places.types[slot], self.places.offsets[slot] + self._skip
        size = int(kind.size) * kind.dtype.itemsize
        memory = self._arena[start : start + size]
        return memory.view(kind.dtype.dtype).reshape(kind.shape)


def _parts(graph: Graph, places: _Places, known: dict[Kind, Step]) -> Iterator[Array | Alone]:
    """Tables of calls, and between them what Python does, in order."""
    slot, words, calls = places.slot, list[int](), 0
    for node in graph.body:
        if isinstance(node.prim, Constant):
            continue
        step = known.get(kind_of(node))
        out = places.take(node)
        inputs = [slot[x] for x in node.inputs]
        if step is None or calls == TUNING.bytecode_calls:
            if words:
                yield _table(words)
            words, calls = [], 0
        if step is None:
            yield Alone(OpCall(node), inputs, out)
        else:
            function, operands = step
            words += (function, 0, 0, len(operands))
            words += [out if k < 0 else inputs[k] for k in operands]
            calls += 1
        places.release(node)
    if words:
        yield _table(words)


def _table(words: list[int]) -> Array:
    return np.array([*HEAD, CALLS, len(words) + 2, *words, END, 2], np.int64)
