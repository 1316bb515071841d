"""Positions in memory as linear functions of loop counters."""

from __future__ import annotations

from dataclasses import dataclass

from retrograd.ir import Dim
from retrograd.schedule.ssa import SSAOp, SSAValue


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """`start + sum(counter * steps[loop])`."""

    start: int | Dim
    steps: dict[int, int | Dim]


def linear(
    v: SSAValue, known: dict[SSAValue, AffineIndex | None] | None = None
) -> AffineIndex | None:
    """A position as a linear function with known factors, or None."""
    known = {} if known is None else known
    if v not in known:
        known[v] = _linear(v, known)
    return known[v]


def _linear(v: SSAValue, known: dict[SSAValue, AffineIndex | None]) -> AffineIndex | None:
    if v.op is SSAOp.LOOP:
        return AffineIndex(0, {v.attr: 1})
    if v.op is SSAOp.SIZE:
        return AffineIndex(v.attr, {})
    if v.op not in (SSAOp.IADD, SSAOp.ISUB, SSAOp.IMUL):
        return None
    a, b = (linear(x, known) for x in v.args)
    if a is None or b is None:
        return None
    if v.op is SSAOp.IMUL:
        if a.steps and b.steps:
            return None
        many, one = (a, b) if a.steps else (b, a)
        return AffineIndex(
            many.start * one.start, {k: s * one.start for k, s in many.steps.items()}
        )
    return combined(a, b, 1 if v.op is SSAOp.IADD else -1)


def combined(a: AffineIndex, b: AffineIndex, sign: int) -> AffineIndex:
    """The sum of two, or their difference."""
    steps = dict(a.steps)
    for k, s in b.steps.items():
        steps[k] = steps.get(k, 0) + sign * s
    return AffineIndex(a.start + sign * b.start, steps)
