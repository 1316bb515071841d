"""Scatters, and the check of indices."""

from __future__ import annotations

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm import types
from retrograd.backends.llvm.at import At
from retrograd.backends.llvm.elementwise import ELEMENTWISE
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.loops import Carried, walk


def scatter(w: KernelWriter, nest: Nest) -> None:
    """Add updates one after the other, in row-major order."""
    (store,) = nest.stores
    dtype = store.buffer.type.dtype
    w.begin(nest)

    def inside(_: Carried) -> Carried:
        pointer = w.address(store.buffer, w.scalar(store.offset))
        before = types.load(w, pointer, dtype, w.lanes, w.mask)
        after = ELEMENTWISE["add"](At(w, dtype, w.lanes), before, w.vector(store.value))
        w.write(types.rounded(w, after, dtype, w.lanes), store)
        return []

    walk(w, 0, len(nest.loops), inside)


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
