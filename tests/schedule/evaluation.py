"""Loop nests gone through by hand: scalars of a body evaluated, one iteration after the other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.runtime.backend import Array
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import LoopNest
from retrograd.schedule.ssa import SSAValue

INDEX: dict[str, Any] = {
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "imul": lambda a, b: a * b,
    "idiv": lambda a, b: a // b,
    "imod": lambda a, b: a % b,
    "ilt": lambda a, b: a < b,
    "ige": lambda a, b: a >= b,
    "isel": lambda c, a, b: a if c else b,
}
REDUCED = {"reduce_sum": np.add, "reduce_max": np.maximum, "reduce_prod": np.multiply}
Memory = Mapping[Buffer, Array]


def number(size: int | Dim, sizes: Mapping[str, int]) -> int:
    return size.evaluate(sizes) if isinstance(size, Dim) else size


def evaluate(
    v: SSAValue, counters: Sequence[int], memory: Memory, sizes: Mapping[str, int] | None = None
) -> Any:
    """A scalar, where the loops' counters are these. A load beyond its buffer is an error."""
    sizes = sizes or {}
    if v.op == "size":
        return number(v.attr, sizes)
    if v.op == "loop":
        return counters[v.attr]
    if v.op == "const":
        return v.attr
    args = [evaluate(a, counters, memory, sizes) for a in v.args]
    if v.op == "load":
        array = memory[v.attr].reshape(-1)
        assert args[0] == 0 or 0 <= args[0] < array.size, "read beyond the buffer"
        return array[args[0]] if array.size else array.dtype.type(0)
    if v.op == "cast":
        return np.asarray(args[0]).astype(v.dtype.dtype)[()]
    if v.op in INDEX:
        return INDEX[v.op](*args)
    return ELEMENTWISE[v.op].reference(*map(np.asarray, args))


def run(nest: LoopNest, memory: Memory, sizes: Mapping[str, int] | None = None) -> None:
    """Do what a nest of kind "map", "row" or "column" says, element by element."""
    loops = [range(number(n, sizes or {})) for n in nest.loops]
    if nest.kind == "map":
        for at in itertools.product(*loops):
            for s in nest.stores:
                place = evaluate(s.offset, at, memory, sizes)
                memory[s.buffer].reshape(-1)[place] = evaluate(s.value, at, memory, sizes)
        return
    assert nest.kind in ("row", "column"), nest.kind
    (s,) = nest.stores
    for kept in itertools.product(*loops[: nest.kept]):
        inner = itertools.product(*loops[nest.kept :])
        terms = [evaluate(s.value, (*kept, *at), memory, sizes) for at in inner]
        place = evaluate(s.offset, (*kept, *[0] * (len(loops) - nest.kept)), memory, sizes)
        memory[s.buffer].reshape(-1)[place] = REDUCED[nest.op].reduce(terms)
