"""Large contractions, by calls of the routine that multiplies matrices."""

from __future__ import annotations

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.loops import Carried, walk


def gemm(w: KernelWriter, nest: Nest) -> None:
    """One call for each matrix of a stack."""
    info = nest.info
    left, right, out = info["buffers"]
    symbol = f"rg_gemm_{out.type.dtype}"
    kinds = ["i64"] * 3 + ["ptr", "i64", "i64"] * 2 + ["ptr", "i64", "i1", "ptr"]
    w.declare(f"void @{symbol}({', '.join(kinds)})")
    w.begin(nest)
    m, n, k = (w.scalar(info[s]) for s in "mnk")
    a_row, a_step = _strides(w, nest, "a")
    b_step, b_column = _strides(w, nest, "b")
    work = w.parameter(info["work"])
    lo, hi = w.ranges.get(len(nest.loops), ("0", ""))
    more = "false"  # whether there are sums to go on from
    if hi and w.first:
        k, more = w.new(f"sub i64 {hi}, {lo}"), w.new(f"xor i1 {w.first}, true")
    elif hi:
        m = w.new(f"sub i64 {hi}, {lo}")

    def inside(_: Carried) -> Carried:
        starts = [w.scalar(v) for v in (info["a"][0], info["b"][0], info["y"])]
        if hi:  # the first row of the result, or the first product of its sums
            steps = [a_step, b_step, "0"] if w.first else [a_row, "0", n]
            starts = [
                at if step == "0" else w.new(f"add i64 {at}, {w.new(f'mul i64 {lo}, {step}')}")
                for at, step in zip(starts, steps, strict=True)
            ]
        buffers = zip((left, right, out), starts, strict=True)
        a, b, y = (f"ptr {w.address(buffer, start)}" for buffer, start in buffers)
        w.line(
            f"call void @{symbol}(i64 {m}, i64 {n}, i64 {k}, {a}, i64 {a_row}, i64 {a_step}, "
            f"{b}, i64 {b_step}, i64 {b_column}, {y}, i64 {n}, i1 {more}, ptr {work})"
        )
        return []

    walk(w, 0, len(nest.loops), inside)


def _strides(w: KernelWriter, nest: Nest, name: str) -> tuple[str, str]:
    """From row to row of a matrix, and from column to column."""
    _, turned, leading = nest.info[name]
    lead = w.scalar(leading)
    return ("1", lead) if turned else (lead, "1")
