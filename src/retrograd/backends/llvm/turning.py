"""Contractions of which lanes read rows: the products of weights as layers store them, `[out, in]`.

What the lanes need at one step of the sum lies a row apart in memory, but what they need at the
next steps lies beside it. So a few elements of each row are read at once, and the little matrices
that they make are turned over in registers, which takes a third of the time of gathering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrograd.backends.llvm import types
from retrograd.backends.llvm.strides import steps_of
from retrograd.ir import float32

if TYPE_CHECKING:
    from retrograd.backends.llvm.kernels import KernelWriter

STEPS = 4  # that are read at once: the floats of a part of a vector within which shuffles are fast


def loop_to_turn(w: KernelWriter) -> int:
    """The loop of a contraction along which what its lanes gather lies side by side, or -1."""
    nest, last = w.nest, len(w.nest.loops) - 1
    if nest.op != "dot" or nest.kind == "row" or w.light or w.lanes % STEPS:
        return -1
    steps = steps_of(w.uses, last)
    positions = [v.args[0] for v in w.uses if v.op == "load" and w.varies(v)]
    gathered = [p for p in positions if w.strides[p] != 1]
    floats = all(v.dtype is float32 for v in w.uses if v.op == "load")
    fit = all(steps[p] == 1 and isinstance(w.strides[p], int) for p in gathered)
    return last if gathered and floats and fit else -1


def columns(w: KernelWriter, row: str, apart: int) -> list[str]:
    """What lanes read at so many steps: vectors of the elements at `row`, and at rows so far apart
    from one another; then of the elements after those, and so on."""
    count = w.lanes if w.mask is None else w.mask.count("i1 1")
    part = types.widened("float", STEPS)
    parts = []
    for lane in range(count):
        at = w.new(f"getelementptr float, ptr {row}, i64 {lane * apart}")
        parts.append(w.new(f"load {part}, ptr {at}, align 4"))
    parts += ["zeroinitializer"] * (w.lanes - count)
    p, q, r, s = (_joined(w, parts[i::STEPS]) for i in range(STEPS))
    low, high = [0, STEPS, 1, STEPS + 1], [2, STEPS + 2, 3, STEPS + 3]
    firsts, lasts = ((_mixed(w, p, q, half), _mixed(w, r, s, half)) for half in (low, high))
    low, high = [0, 1, STEPS, STEPS + 1], [2, 3, STEPS + 2, STEPS + 3]
    return [_mixed(w, *pair, half) for pair in (firsts, lasts) for half in (low, high)]


def _joined(w: KernelWriter, parts: list[str]) -> str:
    """Short vectors, one after the other, as a long one."""
    width = STEPS
    while len(parts) > 1:
        kind = types.widened("float", width)
        order = ", ".join(f"i32 {i}" for i in range(2 * width))
        parts = [
            w.new(f"shufflevector {kind} {a}, {kind} {b}, <{2 * width} x i32> <{order}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]


def _mixed(w: KernelWriter, a: str, b: str, order: list[int]) -> str:
    """The same choice of elements of each part of two vectors."""
    kind = types.widened("float", w.lanes)
    listed = ", ".join(
        f"i32 {start + i if i < STEPS else w.lanes + start + i - STEPS}"
        for start in range(0, w.lanes, STEPS)
        for i in order
    )
    return w.new(f"shufflevector {kind} {a}, {kind} {b}, <{w.lanes} x i32> <{listed}>")
