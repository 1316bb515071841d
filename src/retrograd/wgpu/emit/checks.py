"""Checks of indices. A GPU cannot stop in the middle: an index out of range is noted, and counts as
0 until the call is over, which then fails."""

from __future__ import annotations

from retrograd.schedule.loop_nest import CheckNest
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emits_nest
from retrograd.wgpu.emit.maps import counters_of, number_of_points
from retrograd.wgpu.scalar import POSITIONS, Body, widened
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import literal, register_type


@emits_nest(CheckNest)
def check(nest: CheckNest, context: EmitContext) -> list[Dispatch]:
    """Write positions counted from the front; note that one is out of range."""
    points = number_of_points(nest.loops, context)
    if points == 0:
        return []
    w = ShaderWriter(context)
    w.line(f"if (at >= {' * '.join(w.size(d) for d in nest.loops) or '1i'}) {{ return; }}")
    body = Body(w, nest)
    counters_of(w, body, nest.loops, "at")
    body.place(len(nest.loops), 0)
    (store,) = nest.stores
    assert context.status is not None
    dtype = store.value.dtype
    w.need(dtype)
    kind = register_type(dtype)
    size = body.position(nest.size)
    value = body[store.value]
    if nest.size.op in POSITIONS:
        size = widened(w, size, kind) if kind != "i32" else size
    place = w.variable(kind, value)
    zero = literal(0, dtype)
    if dtype.kind == "int":
        with w.block(f"if ({place} < {zero})"):
            w.line(f"{place} = {place} + {size};")
    outside = f"{place} >= {size}"
    if dtype.kind == "int":
        outside = f"{place} < {zero} || {outside}"
    with w.block(f"if ({outside})"):
        w.line(f"{w.place(context.status, f'{context.check - 1}i')} = 1u;")
        w.line(f"{place} = {zero};")
    into = register_type(store.buffer.type.dtype)
    w.store(
        store.buffer, body.position(store.offset), place if into == kind else f"{into}({place})"
    )
    return [w.dispatch(-(-points // w.workgroup), "check")]
