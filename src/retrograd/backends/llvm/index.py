"""Scatters, and the check of indices."""

from __future__ import annotations

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm import types
from retrograd.backends.llvm.at import At
from retrograd.backends.llvm.elementwise import ELEMENTWISE
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.loops import Carried, walk

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

    def inside(_: Carried) -> Carried:
        value, dtype = w.scalar(store.value), store.value.dtype
        kind, signed = types.register_type(dtype), dtype.kind == "int"
        if kind != "i64":
            value = w.new(f"{'sext' if signed else 'zext'} {kind} {value} to i64")
        size = w.scalar(nest.info["size"])
        at = value
        if signed:
            negative = w.new(f"icmp slt i64 {value}, 0")
            moved = w.new(f"add i64 {value}, {size}")
            at = w.new(f"select i1 {negative}, i64 {moved}, i64 {value}")
        inside = w.new(f"icmp ult i64 {at}, {size}")
        yes, no = w.label(), w.label()
        w.branch(inside, yes, no)
        w.start_block(no)
        w.line(f"store i64 {value}, ptr %status, align 8")
        w.line("ret i64 1")
        w.start_block(yes)
        pointer = w.address(store.buffer, w.scalar(store.offset))
        w.line(f"store i64 {at}, ptr {pointer}, align 8")
        return []

    walk(w, 0, len(nest.loops), inside)
