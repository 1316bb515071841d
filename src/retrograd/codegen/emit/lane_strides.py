"""How positions in memory grow from one iteration of a loop to the next."""

from __future__ import annotations

from collections.abc import Mapping

from retrograd.ir import Dim
from retrograd.schedule.affine_index import AffineIndex, linear
from retrograd.schedule.loop_nest import LoopNest, MapNest, Store
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


def in_groups(nest: LoopNest) -> tuple[list[Store], list[list[Store]]]:
    """The stores of a map that stand alone, and groups of those that fill memory in turn: as many
    as each is elements apart from one iteration to the next, one behind the other."""
    if not isinstance(nest, MapNest) or nest.vec < 0:
        return list(nest.stores), []
    known: dict[SSAValue, AffineIndex | None] = {}
    forms = [linear(s.offset, known) for s in nest.stores]
    alone, groups, i = list[Store](), list[list[Store]](), 0
    while i < len(forms):
        form, first = forms[i], nest.stores[i]
        apart = form.steps.get(nest.vec, 0) if form else 0
        count = apart if isinstance(apart, int) and apart > 1 else 1
        group = [s for s in nest.stores[i : i + count] if s.buffer is first.buffer]
        wanted = [AffineIndex(form.start + k, form.steps) for k in range(count)] if form else []
        if count > 1 and len(group) == count and forms[i : i + count] == wanted:
            groups.append(group)
            i += count
        else:
            alone.append(first)
            i += 1
    return alone, groups
