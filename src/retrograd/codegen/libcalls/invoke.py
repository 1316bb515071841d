"""Calls of routines: a helper function for each, called for the items of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.loops import Carried, emit_loops
from retrograd.codegen.emit.nest_emitters import emits_nest
from retrograd.codegen.libcalls import (  # noqa: F401  (their routines)
    eigen_svd,
    fourier,
    inverse,
    lapack,
    least_squares,
    matrix_functions,
    python_callback,
    toposort,
)
from retrograd.codegen.libcalls.builder import FIXED, ROUTINES, STRAIGHT, Emit, helper
from retrograd.errors import BackendError
from retrograd.passes.lowering.libcall import PAIRED, PYTHON
from retrograd.schedule.loop_nest import CallNest
from retrograd.schedule.ssa import SSAValue
from retrograd.tuning import TUNING

BRIEF_LANES = 8  # of routines that have vectors, in programs that have none


@emits_nest(CallNest)
def call(w: KernelEmitter, nest: CallNest) -> None:
    """One call for each item. What a routine returns for an item, if it may refuse one, is kept
    with the item's number; a check follows."""
    w.begin(nest)
    first = w.ranges.get(0, ("0", ""))[0]
    given = nest.given
    data, rest = nest.buffers[: given + 1], list(nest.buffers[given + 1 :])
    work = "null"
    if nest.work.attr != 0:
        # Items that are done by one thread share the space of the first of them.
        space = w.scalar(nest.work)
        start = first if first == "0" else w.new(f"mul i64 {first}, {space}")
        work = w.address(rest.pop(0), start)
    name = nest.routine.removeprefix(PAIRED)
    paired = name != nest.routine
    key = ""
    emit: Emit
    if name.startswith(PYTHON):
        emit, key = python_callback.call, name.removeprefix(PYTHON)
    elif name in ROUTINES:
        emit = ROUTINES[name]
    else:
        raise BackendError(f"the llvm backend has no routine {name!r}")
    dtype = data[-1].type.dtype
    # Vectors serve programs that are written quickly, too: there is as much of this text with them.
    lanes = w.machine.width if w.machine.width > 1 else BRIEF_LANES
    known = _known(name, nest.sizes)
    symbol = helper(w, name, emit, dtype, len(data), known, key, paired, lanes)
    sizes = [w.scalar(s) for s in nest.sizes]

    def inside(_: Carried) -> Carried:
        pointers = [w.address(b, w.scalar(p)) for b, p in zip(data, nest.starts, strict=True)]
        listed = ", ".join([*(f"ptr {p}" for p in (*pointers, work)), *(f"i64 {s}" for s in sizes)])
        code = w.new(f"call i64 @{symbol}({listed})")
        if nest.can_fail:
            item = w.scalar(nest.item)
            high = w.new(f"shl i64 {w.new(f'add i64 {item}, 1')}, 32")
            bad = w.new(f"icmp ne i64 {code}, 0")
            found = w.new(f"select i1 {bad}, i64 {w.new(f'or i64 {high}, {code}')}, i64 0")
            w.line(f"store i64 {found}, ptr {w.address(rest[0], item)}, align 8")
        return []

    emit_loops(w, 0, len(nest.loops), inside)


def _known(name: str, sizes: Sequence[SSAValue]) -> list[int | None]:
    """The sizes that a routine is written for: small ones, where that makes straight code of it."""
    numbers = [s.attr for s in sizes]
    if name in FIXED:
        return numbers
    if name in STRAIGHT and all(
        isinstance(n, int) and n <= TUNING.unrolled_matrix_rows for n in numbers
    ):
        return numbers
    return [None] * len(numbers)
