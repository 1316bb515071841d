"""Scatters, and the check of indices."""

from __future__ import annotations

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm import types
from retrograd.backends.llvm.at import At
from retrograd.backends.llvm.elementwise import ELEMENTWISE
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.loops import Carried, walk
from retrograd.ir import int64

# How an update meets what is there, by the name of the scatter.
_MEETS = {"scatter_add": "add", "scatter_mul": "mul", "scatter_max": "max", "scatter_min": "min"}


def scatter(w: KernelWriter, nest: Nest) -> None:
    """Let updates meet what is there, one after the other, in row-major order. Where threads share
    the places, each takes the updates of its own."""
    (store,) = nest.stores
    dtype = store.buffer.type.dtype
    w.begin(nest)
    low, high = w.places

    def meet(_: Carried) -> Carried:
        value = w.vector(store.value)
        if nest.op in _MEETS:
            pointer = w.address(store.buffer, w.scalar(store.offset))
            before = types.load(w, pointer, dtype, w.lanes, w.mask)
            value = ELEMENTWISE[_MEETS[nest.op]](At(w, dtype, w.lanes), before, value)
            value = types.rounded(w, value, dtype, w.lanes)
        w.write(value, store)
        return []

    def own(_: Carried) -> Carried:
        at = w.scalar(nest.info["at"])
        go, skip = w.label(), w.label()
        above, below = w.new(f"icmp sge i64 {at}, {low}"), w.new(f"icmp slt i64 {at}, {high}")
        w.branch(w.new(f"and i1 {above}, {below}"), go, skip)
        w.start_block(go)
        walk(w, nest.info["at"].depth, len(nest.loops), meet)
        w.jump(skip)
        w.start_block(skip)
        return []

    if high:
        walk(w, 0, nest.info["at"].depth, own)
    else:
        walk(w, 0, len(nest.loops), meet)


def check(w: KernelWriter, nest: Nest) -> None:
    """Write positions counted from the front. At one out of range, leave the function with its
    value in the status block and 1 as the result: what comes later may read no memory that is not
    there."""
    (store,) = nest.stores
    w.begin(nest)
    dtype = store.value.dtype

    def inside(_: Carried) -> Carried:
        at = At(w, int64, w.lanes)
        value = types.convert(w, w.vector(store.value), dtype, int64, w.lanes)
        size = types.broadcast(w, w.scalar(nest.info["size"]), int64, w.lanes)
        place, zero = value, types.splat("i64", "0", w.lanes)
        if dtype.kind == "int":
            negative = w.new(f"icmp slt {at.type} {value}, {zero}")
            place = at.choose(negative, at.do("add", value, size), value)
        outside = w.new(f"icmp uge {at.type} {place}, {size}")
        if w.mask is not None:
            outside = at.logic("and", outside, w.mask)
        flags = f"i{w.lanes}"
        if w.lanes > 1:
            outside = w.new(f"bitcast {at.bool} {outside} to {flags}")
        no, yes = w.label(), w.label()
        w.branch(w.new(f"icmp ne {flags} {outside}, 0"), no, yes)
        w.start_block(no)
        if w.lanes > 1:
            w.declare(f"{flags} @llvm.cttz.{flags}({flags}, i1)")
            lane = w.new(f"call {flags} @llvm.cttz.{flags}({flags} {outside}, i1 true)")
            value = w.new(f"extractelement {at.type} {value}, {flags} {lane}")
        w.line(f"store i64 {value}, ptr %status, align 8")
        w.line("ret i64 1")
        w.start_block(yes)
        w.write(types.convert(w, place, int64, store.buffer.type.dtype, w.lanes), store)
        return []

    walk(w, 0, len(nest.loops), inside)
