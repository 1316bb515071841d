"""Maps: an invocation for each point of the domain."""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.ir import Dim
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import LoopNest, MapNest, Store
from retrograd.schedule.ssa import SSAOp
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emits_nest
from retrograd.wgpu.scalar import Body
from retrograd.wgpu.shader_writer import ShaderWriter


def number_of_points(loops: Sequence[int | Dim], context: EmitContext) -> int:
    """How many iterations loops have in all."""
    total = 1
    for size in loops:
        total *= context.value(size)
    return total


def counters_of(w: ShaderWriter, body: Body, loops: Sequence[int | Dim], position: str) -> None:
    """Have the counters of these loops, the outermost of a nest, be those of a point in row-major
    order."""
    rest = position
    for k in range(len(loops) - 1, 0, -1):
        size = w.size(loops[k])
        body.counter(k, w.new(f"{rest} % {size}"))
        rest = w.new(f"{rest} / {size}")
    if loops:
        body.counter(0, rest)


def buffers_of(nest: LoopNest, store: Store) -> set[Buffer]:
    """What a store of a nest writes to and reads."""
    found, todo = {store.buffer}, [store.offset, store.value]
    seen = set(todo)
    while todo:
        v = todo.pop()
        if v.op is SSAOp.LOAD:
            found.add(v.attr)
        fresh = [a for a in v.args if a not in seen]
        seen.update(fresh)
        todo += fresh
    return found


def split(nest: MapNest, most: int) -> list[MapNest]:
    """Nests of some of the stores each, which together do the same, and of which none needs more
    than `most` buffers if that can be. What a store reads must not have been written by another
    before: such stores stay together."""
    touched = {id(s): buffers_of(nest, s) for s in nest.stores}
    if len(set().union(*touched.values())) <= most:
        return [nest]
    groups: list[list[Store]] = []
    for store in nest.stores:
        tied = [
            g for g in groups
            if any(
                (s.buffer in touched[id(store)]) or (store.buffer in touched[id(s)]) for s in g
            )
        ]  # fmt: skip
        groups = [g for g in groups if g not in tied]
        groups.append([s for g in tied for s in g] + [store])
    parts: list[list[Store]] = []
    for group in groups:
        own = set().union(*(touched[id(s)] for s in group))
        there = set().union(*(touched[id(s)] for s in parts[-1])) if parts else set()
        if parts and len(own | there) <= most:
            parts[-1] += group
        else:
            parts.append(list(group))
    return [
        MapNest(nest.loops, nest.body, stores, kept=nest.kept, vec=nest.vec) for stores in parts
    ]


@emits_nest(MapNest)
def map_(nest: MapNest, context: EmitContext) -> list[Dispatch]:
    """The stores of a nest at each point."""
    most = context.facts.storage_buffers
    parts = [nest] if context.merged is not None else split(nest, most)
    return [d for part in parts for d in _map(part, context)]


def _map(nest: MapNest, context: EmitContext) -> list[Dispatch]:
    points = number_of_points(nest.loops, context)
    if points == 0:
        return []
    w = ShaderWriter(context)
    total = "1i"
    if nest.loops:
        total = " * ".join(w.size(d) for d in nest.loops)
    w.line(f"if (at >= {total}) {{ return; }}")
    body = Body(w, nest)
    counters_of(w, body, nest.loops, "at")
    body.place(len(nest.loops), 0)
    for store in nest.stores:
        body.store(store)
    return [w.dispatch(-(-points // w.workgroup), "map")]


def copying(source: Buffer, target: Buffer, context: EmitContext) -> Dispatch:
    """A dispatch that copies a buffer to another of its type."""
    w = ShaderWriter(context)
    count = source.type.size
    w.line(f"if (at >= {w.size(count)}) {{ return; }}")
    w.line(f"{w.place(target, 'at')} = {w.place(source, 'at')};")
    return w.dispatch(-(-context.value(count) // w.workgroup), "copy")
