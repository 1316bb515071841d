"""Contractions by BLAS."""

from __future__ import annotations

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm import types
from retrograd.backends.llvm.kernels import KernelWriter, close_all
from retrograd.ir import float32

ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112


def gemm(w: KernelWriter, nest: Nest) -> None:
    """One call for each matrix of a stack."""
    info = nest.info
    left, right, out = info["buffers"]
    dtype = out.type.dtype
    kind = types.register_type(dtype)
    symbol = "rg_sgemm" if dtype is float32 else "rg_dgemm"
    integer, scalar = "i32", kind
    w.declare(
        f"void @{symbol}({', '.join([integer] * 6)}, {scalar}, ptr, i32, ptr, i32, {scalar}, ptr, i32)"
    )
    w.begin(nest)
    m, n, k = (_narrow(w, w.names[info[s]]) for s in "mnk")
    leading = [_leading(w, w.names[info[s][2]]) for s in "ab"] + [_leading(w, w.names[info["n"]])]
    loops = [w.loop(i, size) for i, size in enumerate(nest.loops)]
    pointers = [
        w.address(buffer, w.names[offset])
        for buffer, offset in ((left, info["a"][0]), (right, info["b"][0]), (out, info["y"]))
    ]
    flags = [TRANSPOSED if info[s][1] else AS_IT_IS for s in "ab"]
    one, zero = types.literal(1.0, dtype), types.literal(0.0, dtype)
    w.line(
        f"call void @{symbol}(i32 {ROW_MAJOR}, i32 {flags[0]}, i32 {flags[1]}, "
        f"i32 {m}, i32 {n}, i32 {k}, {scalar} {one}, ptr {pointers[0]}, i32 {leading[0]}, "
        f"ptr {pointers[1]}, i32 {leading[1]}, {scalar} {zero}, ptr {pointers[2]}, i32 {leading[2]})"
    )
    close_all(w, loops)


def _narrow(w: KernelWriter, size: str) -> str:
    return size if size.isdigit() else w.new(f"trunc i64 {size} to i32")


def _leading(w: KernelWriter, size: str) -> str:
    """A leading size as BLAS wants it: at least 1, even of an empty matrix."""
    if size.isdigit():
        return str(max(int(size), 1))
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    return _narrow(w, w.new(f"call i64 @llvm.smax.i64(i64 {size}, i64 1)"))
