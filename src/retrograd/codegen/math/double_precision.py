"""What the special functions share: double precision throughout, functions that are called, loops,
and small functions that their formulas need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.codegen.math import exponential, logarithm, power, trigonometric
from retrograd.codegen.math.exponential import excess_rest
from retrograd.codegen.math.logarithm import log_rest
from retrograd.codegen.math.term import SINGLE, Term, choose, formula, polynomial
from retrograd.codegen.op_builder import Emit, OpBuilder, outlined
from retrograd.ir import float64, int64

# sin(pi r) / r in r^2 for |r| <= 1/2, to 2^-54
_SINPI = (
    3.141592653589793, -5.167712780049969, 2.5501640398773007, -0.5992645293189447,
    0.0821458865731029, -0.007370430505916944, 0.0004662998161898394, -2.1903497074626018e-05,
    7.697826768224191e-07,
)  # fmt: skip

Body = Callable[..., Term]


def special(name: str, body: Body) -> Emit:
    """A formula of doubles as an op: a function of the module, by way of which the smaller dtypes
    go as well."""

    def of_doubles(at: OpBuilder, *args: str) -> str:
        return body(*(Term(at, a) for a in args)).name

    double = outlined(name, of_doubles)

    @formula
    def emit(*xs: Term) -> Term:
        narrow = xs[0].format is SINGLE
        wide = [x.double() for x in xs] if narrow else list(xs)
        at = xs[0].at.with_dtype(float64)
        y = Term(at, double(at, *(x.name for x in wide)))
        return y.single() if narrow else y

    return emit


def called(name: str, emit: Emit) -> Callable[..., Term]:
    """What writes an op, as a function of terms that is called where it is used."""
    function = outlined(f"called.{name}", emit)
    return lambda *xs: Term(xs[0].at, function(xs[0].at, *(x.name for x in xs)))


exp = called("exp", exponential.exp)
expm1 = called("expm1", exponential.expm1)
log = called("log", logarithm.log)
log1p = called("log1p", logarithm.log1p)
pow = called("pow", power.pow)
sin = called("sin", trigonometric.sin)


def loop(count: int | Term, body: Callable[..., tuple[Term, ...]], *state: Term) -> Any:
    """The state after `count` times `state = body(*state)`."""

    def terms(names: Sequence[str]) -> tuple[Term, ...]:
        return tuple(Term(s.at, x) for s, x in zip(state, names, strict=True))

    def step(names: Sequence[str]) -> list[str]:
        return [s.name for s in body(*terms(names))]

    at, carried = state[0].at, [(s.at.type, s.name) for s in state]
    times = count.name if isinstance(count, Term) else at.with_dtype(int64, 1).number(count)
    return terms(at.w.repeat(times, carried, step))


def whole(x: Term) -> Term:
    """The nearest integer."""
    return x.intrinsic("roundeven")


def _sine(r: Term) -> Term:
    return r * polynomial(r * r, _SINPI)


def sine_of_turn(x: Term) -> Term:
    """`|sin(pi x)|`, exactly zero where x is whole."""
    return _sine(abs(x - whole(x)))


def cotangent_of_turn(x: Term) -> Term:
    """`cot(pi x)`"""
    r = x - whole(x)
    return (_sine(0.5 - abs(r)) / _sine(abs(r))).with_sign_of(r)


def is_odd(x: Term) -> Term:
    """Whether a whole number is odd."""
    half = x * 0.5
    return ~half.equals(half.intrinsic("trunc"))


def _expm1_rest(x: Term) -> Term:
    """`exp(x) - 1 - x`"""
    near = abs(x) < 0.34
    return choose(near, excess_rest(choose(near, x, x.like(0))), expm1(x) - x)


def _log1p_rest(x: Term) -> Term:
    """`log(1 + x) - x`"""
    near = (x > -0.29) & (x < 0.41)
    return choose(near, log_rest(choose(near, x, x.like(0))), log1p(x) - x)


expm1_rest = called("expm1_rest", formula(_expm1_rest))
log1p_rest = called("log1p_rest", formula(_log1p_rest))
LOG_2PI = math.log(2 * math.pi)


class Registers:
    """Doubles in registers, as the formulas of `ops/special/` want them."""

    choose = staticmethod(choose)
    round = staticmethod(whole)

    def sqrt(self, x: Term) -> Term:
        return x.sqrt()
