"""Large contractions, by calls of the routine that multiplies matrices."""

from __future__ import annotations

import math

from retrograd.backends.kernel import Nest
from retrograd.backends.llvm.kernels import KernelWriter
from retrograd.backends.llvm.loops import Carried, walk


def gemm(w: KernelWriter, nest: Nest) -> None:
    """One call for each matrix of a stack."""
    info = nest.info
    left, right, out = info["buffers"]
    spread = "spread" in info
    symbol = f"rg_gemm_{'spread_' * spread}{out.type.dtype}"
    stride = "ptr" if spread else "i64"
    kinds = ["i64"] * 3 + ["ptr", stride, stride, "ptr", "i64", "i64"]
    kinds += ["ptr", "i64", "i1", "ptr", "ptr", "ptr"]
    w.declare(f"void @{symbol}({', '.join(kinds)})")
    w.begin(nest)
    m, n, k = (w.scalar(info[s]) for s in "mnk")
    b_step, b_column = _strides(w, nest, "b")
    work = w.parameter(info["work"])
    lo, hi = w.ranges.get(len(nest.loops), ("0", ""))
    if spread:
        a_row, a_step = _tables(w, nest, work, lo, hi or m)
    else:
        a_row, a_step = _strides(w, nest, "a")
    more = "false"  # whether there are sums to go on from
    if hi and w.first:
        k, more = w.new(f"sub i64 {hi}, {lo}"), w.new(f"xor i1 {w.first}, true")
    elif hi:
        m = w.new(f"sub i64 {hi}, {lo}")

    soon = _soon(w, nest, lo, hi)

    def inside(_: Carried) -> Carried:
        starts = [w.scalar(v) for v in (info["a"][0], info["b"][0], info["y"])]
        if hi:  # the first row of the result, or the first product of its sums
            steps = [a_step, b_step, "0"] if w.first else ["0" if spread else a_row, "0", n]
            starts = [
                at if step == "0" else w.new(f"add i64 {at}, {w.new(f'mul i64 {lo}, {step}')}")
                for at, step in zip(starts, steps, strict=True)
            ]
        buffers = zip((left, right, out), starts, strict=True)
        a, b, y = (f"ptr {w.address(buffer, start)}" for buffer, start in buffers)
        w.line(
            f"call void @{symbol}(i64 {m}, i64 {n}, i64 {k}, {a}, {stride} {a_row}, "
            f"{stride} {a_step}, {b}, i64 {b_step}, i64 {b_column}, {y}, i64 {n}, i1 {more}, ptr {work}, "
            f"ptr {soon}, ptr {'%stop' if w.polls else 'null'})"
        )
        return []

    walk(w, 0, len(nest.loops), inside)


def _soon(w: KernelWriter, nest: Nest, lo: str, hi: str) -> str:
    """The table of what the routine is to fetch meanwhile: addresses and bytes, then zeros."""
    listed = nest.info.get("soon", [])
    if not (listed and hi):
        return "null"
    table = w.reserve(f"[{2 * len(listed) + 2} x i64]", align=8)
    words = []
    rows = w.new(f"sub i64 {hi}, {lo}")
    w.declare("i64 @llvm.umin.i64(i64, i64)")
    for buffer, size, most in listed:
        start = w.new(f"ptrtoint ptr {w.parameter(buffer)} to i64")
        words.append(w.new(f"add i64 {start}, {w.new(f'mul i64 {lo}, {size}')}"))
        length = w.new(f"mul i64 {rows}, {size}")
        words.append(w.new(f"call i64 @llvm.umin.i64(i64 {length}, i64 {most})"))
    for k, word in enumerate([*words, "0", "0"]):
        w.line(f"store i64 {word}, ptr {w.new(f'getelementptr i64, ptr {table}, i64 {k}')}")
    return table


def _tables(w: KernelWriter, nest: Nest, work: str, lo: str, hi: str) -> tuple[str, str]:
    """The offsets of the rows and of the columns of a left matrix that is spread, in the half of
    the thread's memory that the routine would copy such a matrix to."""
    rows, columns = nest.info["spread"]
    first = w.new(f"getelementptr i32, ptr {work}, i64 {math.prod(size for size, _ in columns)}")
    for table, axes, bounds in (
        (work, columns, ("0", str(math.prod(size for size, _ in columns)))),
        (first, rows, (lo, hi)),
    ):
        loop = w.open_loop(bounds[1], 1, bounds[0])
        rest, place = loop.counter, "0"
        for k, (size, step) in enumerate(reversed(axes)):
            at = w.new(f"urem i64 {rest}, {size}") if k < len(axes) - 1 else rest
            place = w.new(f"add i64 {place}, {w.new(f'mul i64 {at}, {step}')}")
            rest = w.new(f"udiv i64 {rest}, {size}")
        entry = w.new(f"getelementptr i32, ptr {table}, i64 {loop.counter}")
        w.line(f"store i32 {w.new(f'trunc i64 {place} to i32')}, ptr {entry}, align 4")
        w.close_loop(loop)
    return w.new(f"getelementptr i32, ptr {first}, i64 {lo}"), work


def _strides(w: KernelWriter, nest: Nest, name: str) -> tuple[str, str]:
    """From row to row of a matrix, and from column to column."""
    _, turned, leading = nest.info[name]
    lead = w.scalar(leading)
    return ("1", lead) if turned else (lead, "1")
