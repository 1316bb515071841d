"""Contractions by BLAS."""

from __future__ import annotations

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm import types
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.loops import Carried, walk
from retrograd.ir import float32

ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112


def gemm(w: KernelWriter, nest: Nest) -> None:
    """One call for each matrix of a stack."""
    info = nest.info
    left, right, out = info["buffers"]
    dtype = out.type.dtype
    kind = types.register_type(dtype)
    symbol = "rg_cblas_sgemm" if dtype is float32 else "rg_cblas_dgemm"
    w.declare(
        f"void @{symbol}({', '.join(['i32'] * 6)}, {kind}, ptr, i32, ptr, i32, {kind}, ptr, i32)"
    )
    w.begin(nest)
    sizes = [_narrow(w, w.scalar(info[s])) for s in "mnk"]
    rows = [_leading(w, w.scalar(v)) for v in (info["a"][2], info["b"][2], info["n"])]
    flags = [TRANSPOSED if info[s][1] else AS_IT_IS for s in "ab"]
    lo = "0"
    if w.band_rows != 0 and not nest.loops:
        lo, hi = w.range()
        sizes[0] = _narrow(w, w.new(f"sub i64 {hi}, {lo}"))
    integers = ", ".join(f"i32 {n}" for n in (ROW_MAJOR, *flags, *sizes))
    one, zero = (f"{kind} {types.literal(v, dtype)}" for v in (1.0, 0.0))

    def inside(_: Carried) -> Carried:
        starts = [w.scalar(v) for v in (info["a"][0], info["b"][0], info["y"])]
        if lo != "0":  # the first row
            step = "1" if info["a"][1] else w.scalar(info["a"][2])
            starts[0] = w.new(f"add i64 {starts[0]}, {w.new(f'mul i64 {lo}, {step}')}")
            width = w.scalar(info["n"])
            starts[2] = w.new(f"add i64 {starts[2]}, {w.new(f'mul i64 {lo}, {width}')}")
        a, b, y = (
            f"ptr {w.address(buffer, offset)}, i32 {row}"
            for buffer, offset, row in zip((left, right, out), starts, rows, strict=True)
        )
        w.line(f"call void @{symbol}({integers}, {one}, {a}, {b}, {zero}, {y})")
        return []

    walk(w, 0, len(nest.loops), inside)


def _narrow(w: KernelWriter, size: str) -> str:
    return size if size.isdigit() else w.new(f"trunc i64 {size} to i32")


def _leading(w: KernelWriter, size: str) -> str:
    """A leading size as BLAS wants it: at least 1, even of an empty matrix."""
    if size.isdigit():
        return str(max(int(size), 1))
    return _narrow(w, w.at_least_one(size))
