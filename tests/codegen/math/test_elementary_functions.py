"""Mathematical functions in vectors, against long doubles and mpmath, in units in the last place.

A unit is that of the exact result. Bounds are a little above the largest error that was seen in
tens of millions of arguments. Every function must give the same bits in one lane and in sixteen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.codegen.math import (
    exponential,
    inverse_trigonometric,
    logarithm,
    trigonometric,
)
from retrograd.codegen.op_builder import _definition
from retrograd.ir import DType, float32, float64
from tests.codegen.math.lanes import Functions, Write

Array = np.ndarray[Any, Any]
LONG = np.longdouble
INF, NAN = math.inf, math.nan
LANES = (1, 16)
DTYPES = (float32, float64)
needs_long_doubles = pytest.mark.skipif(
    np.finfo(LONG).nmant < 63, reason="long doubles are no wider than doubles here"
)


def _decay(x: Array) -> Array:
    return np.exp(-np.abs(x))


# Name to the exact function of long doubles, of mpmath's numbers, and the bound in ulp.
UNARY: dict[str, tuple[Callable[[Array], Array] | None, Callable[[Any], Any], float]] = {
    "exp": (np.exp, mpmath.exp, 1.1),
    "exp2": (np.exp2, lambda x: mpmath.mpf(2) ** x, 1.2),
    "expm1": (np.expm1, mpmath.expm1, 2.2),
    "log": (np.log, mpmath.log, 1.0),
    "log2": (np.log2, lambda x: mpmath.log(x) / mpmath.log(2), 1.9),
    "log10": (np.log10, mpmath.log10, 3.0),
    "log1p": (np.log1p, mpmath.log1p, 1.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / mpmath.sqrt(x), 1.6),
    "cbrt": (np.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), 0.8),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mpmath.exp(-x)), 2.5),
    "softplus": (
        lambda x: np.maximum(x, 0) + np.log1p(_decay(x)),
        lambda x: mpmath.log1p(mpmath.exp(x)),
        1.9,
    ),
    "erf": (None, mpmath.erf, 1.3),
    "erfc": (None, mpmath.erfc, 4.0),
    "sin": (np.sin, mpmath.sin, 1.7),
    "cos": (np.cos, mpmath.cos, 1.7),
    "tan": (np.tan, mpmath.tan, 3.6),
    "asin": (np.arcsin, mpmath.asin, 2.5),
    "acos": (np.arccos, mpmath.acos, 1.3),
    "atan": (np.arctan, mpmath.atan, 2.7),
    "sinh": (np.sinh, mpmath.sinh, 2.8),
    "cosh": (np.cosh, mpmath.cosh, 2.8),
    "tanh": (np.tanh, mpmath.tanh, 2.7),
    "sech2": (lambda x: 1 / np.cosh(x) ** 2, lambda x: mpmath.sech(x) ** 2, 2.5),
    "asinh": (np.arcsinh, mpmath.asinh, 2.0),
    "acosh": (np.arccosh, mpmath.acosh, 2.4),
    "atanh": (np.arctanh, mpmath.atanh, 2.2),
}
BINARY: dict[str, tuple[Callable[[Array, Array], Array], float]] = {
    "pow": (np.power, 1.4),
    "atan2": (np.arctan2, 2.7),
    "hypot": (np.hypot, 1.1),
}
# Where formulas change, results overflow or vanish, or arguments are hard to reduce.
CORNERS = (
    *(2.0**k for k in (-1074, -1022, -149, -126, -54, -25, 17, 26, 30, 55, 126, 127, 1023)),
    *(0.47, 0.5, 1 / math.sqrt(2), 1.0, math.sqrt(2), 4.0, 6.0, math.sqrt(2) - 1, math.sqrt(2) + 1),
    *(9.01, 10.05, 16.6, 19.06, 26.54, 27.22, 36.7, 87.33, 88.72, 89.41, 103.97),
    *(128.0, 150.0, 708.39, 709.78, 710.47, 745.13, 1024.0, 1075.0),
    *((k + 0.5) * math.log(2) for k in range(12)),
    *(k * math.pi / 2 for k in (*range(1, 40), 1000, 83443, 10**6, 683565275, 10**9)),
    *(6381956970095103.0 * 2.0**797, 5.3197e36, 16367173.0 * 2.0**72),
)
SPECIAL = (0.0, -0.0, INF, -INF, NAN, 1.0, -1.0)


def arguments(dtype: DType) -> Array:
    """Both signs of: all magnitudes alike, moderate ones, the neighbours of every corner."""
    r = np.random.default_rng(1)
    kind = dtype.dtype.type
    bits = f"u{dtype.itemsize}"
    top = int(np.array(INF, dtype).view(bits))
    every = np.linspace(0, top, 20_000, endpoint=False).astype(bits).view(dtype.dtype)
    moderate = np.exp(r.uniform(np.log(1e-5), np.log(1000), 20_000)).astype(kind)
    small = r.uniform(0, 4, 20_000).astype(kind)
    with np.errstate(over="ignore"):
        corners = np.array(CORNERS, np.float64).astype(kind)
    near = corners[np.isfinite(corners)].view(bits)[:, None] + np.arange(-3, 4).astype(bits)
    near = near.view(dtype.dtype).ravel()
    x = np.concatenate([every, moderate, small, near[np.isfinite(near)]])
    return _whole(np.concatenate([x, -x, np.array(SPECIAL, dtype.dtype)]))


def _whole(x: Array) -> Array:
    """As long as a whole number of vectors."""
    return np.ascontiguousarray(np.resize(x, -(-x.size // 32) * 32))


def _limited(x: Array, dtype: DType) -> Array:
    """Infinity as the first power of two that cannot be represented."""
    top = LONG(2) ** np.finfo(dtype.dtype).maxexp
    return np.clip(x.astype(LONG), -top, top)


def units(exact: Array, dtype: DType) -> Array:
    """The unit in the last place, of results beyond the range that of the largest number."""
    size = np.minimum(np.abs(exact), LONG(np.finfo(dtype.dtype).max)).astype(dtype.dtype)
    return np.spacing(size).astype(LONG)


def errors(y: Array, exact: Array, dtype: DType) -> Array:
    """In ulp; infinite where only one is NaN, or where a zero has the wrong sign."""
    with np.errstate(all="ignore"):
        distance = np.abs(_limited(y, dtype) - _limited(exact, dtype)) / units(exact, dtype)
    distance[np.isnan(y) & np.isnan(exact)] = 0
    distance[np.isnan(distance)] = INF
    distance[(exact == 0) & (np.signbit(y) != np.signbit(exact))] = INF
    return distance


def assert_within(
    name: str, y: Array, exact: Array, bound: float, dtype: DType, *args: Array
) -> None:
    error = errors(y, exact, dtype)
    worst = int(np.argmax(error))
    where = ", ".join(repr(a[worst]) for a in args)
    assert error[worst] <= bound, (
        f"{name}({where}) is {y[worst]!r}, not {exact[worst]}: {float(error[worst]):.2f} ulp"
    )


def _write(name: str) -> Write:
    return lambda at, x: ELEMENTWISE[name](at, *x)


def assert_same_bits(name: str, y: Array, z: Array) -> None:
    kind = f"u{y.itemsize}"
    differ = (y.view(kind) != z.view(kind)) & ~(np.isnan(y) & np.isnan(z))
    assert not differ.any(), f"{name} differs between lanes, at position {np.argmax(differ)}"


@cache
def unary_results(dtype: DType) -> tuple[Array, dict[str, Array]]:
    """All functions of all arguments, in sixteen lanes; in one lane they are the same."""
    x = arguments(dtype)
    functions = [(_write(name), dtype) for name in UNARY]
    single, wide = (Functions(dtype, [dtype], functions, lanes)(x) for lanes in LANES)
    for name, y, z in zip(UNARY, single, wide, strict=True):
        assert_same_bits(name, y, z)
    return x, dict(zip(UNARY, wide, strict=True))


@needs_long_doubles
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [name for name in UNARY if UNARY[name][0]])
@pytest.mark.sample(4)
def test_dense(name: str, dtype: DType) -> None:
    exact, _, bound = UNARY[name]
    assert exact is not None
    x, results = unary_results(dtype)
    with np.errstate(all="ignore"):
        assert_within(name, results[name], exact(x.astype(LONG)), bound, dtype, x)


@needs_long_doubles
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["tanh", "sech2"])
def test_where_hyperbolic_formulas_change(name: str, dtype: DType) -> None:
    """From the polynomial to the exponential, to 1, to results below the normal range, to zero;
    in vectors whose lanes are all on one side, or on both."""
    exact, _, bound = UNARY[name]
    assert exact is not None
    points = np.array([0.55, 9.01, 10.0, 43.6, 52.0, 53.0, 354.2, 373.0, 374.0], dtype.dtype)
    near = points.view(f"u{dtype.itemsize}")[:, None] + np.arange(-2000, 2000)
    near = near.astype(f"u{dtype.itemsize}").view(dtype.dtype)
    x = _whole(
        np.concatenate([near, -near, near[:, ::-1] * 0.1, near[::-1].T.copy().reshape(9, -1)])
    )
    single, wide = (Functions(dtype, [dtype], [(_write(name), dtype)], n)(x)[0] for n in LANES)
    assert_same_bits(name, single, wide)
    with np.errstate(all="ignore"):
        assert_within(name, wide, exact(x.astype(LONG)), bound, dtype, x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.sample(10)
def test_against_mpmath(name: str, dtype: DType) -> None:
    """A few arguments of each kind; more where no long double knows the function."""
    dense, exact, bound = UNARY[name]
    x, results = unary_results(dtype)
    r = np.random.default_rng(2)
    chosen = r.choice(x.size, 150 if dense else 1500, replace=False)
    with mpmath.workdps(30):
        for i in chosen:
            if not np.isfinite(x[i]) or x[i] == 0:
                continue
            y = float(results[name][i])
            right = _exact(exact, float(x[i]))
            if right is None:
                assert math.isnan(y), f"{name}({x[i]!r}) is {y!r}, not NaN"
                continue
            error = _error(y, right, dtype)
            assert error <= bound, f"{name}({x[i]!r}) is {y!r}, not {right}: {error:.2f} ulp"


def _exact(f: Callable[[Any], Any], x: float) -> Any:
    """None where the function is not real. Huge arguments are too much for mpmath's erf."""
    if f is mpmath.erf or f is mpmath.erfc:
        x = max(-40.0, min(40.0, x))
    try:
        right = f(mpmath.mpf(x))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return right if isinstance(right, mpmath.mpf) else None


def _error(y: float, right: Any, dtype: DType) -> float:
    info = np.finfo(dtype.dtype)
    top = mpmath.mpf(2) ** info.maxexp
    right = max(-top, min(top, right))
    exponent = mpmath.frexp(right)[1] - 1 if right else info.minexp
    exponent = max(info.minexp, min(info.maxexp - 1, exponent))
    value = mpmath.sign(y) * top if math.isinf(y) else mpmath.mpf(y)
    return float(abs(value - right) / mpmath.mpf(2) ** (exponent - info.nmant))


def pairs(dtype: DType) -> tuple[Array, Array]:
    """Arguments of all magnitudes, moderate ones, powers near the ends of the range, every pair of
    special values."""
    r = np.random.default_rng(3)
    kind = dtype.dtype.type
    n, far = 20_000, 6e4 if dtype is float32 else 4e5
    every = r.permutation(arguments(dtype))
    info = np.finfo(kind)
    special = (*SPECIAL, 2, -2, 3, -3, 0.5, -0.5, 1.5, -1.5, 1e30, -1e30, 1e-30, -1e-30)
    ends = (info.max, -info.max, info.smallest_subnormal, 2.0 ** (info.nmant + 1) - 1)
    grid = np.array(list(itertools.product((*special, *ends), repeat=2)), kind)
    parts = [
        (every, r.permutation(every)),
        (r.uniform(0, 4, n), r.uniform(-30, 30, n)),
        (np.exp(r.uniform(-80, 80, n)), r.uniform(-1, 1, n)),
        (1 + 1e-3 * r.normal(size=n), far * r.normal(size=n)),
        (-r.uniform(0, 30, n), r.integers(-20, 20, n)),
        (r.normal(size=n), r.normal(size=n)),
        (grid[:, 0], grid[:, 1]),
    ]
    a, b = (_whole(np.concatenate([p[i].astype(kind) for p in parts])) for i in (0, 1))
    return a, b


@pytest.mark.slow
@needs_long_doubles
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_binary(dtype: DType) -> None:
    """Of two arguments; NumPy's pow, atan2 and hypot have the special values of C99."""
    a, b = pairs(dtype)
    functions = [(_write(name), dtype) for name in BINARY]
    single, wide = (Functions(dtype, [dtype] * 2, functions, lanes)(a, b) for lanes in LANES)
    for (name, (exact, bound)), y, z in zip(BINARY.items(), single, wide, strict=True):
        assert_same_bits(name, y, z)
        with np.errstate(all="ignore"):
            right = exact(a.astype(LONG), b.astype(LONG))
            assert_within(name, z, right, bound, dtype, a, b)


@needs_long_doubles
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_logaddexp(dtype: DType) -> None:
    """In units of what is added, or of the sum where that is larger: it may cancel. The gap between
    the operands is rounded before the exponential, in whose units that counts as many times."""
    a, b = pairs(dtype)
    functions = [(_write("logaddexp"), dtype)]
    (single,), (wide,) = (Functions(dtype, [dtype] * 2, functions, n)(a, b) for n in LANES)
    assert_same_bits("logaddexp", single, wide)
    with np.errstate(all="ignore"):
        exact = np.logaddexp(a.astype(LONG), b.astype(LONG))
        top = np.maximum(a, b).astype(LONG)
        tail = np.abs(exact - top) * np.maximum(1, np.abs(a - b))
        size = np.fmax(np.maximum(np.abs(exact), np.abs(top)), tail)
        y = np.where(np.isfinite(exact), (wide - exact) / units(size, dtype), wide)
        right = np.where(np.isfinite(exact), LONG(0), exact)
        close = (np.abs(y - right) <= 2.0) | (y == right) | (np.isnan(y) & np.isnan(right))
    where = int(np.argmin(close))
    assert close.all(), f"logaddexp({a[where]!r}, {b[where]!r}) is {wide[where]!r}"


# Argument and result; a list, since a dictionary takes both zeros for one.
VALUES: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0)],
    "exp2": [(0.0, 1), (3.0, 8), (-1.0, 0.5), (INF, INF), (-INF, 0)],
    "expm1": [(0.0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1)],
    "log": [(1.0, 0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (-INF, NAN)],
    "log2": [(1.0, 0), (8.0, 3), (0.125, -3), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF)],
    "log10": [(1.0, 0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF)],
    "log1p": [(0.0, 0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (INF, INF), (-INF, NAN)],
    "rsqrt": [(4.0, 0.5), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0)],
    "cbrt": [(8.0, 2), (-27.0, -3), (0.0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "sigmoid": [(0.0, 0.5), (INF, 1), (-INF, 0)],
    "softplus": [(INF, INF), (-INF, 0)],
    "erf": [(0.0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1)],
    "erfc": [(0.0, 1), (-0.0, 1), (INF, 0), (-INF, 2)],
    "sin": [(0.0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "asin": [(0.0, 0), (-0.0, -0.0), (2.0, NAN), (INF, NAN)],
    "acos": [(1.0, 0), (2.0, NAN), (-2.0, NAN), (INF, NAN)],
    "atan": [(0.0, 0), (-0.0, -0.0)],
    "sinh": [(0.0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "cosh": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF)],
    "tanh": [(0.0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1)],
    "sech2": [(0.0, 1), (-0.0, 1), (INF, 0), (-INF, 0)],
    "asinh": [(0.0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0), (0.5, NAN), (-INF, NAN), (INF, INF)],
    "atanh": [(0.0, 0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN)],
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_special_values(dtype: DType) -> None:
    """Exactly, the signs of zeros included; every function of a NaN is NaN."""
    assert VALUES.keys() == UNARY.keys()
    x = _whole(np.array([NAN, *(v for table in VALUES.values() for v, _ in table)], dtype.dtype))
    functions = [(_write(name), dtype) for name in VALUES]
    for lanes in LANES:
        for (name, table), y in zip(
            VALUES.items(), Functions(dtype, [dtype], functions, lanes)(x), strict=True
        ):
            assert np.isnan(y[np.isnan(x)]).all(), name
            for value, right in table:
                same = (x == value) & (np.signbit(x) == np.signbit(value))
                np.testing.assert_array_equal(y[same], right, err_msg=f"{name}({value})")
                if not math.isnan(right):
                    assert (np.signbit(y[same]) == np.signbit(right)).all(), f"{name}({value})"


@pytest.mark.slow
@needs_long_doubles
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.sample(1)
def test_constant_powers(dtype: DType) -> None:
    """Exponents known when the program is compiled, for some of which there is a shorter way."""
    exponents = (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 4.0, -2.0, 2.5)

    def by(exponent: float) -> tuple[Write, DType]:
        return lambda at, x: ELEMENTWISE["pow"](at, x[0], at.number(exponent)), dtype

    x = arguments(dtype)
    functions = [by(e) for e in exponents]
    single, wide = (Functions(dtype, [dtype], functions, lanes)(x) for lanes in LANES)
    for e, y, z in zip(exponents, single, wide, strict=True):
        assert_same_bits(f"power {e}", y, z)
        with np.errstate(all="ignore"):
            exact = np.power(x.astype(LONG), LONG(e))
            assert_within(f"power {e}", z, exact, 2.0, dtype, x)


PLANTED = {
    "exp": exponential._EXP,
    "sinh": exponential._SINH,
    "cosh": exponential._COSH,
    "log": logarithm._LOG,
    "sin": trigonometric._SIN,
    "cos": trigonometric._COS,
    "asin": inverse_trigonometric._ASIN,
    "atan": inverse_trigonometric._ATAN,
}


@needs_long_doubles
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_digit_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coefficient that is wrong in the seventh digit breaks the bound of a double's function."""
    exact, _, bound = UNARY[name]
    assert exact is not None
    first, *others = PLANTED[name]["float64"]
    monkeypatch.setitem(PLANTED[name], "float64", (first * (1 + 1e-7), *others))
    _definition.cache_clear()  # the text of functions of their own
    x = arguments(float64)
    (y,) = Functions(float64, [float64], [(_write(name), float64)], 16)(x)
    with np.errstate(all="ignore"):
        right = exact(x.astype(LONG))
    with pytest.raises(AssertionError, match="ulp"):
        assert_within(name, y, right, bound, float64, x)
    _definition.cache_clear()
