"""Scatters, and the check of indices."""

from __future__ import annotations

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm import types
from retrograd.backends.llvm.elementwise import ELEMENTWISE, At
from retrograd.backends.llvm.kernels import KernelWriter, close_all


def scatter(w: KernelWriter, nest: Nest) -> None:
    """Add updates one after the other, in row-major order."""
    (store,) = nest.stores
    dtype = store.buffer.type.dtype
    w.begin(nest)
    loops = [w.loop(k, size) for k, size in enumerate(nest.loops)]
    pointer = w.address(store.buffer, w.names[store.offset])
    before = types.load(w, pointer, dtype)
    after = ELEMENTWISE["add"](At(w, dtype), before, w.names[store.value])
    types.store(w, types.rounded(w, after, dtype), pointer, dtype)
    close_all(w, loops)


def check(w: KernelWriter, nest: Nest) -> None:
    """Write positions counted from the front. At one out of range, leave the function with its
    value in the status block and 1 as the result: what comes later may read no memory that is not
    there."""
    (store,) = nest.stores
    w.begin(nest)
    loops = [w.loop(k, size) for k, size in enumerate(nest.loops)]
    value, dtype = w.names[store.value], store.value.dtype
    kind, signed = types.register_type(dtype), dtype.kind == "int"
    if kind != "i64":
        value = w.new(f"{'sext' if signed else 'zext'} {kind} {value} to i64")
    size = w.names[nest.info["size"]]
    at = value
    if signed:
        negative = w.new(f"icmp slt i64 {value}, 0")
        at = w.new(f"select i1 {negative}, i64 {w.new(f'add i64 {value}, {size}')}, i64 {value}")
    inside = w.new(f"icmp ult i64 {at}, {size}")
    yes, no = w.label(), w.label()
    w.branch(inside, yes, no)
    w.start_block(no)
    w.line(f"store i64 {value}, ptr %status, align 8")
    w.line("ret i64 1")
    w.start_block(yes)
    w.line(f"store i64 {at}, ptr {w.address(store.buffer, w.names[store.offset])}, align 8")
    close_all(w, loops)
