"""Derivatives by SymPy: the function is written as an expression, and differentiated by rules that
somebody else wrote.

A graph of elementwise operations is an expression if each of its operations has one here; the table
is the mathematics of the operation, not its derivative.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Graph, Node, interpret
from retrograd.lazy_import import is_installed, need
from retrograd.ops.control.custom import Custom
from retrograd.ops.elementwise import Cast
from retrograd.ops.identity import Alias, Item
from retrograd.ops.leaf import Constant
from retrograd.ops.remat import Keep
from retrograd.ops.shape import Expand, Reshape
from retrograd.verify.certification.certificate import ABSENT, FAILED, NONE, PASSED, Evidence
from retrograd.verify.certification.multiprecision import _names, _shown, slopes
from retrograd.verify.certification.subject import Subject

KIND = "symbolic"
DIGITS = 40
POINTS = 4
AGREEMENT = 1e-10  # relative to the larger of 1 and the derivative
MOST_NODES = 60  # of a graph that is written as one expression


def _piece(sp: Any, condition: Any, a: Any, b: Any) -> Any:
    return sp.Piecewise((a, condition), (b, True))


def _scaled_bessel(sp: Any, n: Any, x: Any) -> Any:
    return sp.besseli(n, x) * _piece(sp, x > 0, sp.exp(-x), sp.exp(x))


def _beta_density(sp: Any, a: Any, b: Any, x: Any) -> Any:
    return x ** (a - 1) * (1 - x) ** (b - 1) * sp.gamma(a + b) / sp.gamma(a) / sp.gamma(b)


# Each operation as a function of SymPy's module and expressions.
EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "add": lambda sp, a, b: a + b,
    "sub": lambda sp, a, b: a - b,
    "mul": lambda sp, a, b: a * b,
    "zmul": lambda sp, a, b: a * b,
    "zzmul": lambda sp, a, b: a * b,
    "div": lambda sp, a, b: a / b,
    "zdiv": lambda sp, a, b: a / b,
    "neg": lambda sp, x: -x,
    "reciprocal": lambda sp, x: 1 / x,
    "abs": lambda sp, x: _piece(sp, x > 0, x, -x),
    "relu": lambda sp, x: _piece(sp, x > 0, x, 0 * x),
    "max": lambda sp, a, b: _piece(sp, a > b, a, b),
    "min": lambda sp, a, b: _piece(sp, a < b, a, b),
    "clamp": lambda sp, x, lo, hi: sp.Piecewise((lo, x < lo), (hi, x > hi), (x, True)),
    "sqrt": lambda sp, x: sp.sqrt(x),
    "rsqrt": lambda sp, x: 1 / sp.sqrt(x),
    "cbrt": lambda sp, x: _piece(sp, x > 0, sp.cbrt(x), -sp.cbrt(-x)),
    "exp": lambda sp, x: sp.exp(x),
    "exp2": lambda sp, x: 2**x,
    "expm1": lambda sp, x: sp.exp(x) - 1,
    "log": lambda sp, x: sp.log(x),
    "log2": lambda sp, x: sp.log(x) / sp.log(2),
    "log10": lambda sp, x: sp.log(x) / sp.log(10),
    "log1p": lambda sp, x: sp.log(1 + x),
    "pow": lambda sp, a, b: a**b,
    "logaddexp": lambda sp, a, b: sp.log(sp.exp(a) + sp.exp(b)),
    "hypot": lambda sp, a, b: sp.sqrt(a**2 + b**2),
    "sin": lambda sp, x: sp.sin(x),
    "cos": lambda sp, x: sp.cos(x),
    "tan": lambda sp, x: sp.tan(x),
    "asin": lambda sp, x: sp.asin(x),
    "acos": lambda sp, x: sp.acos(x),
    "atan": lambda sp, x: sp.atan(x),
    "atan2": lambda sp, a, b: sp.atan2(a, b),
    "sinh": lambda sp, x: sp.sinh(x),
    "cosh": lambda sp, x: sp.cosh(x),
    "tanh": lambda sp, x: sp.tanh(x),
    "sech2": lambda sp, x: sp.sech(x) ** 2,
    "asinh": lambda sp, x: sp.asinh(x),
    "acosh": lambda sp, x: sp.acosh(x),
    "atanh": lambda sp, x: sp.atanh(x),
    "erf": lambda sp, x: sp.erf(x),
    "erfc": lambda sp, x: sp.erfc(x),
    "erfcx": lambda sp, x: sp.exp(x**2) * sp.erfc(x),
    "sigmoid": lambda sp, x: 1 / (1 + sp.exp(-x)),
    "softplus": lambda sp, x: sp.log(1 + sp.exp(x)),
    "gamma": lambda sp, x: sp.gamma(x),
    "lgamma": lambda sp, x: sp.loggamma(x),
    "digamma": lambda sp, x: sp.polygamma(0, x),
    "trigamma": lambda sp, x: sp.polygamma(1, x),
    "zeta": lambda sp, s, q: sp.zeta(s, q),
    "betaln": lambda sp, a, b: sp.loggamma(a) + sp.loggamma(b) - sp.loggamma(a + b),
    "ndtr": lambda sp, x: sp.erfc(-x / sp.sqrt(2)) / 2,
    "ndtri": lambda sp, p: sp.sqrt(2) * sp.erfinv(2 * p - 1),
    "erfinv": lambda sp, x: sp.erfinv(x),
    "erfcinv": lambda sp, x: sp.erfinv(1 - x),
    "logit": lambda sp, x: sp.log(x / (1 - x)),
    "xlogy": lambda sp, a, b: a * sp.log(b),
    "xlog1py": lambda sp, a, b: a * sp.log(1 + b),
    "entr": lambda sp, x: -x * sp.log(x),
    "rel_entr": lambda sp, a, b: a * sp.log(a / b),
    "j0": lambda sp, x: sp.besselj(0, x),
    "j1": lambda sp, x: sp.besselj(1, x),
    "y0": lambda sp, x: sp.bessely(0, x),
    "y1": lambda sp, x: sp.bessely(1, x),
    "i0e": lambda sp, x: _scaled_bessel(sp, 0, x),
    "i1e": lambda sp, x: _scaled_bessel(sp, 1, x),
    "k0e": lambda sp, x: sp.besselk(0, x) * sp.exp(x),
    "k1e": lambda sp, x: sp.besselk(1, x) * sp.exp(x),
    "bessel_j": lambda sp, n, x: sp.besselj(n, x),
    "bessel_ie": lambda sp, n, x: _scaled_bessel(sp, n, x),
    "yn": lambda sp, n, x: sp.bessely(n, x),
    "gammainc": lambda sp, a, x: sp.lowergamma(a, x) / sp.gamma(a),
    "gammaincc": lambda sp, a, x: sp.uppergamma(a, x) / sp.gamma(a),
    "gammainc_dx": lambda sp, a, x: x ** (a - 1) * sp.exp(-x) / sp.gamma(a),
    "betainc": lambda sp, a, b, x: sp.betainc_regularized(a, b, 0, x),
    "betainc_dx": _beta_density,
    "spence": lambda sp, x: sp.polylog(2, 1 - x),
    "ellipkm1": lambda sp, p: sp.elliptic_k(1 - p),
    "ellipe": lambda sp, m: sp.elliptic_e(m),
    "exp1": lambda sp, x: sp.expint(1, x),
    "expi": lambda sp, x: sp.Ei(x),
    "expn": lambda sp, n, x: sp.expint(n, x),
    "hyp1f1": lambda sp, a, b, x: sp.hyper([a], [b], x),
    "hyp2f1": lambda sp, a, b, c, x: sp.hyper([a, b], [c], x),
    "portable_log": lambda sp, x: sp.log(x),
    "portable_exp": lambda sp, x: sp.exp(x),
    "portable_atan": lambda sp, x: sp.atan(x),
    "portable_log_factorial": lambda sp, x: sp.loggamma(x + 1),
}


# What hands on or repeats numbers.
KNOWN = (Constant, Expand, Reshape, Alias, Keep, Cast, Custom, Item)


class _NoExpression(Exception):
    """An operation that the table does not have."""


def expression(sp: Any, subject: Subject, symbols: Sequence[Any]) -> Any:
    """The function of the subject, whose inputs are the symbols, element by element."""

    def value(node: Node, given: Sequence[Any]) -> Any:
        prim: Any = node.prim
        if isinstance(prim, Constant) and len(set(np.ravel(prim.value).tolist())) == 1:
            return sp.Rational(float(np.ravel(prim.value)[0]))
        if isinstance(prim, Expand | Reshape) and not _holds_rows(node):
            return given[0]
        if isinstance(prim, Alias | Keep) or (isinstance(prim, Cast) and prim.dtype.is_float):
            return given[0]
        if isinstance(prim, Custom):
            return given[prim.count :]  # what was computed, not what the rule says of it
        if isinstance(prim, Item):
            return given[0][prim.index]
        if prim.name not in EXPRESSIONS:
            raise _NoExpression(f"{prim.name} has no expression")
        return EXPRESSIONS[prim.name](sp, *given)

    graph = Graph(subject.inputs, subject.outputs)
    if len(graph.body) > MOST_NODES:
        raise _NoExpression(f"{len(graph.body)} operations are too many for one expression")
    return interpret(graph, symbols, value)[0]


def _holds_rows(node: Node) -> bool:
    """Whether the elements of what is repeated or reshaped are others than those beside them."""
    x = node.inputs[0]
    return x.type.size != 1 and x.shape != node.shape


def evidence(subject: Subject, i: int, orders: int) -> Evidence:
    """The rules' derivatives by input i, up to an order, pure and mixed, against SymPy's."""
    shapes = {a.shape for a in subject.arrays}
    shapes |= {tuple(map(int, y.shape)) for y in subject.outputs[:1]}
    if len(subject.outputs) != 1 or any(a.dtype.kind != "f" for a in subject.arrays):
        return Evidence(KIND, NONE, detail="it is not a real scalar function")
    if (
        len(shapes) != 1
        or tuple(subject.outputs[0].shape) not in shapes
        or not subject.arrays[i].size
    ):
        return Evidence(KIND, NONE, detail="it is no function of each element")
    graph = Graph(subject.inputs, subject.outputs)
    others = [x.op for x in graph.body if not isinstance(x.prim, KNOWN)]
    lacking = [op for op in others if op not in EXPRESSIONS]
    if lacking:
        return Evidence(KIND, NONE, detail=f"{lacking[0]} has no expression")
    if not (is_installed("sympy") and is_installed("mpmath")):
        return Evidence(KIND, ABSENT, detail="needs sympy: pip install 'retrograd[verify]'")
    sp, mp = need("sympy", "a symbolic derivation"), need("mpmath", "a symbolic derivation").mp
    symbols = [sp.Symbol(f"x{k}", real=True) for k in range(len(subject.inputs))]
    try:
        y = expression(sp, subject, symbols)
    except _NoExpression as reason:
        return Evidence(KIND, NONE, detail=str(reason))
    worst, count, missing = 0.0, 0, ""
    with mp.workdps(DIGITS):
        for by in _orders(subject, i, orders):
            dy = sp.diff(y, *[symbols[k] for k in by])
            if dy.has(sp.Derivative, sp.Subs, sp.meijerg, sp.DiracDelta):
                missing = missing or f"SymPy has no derivative by {_names(subject, by)}"
                continue
            found = slopes(subject, by)
            for at in list(np.ndindex(found.shape))[:POINTS]:
                xs = [mp.mpf(float(a[at])) for a in subject.arrays]
                exact = _value(sp, mp, dy, symbols, xs)
                if exact is None:
                    missing = missing or f"mpmath cannot evaluate {dy!s:.60}"
                    break
                off = abs(float(found[at]) - exact) / max(1.0, abs(exact))
                worst, count = max(worst, off), count + 1
                if not off <= AGREEMENT:
                    said = (
                        f"the derivative by {_names(subject, by)} at {_shown(xs)} is "
                        f"{float(found[at]):.15g}, not {exact:.15g}, that of {dy!s:.80}"
                    )
                    return Evidence(KIND, FAILED, count, off, said)
    if not count:
        return Evidence(KIND, NONE, detail=missing)
    return Evidence(KIND, PASSED, count, worst, "relative" + (f"; {missing}" if missing else ""))


def _orders(subject: Subject, i: int, orders: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for order in range(1, orders + 1):
        others = itertools.combinations_with_replacement(subject.wrt, order - 1)
        found += [(i, *rest) for rest in others]
    return found


def _value(sp: Any, mp: Any, dy: Any, symbols: Sequence[Any], xs: Sequence[Any]) -> float | None:
    """An expression at a point, by mpmath; None where mpmath has no such function, or it is not
    real there."""
    values: Mapping[Any, Any] = dict(zip(symbols, map(sp.Float, xs), strict=True))
    try:
        found = sp.lambdify(symbols, dy, "mpmath")(*xs)
        if not isinstance(found, mp.mpf | mp.mpc | int | float):
            found = mp.mpmathify(dy.subs(values).evalf(DIGITS))
        found = mp.mpmathify(found)
    except (
        NameError,
        TypeError,
        ValueError,
        NotImplementedError,
        AttributeError,
        ZeroDivisionError,
    ):
        return None
    value = complex(found)
    real = np.isfinite(value) and abs(value.imag) <= 1e-25 * max(1.0, abs(value.real))
    return value.real if real else None
