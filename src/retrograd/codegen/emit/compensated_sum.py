"""Sums in twice the precision of float64: a total, and the sum of what was rounded off; the same as
in `ops/numerics/compensated_sum.py`, to the bit."""

from __future__ import annotations

from retrograd.codegen.op_builder import OpBuilder
from retrograd.codegen.types import literal


def two_sum(at: OpBuilder, a: str, b: str) -> tuple[str, str]:
    """The rounded sum, and what was rounded off: NaN where the sum is not finite."""
    total = at.instruction("fadd", a, b)
    moved = at.instruction("fsub", total, a)
    kept = at.instruction("fsub", a, at.instruction("fsub", total, moved))
    return total, at.instruction("fadd", kept, at.instruction("fsub", b, moved))


def two_product(at: OpBuilder, a: str, b: str) -> tuple[str, str]:
    """The rounded product, and what was rounded off: NaN from 2^996 on."""
    product = at.instruction("fmul", a, b)
    (x, y), (u, v) = _halves(at, a), _halves(at, b)
    lost = at.instruction("fsub", at.instruction("fmul", x, u), product)
    for one, other in ((x, v), (y, u), (y, v)):
        lost = at.instruction("fadd", lost, at.instruction("fmul", one, other))
    return product, lost


def _halves(at: OpBuilder, a: str) -> tuple[str, str]:
    """Two numbers of half as many digits, of which a is the sum."""
    wide = at.instruction("fmul", a, literal(134217729.0, at.dtype, at.lanes))
    high = at.instruction("fsub", wide, at.instruction("fsub", wide, a))
    return high, at.instruction("fsub", a, high)


def more(at: OpBuilder, total: str, rest: str, x: str) -> tuple[str, str]:
    """A total, and what was rounded off, with one more term."""
    total, lost = two_sum(at, total, x)
    return total, at.instruction("fadd", rest, lost)


def settled(at: OpBuilder, total: str, rest: str) -> str:
    """The total with what was rounded off on the way: as it is where that is zero, for the sign of
    a zero, and where it is not finite."""
    zero = literal(0.0, at.dtype, at.lanes)
    both = at.instruction("fadd", total, rest)
    some = at.instruction("fcmp une", rest, zero)
    finite = at.instruction("fcmp oeq", at.instruction("fsub", both, both), zero)
    return at.select(at.logic("and", some, finite), both, total)
