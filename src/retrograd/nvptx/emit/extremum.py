"""Where a row has its extremum: a warp goes through it together, and agrees on the first place."""

from __future__ import annotations

from retrograd.codegen import types
from retrograd.codegen.emit.loops import Carried, emit_loop, emit_loops
from retrograd.codegen.emit.reduce import better
from retrograd.ir import int64
from retrograd.nvptx.emit.launch import Launches
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter
from retrograd.schedule.loop_nest import ArgReduction

WARP = 32
NOWHERE = str(2**63 - 1)  # the place of a lane that has no element


def along_rows(module: DeviceModule, nest: ArgReduction) -> list[Launches]:
    """The position of the first extremum of each row; the first NaN counts as one."""
    w = module.emitter()
    (store,), last = nest.stores, len(nest.loops) - 1
    domain, dtype = nest.loops[: nest.kept], nest.stores[0].value.dtype
    w.fixed = dict(enumerate(w.spread(domain, WARP)))
    w.begin(nest)
    w.team_loop, kinds = last, [types.register_type(d) for d in (dtype, int64)]

    def step(carried: Carried) -> Carried:
        here = w.counters[last][0]
        return _chosen(w, nest, (w.scalar(store.value), here), (carried[0], carried[1]))

    def result(_: Carried) -> Carried:
        start = [types.literal(0, dtype), NOWHERE]
        found = emit_loop(w, last, step, kinds, start)
        distance = WARP
        while distance > 1:
            distance //= 2
            value, place = found
            other = w.across(kinds[0], value, distance), w.across("i64", place, distance)
            found = _chosen(w, nest, other, (value, place))
        w.write(found[1], store)
        return []

    emit_loops(w, 0, nest.kept, result)
    return [module.over(w, domain, WARP)]


def _chosen(
    w: ThreadEmitter, nest: ArgReduction, new: tuple[str, str], old: tuple[str, str]
) -> list[str]:
    """Of two candidates, each a value and its place, the better one; of equal ones the first."""
    dtype = nest.stores[0].value.dtype
    wins = better(w, nest, dtype, new[0], old[0])
    loses = better(w, nest, dtype, old[0], new[0])
    earlier = w.new(f"icmp slt i64 {new[1]}, {old[1]}")
    even = w.new(f"and i1 {earlier}, {w.new(f'xor i1 {loses}, true')}")
    wins = w.new(f"or i1 {wins}, {even}")
    absent, empty = (w.new(f"icmp eq i64 {place}, {NOWHERE}") for _, place in (new, old))
    wins = w.new(f"or i1 {empty}, {wins}")
    wins = w.new(f"and i1 {wins}, {w.new(f'xor i1 {absent}, true')}")
    return [
        w.new(f"select i1 {wins}, {kind} {x}, {kind} {y}")
        for kind, x, y in zip((types.register_type(dtype), "i64"), new, old, strict=True)
    ]
