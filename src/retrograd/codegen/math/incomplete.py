"""The incomplete gamma and beta functions and their derivatives: the formulas of
`ops/special/incomplete/` in registers of doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.codegen.math import bessel, double_precision, gamma
from retrograd.codegen.math.double_precision import Registers
from retrograd.codegen.math.term import Term, polynomial
from retrograd.codegen.op_builder import Emit, emits
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.special import incomplete
from retrograd.ops.special.incomplete.quadrature import Panels, Point, one_by_one


class SpecialRegisters(Registers):
    """With the functions that these formulas need."""

    exp = staticmethod(double_precision.exp)
    expm1 = staticmethod(double_precision.expm1)
    log = staticmethod(double_precision.log)
    log1p = staticmethod(double_precision.log1p)
    sin = staticmethod(double_precision.sin)
    expm1_rest = staticmethod(double_precision.expm1_rest)
    log1p_rest = staticmethod(double_precision.log1p_rest)
    stirling = staticmethod(gamma.stirling)
    digamma = staticmethod(gamma.digamma_positive)
    digamma_rest = staticmethod(gamma.digamma_rest)
    trigamma = staticmethod(gamma.trigamma_positive)
    loop = staticmethod(double_precision.loop)

    def bessel_ratio(self, k: Term) -> Term:
        return bessel.unit_ratio(k)

    def sums(self, half: Term, zero: Term, point: Point, count: int) -> Any:
        at = half.at

        def named(place: str) -> list[str]:
            return [value.name for value in point(Term(at, place))]

        found = at.integrals(Panels(), half.name, zero.name, named)
        if found is None:
            return one_by_one(self, half, zero, point, count)
        return [Term(at, x) for x in found]

    def log_gamma_near_two(self, t: Term) -> Term:
        return t * polynomial(t, gamma.LGAMMA)


def _emit(name: str, f: Callable[..., Any]) -> Emit:
    return double_precision.special(name, lambda *xs: f(SpecialRegisters(), *xs))


for _name, _formula in incomplete.FUNCTIONS.items():
    emits(ELEMENTWISE[_name])(_emit(_name, _formula))
