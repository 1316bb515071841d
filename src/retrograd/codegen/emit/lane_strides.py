"""How positions in memory grow from one iteration of a loop to the next."""

from __future__ import annotations

from collections.abc import Mapping

from retrograd.ir import Dim
from retrograd.schedule.ssa import LINEAR, SSAOp, SSAValue


def depends(uses: int, loop: int) -> bool:
    """Whether a value differs between iterations: `uses` are the loops it depends on, as bits."""
    return loop >= 0 and bool(uses >> loop & 1)


def steps_of(uses: Mapping[SSAValue, int], loop: int) -> dict[SSAValue, int | Dim | None]:
    """By how much each value grows; None where that differs. Values come after what they use."""
    found: dict[SSAValue, int | Dim | None] = {}
    for v, loops in uses.items():
        found[v] = _step(v, found) if depends(loops, loop) else 0
    return found


def _step(v: SSAValue, known: Mapping[SSAValue, int | Dim | None]) -> int | Dim | None:
    if v.op is SSAOp.LOOP:
        return 1
    if v.op not in LINEAR:
        return None
    a, b = (known[x] for x in v.args)
    if a is None or b is None:
        return None
    if v.op is SSAOp.IMUL:
        x, y = v.args
        if y.op is SSAOp.SIZE and b == 0:
            return a * y.attr
        return b * x.attr if x.op is SSAOp.SIZE and a == 0 else None
    return a + b if v.op is SSAOp.IADD else a - b
