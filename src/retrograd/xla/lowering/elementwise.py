"""Elementwise ops: a table of JAX's functions and of formulas in these.

Half precision is computed in float32 and rounded once, but for what is not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Node, Trait, bool_, float16
from retrograd.ops.complex import Complex, Imag, Real
from retrograd.ops.elementwise import ELEMENTWISE, Cast
from retrograd.xla.lowering.rules import RULES, JaxTrace, lowers

Formula = Callable[..., Any]  # of the trace and the arrays

# Those that JAX has under a name of its own.
SAME = {
    "neg": "neg", "sign": "sign",
    "floor": "floor", "ceil": "ceil", "sqrt": "sqrt", "cbrt": "cbrt", "exp": "exp",
    "expm1": "expm1", "log": "log", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "asinh", "acosh": "acosh",
    "erf": "erf", "erfc": "erfc", "sigmoid": "logistic", "nextafter": "nextafter",
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "max": "max",
    "min": "min", "select": "select", "isfinite": "is_finite", "bitwise_not": "bitwise_not",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "shift_left": "shift_left",
}  # fmt: skip


def like(t: JaxTrace, x: Any, value: Any) -> Any:
    """An array like x with one value everywhere."""
    return t.lax.full_like(x, value)


def arithmetic(name: str) -> Formula:
    """A formula that is rounded by itself where bits count: XLA adds up constants of sums, and
    contracts products and sums. Of `lax`, as operators of arrays are jitted functions of `jnp`,
    which take several times as long to trace."""

    def formula(t: JaxTrace, a: Any, b: Any) -> Any:
        y = getattr(t.lax, name)(a, b)
        return t.rounded(y) if t.exact and y.dtype.kind == "f" else y

    return formula


def div(t: JaxTrace, a: Any, b: Any) -> Any:
    """By a constant XLA would multiply by the inverse."""
    if not (t.exact and a.dtype.kind == "f"):
        return t.lax.div(a, b)
    return t.rounded(t.lax.div(a, t.lax.optimization_barrier(b)))


def is_zero(t: JaxTrace, a: Any) -> Any:
    """Where an array is 0."""
    return t.lax.eq(a, like(t, a, 0))


def zmul(t: JaxTrace, a: Any, b: Any) -> Any:
    return t.lax.select(is_zero(t, a), a, t.lax.mul(a, b))


def zdiv(t: JaxTrace, a: Any, b: Any) -> Any:
    return t.lax.select(is_zero(t, a), a, t.lax.div(a, b))


def zzmul(t: JaxTrace, a: Any, b: Any) -> Any:
    zero = t.lax.bitwise_or(is_zero(t, a), is_zero(t, b))
    return t.lax.select(zero, like(t, a, 0), t.lax.mul(a, b))


def floor_div(t: JaxTrace, a: Any, b: Any) -> Any:
    lax = t.lax
    if a.dtype.kind in "iu":
        plain = b == 0
        if a.dtype.kind == "i":
            plain = plain | (b == -1)
        by = lax.select(plain, like(t, b, 1), b)
        whole = lax.div(a, by)
        rest = lax.rem(a, by)
        whole = lax.select((rest != 0) & ((rest < 0) != (by < 0)), whole - 1, whole)
        if a.dtype.kind == "i":
            whole = lax.select(b == -1, -a, whole)
        return lax.select(b == 0, like(t, a, 0), whole)
    rest = lax.rem(a, b)
    moved = (rest != 0) & ((rest < 0) != (b < 0))
    quotient = lax.div(a - rest, b)
    quotient = lax.select(moved, quotient - 1, quotient)
    floor = lax.floor(quotient)
    floor = lax.select(quotient - floor > 0.5, floor + 1, floor)
    plain = lax.div(a, b)
    zero = copysign(t, like(t, a, 0), plain)
    whole = lax.select(quotient == 0, zero, floor)
    return lax.select(b == 0, plain, whole)


def mod(t: JaxTrace, a: Any, b: Any) -> Any:
    lax = t.lax
    if a.dtype.kind in "iu":
        return a - floor_div(t, a, b) * b
    rest = lax.rem(a, b)
    moved = (rest < 0) != (b < 0)
    return lax.select(rest == 0, copysign(t, rest, b), lax.select(moved, rest + b, rest))


def copysign(t: JaxTrace, a: Any, b: Any) -> Any:
    return t.lax.select(signbit(t, a) == signbit(t, b), a, -a)


def signbit(t: JaxTrace, x: Any) -> Any:
    bits = t.lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}")
    return bits < 0


def trunc(t: JaxTrace, x: Any) -> Any:
    return t.lax.select(x < 0, t.lax.ceil(x), t.lax.floor(x))


def round_(t: JaxTrace, x: Any) -> Any:
    return t.lax.round(x, t.lax.RoundingMethod.TO_NEAREST_EVEN)


def pow_(t: JaxTrace, a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iu":
        return t.lax.pow(a, b)

    def step(i: Any, state: Any) -> Any:
        result, base, rest = state
        odd = (rest & 1) == 1
        return t.lax.select(odd, result * base, result), base * base, rest >> 1

    one = like(t, a, 1)
    rest = t.lax.max(b, like(t, b, 0))
    result = t.lax.fori_loop(0, 8 * a.dtype.itemsize, step, (one, a, rest))[0]
    return t.lax.select(b < 0, like(t, a, 0), result) if a.dtype.kind == "i" else result


def logaddexp(t: JaxTrace, a: Any, b: Any) -> Any:
    lax = t.lax
    top, gap = lax.max(a, b), -lax.abs(a - b)
    apart = top + lax.log1p(lax.exp(gap))
    return lax.select(a == b, a + math.log(2), apart)


def hypot(t: JaxTrace, a: Any, b: Any) -> Any:
    """Scaled by the larger, so that nothing overflows; infinite if one is, even beside NaN."""
    lax = t.lax
    a, b = lax.abs(a), lax.abs(b)
    big, small = lax.max(a, b), lax.min(a, b)
    ratio = lax.select(big == 0, big, lax.div(small, big))
    y = big * lax.sqrt(1 + ratio * ratio)
    infinite = (a == math.inf) | (b == math.inf)
    return lax.select(infinite, like(t, a, math.inf), y)


def atanh(t: JaxTrace, x: Any) -> Any:
    """`log1p(2 |x| / (1 - |x|)) / 2` with the sign of x: XLA's loses digits of float64."""
    if x.dtype.kind == "c":
        return t.lax.atanh(x)
    a = t.lax.abs(x)
    return copysign(t, 0.5 * t.lax.log1p(2 * a / (1 - a)), x)


def sech2(t: JaxTrace, x: Any) -> Any:
    y = t.lax.div(like(t, x, 1), t.lax.cosh(x))
    return t.lax.mul(y, y)


def softplus(t: JaxTrace, x: Any) -> Any:
    lax = t.lax
    return lax.add(lax.max(x, like(t, x, 0)), lax.log1p(lax.exp(lax.neg(lax.abs(x)))))


def clamp(t: JaxTrace, x: Any, low: Any, high: Any) -> Any:
    return t.lax.min(t.lax.max(x, low), high)


def shift_right(t: JaxTrace, a: Any, b: Any) -> Any:
    signed = a.dtype.kind == "i"
    return (t.lax.shift_right_arithmetic if signed else t.lax.shift_right_logical)(a, b)


FORMULAS: dict[str, Formula] = {
    "add": arithmetic("add"),
    "sub": arithmetic("sub"),
    "mul": arithmetic("mul"),
    "div": div,
    "zmul": zmul,
    "zdiv": zdiv,
    "zzmul": zzmul,
    "floor_div": floor_div,
    "mod": mod,
    "copysign": copysign,
    "signbit": signbit,
    "trunc": trunc,
    "round": round_,
    "pow": pow_,
    "logaddexp": logaddexp,
    "hypot": hypot,
    "atanh": atanh,
    "sech2": sech2,
    "softplus": softplus,
    "clamp": clamp,
    "shift_right": shift_right,
    "reciprocal": lambda t, x: t.lax.div(like(t, x, 1), x),
    "rsqrt": lambda t, x: t.lax.div(like(t, x, 1), t.lax.sqrt(x)),
    "exp2": lambda t, x: t.lax.exp2(x),
    "log2": lambda t, x: t.lax.log(x) * (1 / math.log(2)),
    "log10": lambda t, x: t.lax.log(x) * (1 / math.log(10)),
    "abs": lambda t, x: x if x.dtype.kind == "u" else t.lax.abs(x),
    "relu": lambda t, x: t.lax.max(x, like(t, x, 0)),
    "isnan": lambda t, x: t.lax.ne(x, x),
    "isinf": lambda t, x: t.lax.abs(x) == math.inf,
}


def in_float32(t: JaxTrace, node: Node, f: Callable[..., Any], xs: Any) -> Any:
    """`f(*xs)`, by way of float32 where arrays are of half precision."""
    dtype = node.inputs[-1].dtype
    if not dtype.is_half:
        return f(*xs)
    cast = t.lax.convert_element_type
    y = f(*[cast(x, np.float32) if x.dtype != np.bool_ else x for x in xs])
    y = cast(y, node.dtype.dtype)
    # XLA multiplies and adds in float16 itself, and fuses the two.
    return t.rounded(y) if node.dtype is float16 else y


def by_formula(formula: Formula, exact: bool) -> Callable[..., Any]:
    """The rule of an op that has a formula; one that is `exact` takes half precision as it is."""

    def rule(t: JaxTrace, node: Node, *xs: Any) -> Any:
        if exact:
            return formula(t, *xs)
        return in_float32(t, node, lambda *wide: formula(t, *wide), xs)

    return rule


def of_lax(name: str) -> Formula:
    """JAX's function of a name."""
    return lambda t, *xs: getattr(t.lax, name)(*xs)


def enter(formulas: dict[str, Formula]) -> None:
    """Enter formulas of elementwise ops in the table of rules."""
    for name, formula in formulas.items():
        exact = Trait.UNROUNDED in ELEMENTWISE[name].traits or name == "nextafter"
        RULES[name] = by_formula(formula, exact)


enter({name: of_lax(jax_name) for name, jax_name in SAME.items()})
enter(FORMULAS)


@lowers(Cast)
def cast(t: JaxTrace, node: Node, x: Any) -> Any:
    """What an integer dtype cannot hold becomes its nearest end, NaN 0, as in XLA."""
    convert, dtype, given = t.lax.convert_element_type, node.dtype, node.inputs[0].dtype
    if dtype is bool_:
        return x != 0
    if dtype.is_half and not given.is_half:
        x = convert(x, np.float32)
    return convert(x, dtype.dtype)


@lowers(Real)
def real(t: JaxTrace, node: Node, z: Any) -> Any:
    return t.lax.real(z)


@lowers(Imag)
def imag(t: JaxTrace, node: Node, z: Any) -> Any:
    return t.lax.imag(z)


@lowers(Complex)
def complex_(t: JaxTrace, node: Node, x: Any, y: Any) -> Any:
    return t.lax.complex(x, y)
