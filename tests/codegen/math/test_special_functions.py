"""Special functions in vectors, against mpmath over their whole range, in units in the last place.

A unit is that of the exact result or, where the function oscillates or has zeros, of its size
around. Every function gives the same bits in one lane and in sixteen, and NumPy's meaning agrees.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.codegen.math import gamma
from retrograd.ir import DType, float32, float64
from retrograd.ops.elementwise import ELEMENTWISE as OPS
from tests.codegen.math.lanes import Functions

Array = np.ndarray[Any, Any]
mp = mpmath.mp
INF, NAN = math.inf, math.nan
rng = np.random.default_rng
DTYPES = (float32, float64)


def values(name: str, dtype: DType, *arrays: Array, lanes: int = 16) -> Array:
    """The op as compiled in lanes, on arrays of any length."""
    size = arrays[0].size
    padded = [np.resize(a.astype(dtype.dtype), -(-size // 16) * 16) for a in arrays]
    functions = [(lambda at, x: ELEMENTWISE[name](at, *x), dtype)]
    (y,) = Functions(dtype, [dtype] * len(arrays), functions, lanes)(*padded)
    return y[:size]


def spread(low: float, high: float, count: int, seed: int = 0) -> Array:
    """All magnitudes alike."""
    return np.asarray(np.exp(rng(seed).uniform(np.log(low), np.log(high), count)))


def both(x: Array) -> Array:
    return np.concatenate([x, -x])


def uniform(low: float, high: float, count: int = 60) -> Array:
    return rng(1).uniform(low, high, count)


def height(x: Any) -> Any:
    """Of the waves of a Bessel function, at most 1."""
    return min(1, math.sqrt(2 / math.pi / max(abs(x), 1e-9)))


def log_gamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x))) if x < 1e3 else mp.loggamma(x)


def quantile(p: Any) -> Any:
    if p > 1e-6:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    return mp.findroot(lambda z: mp.log(mp.ncdf(z)) - mp.log(p), -mp.sqrt(-2 * mp.log(p)))


def scaled_k(n: int, x: Any) -> Any:
    """`exp(x) K_n(x)`, for large x by Hankel's series, of which 30 terms are right to 1e-40."""
    if x < 400:
        return mp.besselk(n, x) * mp.exp(x)
    total = term = mp.mpf(1)
    for k in range(1, 30):
        term *= (4 * n * n - (2 * k - 1) ** 2) / (8 * k * x)
        total += term
    return mp.sqrt(mp.pi / (2 * x)) * total


POSITIVE = np.concatenate([spread(1e-30, 1e30, 60), uniform(0, 12, 100), [1.5, 2.5, 10, 1 + 1e-9]])
NEGATIVE = -np.concatenate([spread(1e-20, 1, 20), uniform(0, 30)])
UNIT = np.concatenate([uniform(0, 1), spread(1e-30, 1, 30), 1 - spread(1e-7, 0.1, 20)])
WAVES = np.concatenate([uniform(-40, 40, 100), both(spread(1e-6, 1e4, 40))])
HALF_WAVES = np.concatenate([uniform(0, 12, 150), spread(1e-30, 1, 40), spread(1, 1e4, 40)])
DECAYING = np.concatenate([uniform(0, 6, 150), spread(1e-30, 1, 40), spread(1, 1e30, 60)])
# Exact function, arguments, the bound in ulp, and the least size whose unit counts.
UNARY: dict[str, tuple[Callable[[Any], Any], Array, float, Callable[[Any], Any] | None]] = {
    "gamma": (mp.gamma, np.r_[spread(1e-30, 1, 30), uniform(-150, 170, 200)], 8, None),
    "lgamma": (log_gamma, POSITIVE, 7, None),
    "lgamma below 0": (log_gamma, NEGATIVE, 7, lambda x: 1),
    "digamma": (mp.digamma, POSITIVE, 6, None),
    "digamma below 0": (mp.digamma, NEGATIVE, 6, lambda x: 1),
    "trigamma": (lambda x: mp.zeta(2, x), np.r_[spread(1e-9, 1e9, 40), uniform(0, 12)], 8, None),
    "erfcx": (
        lambda x: mp.exp(x * x) * mp.erfc(x),
        np.r_[uniform(-26, 8, 100), spread(1, 50, 40)], 4, None,
    ),
    "ndtr": (mp.ncdf, uniform(-37, 8, 120), 4, None),
    "ndtri": (quantile, UNIT, 4, None),
    "erfinv": (mp.erfinv, both(UNIT), 4, None),
    "erfcinv": (lambda x: mp.erfinv(1 - x), np.r_[uniform(0.01, 1.99)], 4, None),
    "logit": (lambda x: mp.log(x / (1 - x)), UNIT, 2, None),
    "entr": (lambda x: -x * mp.log(x), POSITIVE, 2, None),
    "j0": (lambda x: mp.besselj(0, x), WAVES, 5, height),
    "j1": (lambda x: mp.besselj(1, x), WAVES, 5, lambda x: min(abs(x) / 2, height(x))),
    "y0": (lambda x: mp.bessely(0, x), HALF_WAVES, 5, height),
    "y1": (lambda x: mp.bessely(1, x), HALF_WAVES, 7, height),
    "k0e": (partial(scaled_k, 0), DECAYING, 4, None),
    "k1e": (partial(scaled_k, 1), DECAYING, 4, None),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), WAVES, 8, None),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), WAVES, 8, None),
}  # fmt: skip


def error(y: float, exact: Any, dtype: DType, least: Any = None) -> float:
    info = np.finfo(dtype.dtype)
    size = max(abs(exact), least or 0)
    if not info.tiny * 4 < size < info.max / 4:
        return 0.0
    return float(abs(mpmath.mpf(y) - exact) / size / info.eps)


def assert_close(
    name: str,
    exact: Callable[..., Any],
    arrays: tuple[Array, ...],
    bound: Callable[..., float],
    dtype: DType,
    least: Callable[..., Any] | None = None,
) -> None:
    given = [a.astype(dtype.dtype) for a in arrays]
    found = values(name, dtype, *given)
    assert found.tobytes() == values(name, dtype, *given, lanes=1).tobytes()
    meaning = OPS[name].reference(*given)
    with mp.workdps(40):
        for row in zip(found, meaning, *given, strict=True):
            y, reference, *xs = (float(v) for v in row)
            right = mp.re(exact(*(mpmath.mpf(x) for x in xs)))
            if not mp.isfinite(right):
                continue
            far = error(y, right, dtype, least(*xs) if least else None)
            limit = bound(right, *xs) if dtype is float64 else 0.6 + bound(right, *xs) * 2**-20
            assert far <= limit, f"{name}{xs} is {y!r}, not {right}: {far:.1f} ulp"
            np.testing.assert_allclose(reference, y, 1e-9 if dtype is float64 else 1e-6, 1e-13)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.sample(7)
def test_unary(name: str, dtype: DType) -> None:
    exact, x, bound, least = UNARY[name]
    assert_close(name.split()[0], exact, (x,), lambda *_: bound, dtype, least)


A, B = spread(1e-8, 1e8, 150, 2), spread(1e-8, 1e8, 150, 3)
SMALL = spread(1e-3, 60, 120, 4)
ORDER = rng(5).integers(-6, 7, WAVES.size).astype(float)
BINARY: dict[str, tuple[Any, tuple[Array, ...], Callable[..., float], Any]] = {
    "zeta": (
        mp.zeta, (uniform(1.01, 12, 150), spread(1e-3, 1e9, 150)), lambda y, s, q: 8 + s, None,
    ),
    "betaln": (
        lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b), (A, B),
        lambda *_: 8, lambda a, b: 1,
    ),
    "xlogy": (lambda a, b: a * mp.log(b), (A, B), lambda *_: 2, None),
    "xlog1py": (lambda a, b: a * mp.log1p(b), (A, B), lambda *_: 2, None),
    "rel_entr": (
        lambda a, b: a * mp.log(a / b), (A, np.r_[A[:75] * 1.001, B[75:]]), lambda *_: 2, None,
    ),
    "bessel_j": (
        mp.besselj, (ORDER, WAVES), lambda *_: 8,
        lambda n, x: 0 if abs(x) < abs(n) else height(x),
    ),
    "bessel_ie": (
        lambda n, x: mp.besseli(n, x) * mp.exp(-abs(x)), (ORDER, WAVES), lambda *_: 8, None,
    ),
    "gammainc": (
        lambda a, x: mp.gammainc(a, 0, x, regularized=True), (SMALL, spread(1e-3, 60, 120, 6)),
        lambda y, *_: 8 + 2 * abs(math.log(y)), None,
    ),
    "gammaincc": (
        lambda a, x: mp.gammainc(a, x, regularized=True), (SMALL, spread(1e-3, 60, 120, 6)),
        lambda y, *_: 30 + abs(math.log(y)), None,
    ),
    "betainc": (
        lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        (SMALL, spread(1e-2, 60, 120, 7), uniform(0, 1, 120)),
        lambda y, *_: 12 + 4 * abs(math.log(y)), lambda *_: 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.sample(2)
def test_several_arguments(name: str, dtype: DType) -> None:
    exact, arrays, bound, least = BINARY[name]
    assert_close(name, exact, arrays, bound, dtype, least)


def derivative(f: Callable[..., Any], *orders: int) -> Callable[..., Any]:
    def g(*xs: Any) -> Any:
        with mp.workdps(60):
            return mp.diff(f, xs, orders, h=min(xs) * mp.mpf(10) ** -15)

    return g


DERIVATIVES = {
    **{f"gammainc_d{'a' * i}": (partial(mp.gammainc, regularized=True), (i,)) for i in (1, 2)},
    **{
        f"betainc_d{'a' * i}{'b' * j}": (partial(mp.betainc, regularized=True), (i, j))
        for i, j in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.sample(3)
def test_derivatives_in_parameters(name: str) -> None:
    """Over five orders of magnitude of the parameters, and on both sides of the mean."""
    f, orders = DERIVATIVES[name]
    count = len(orders)
    p = [spread(1e-3, 150, 24, 10 + k) for k in range(count)]
    x = spread(1e-2, 100, 24, 20) if count == 1 else uniform(0.02, 0.98, 24)

    def exact(*xs: Any) -> Any:
        return derivative(lambda *ps: f(*ps, 0, xs[-1]), *orders)(*xs[:-1])

    assert_close(name, exact, (*p, x), lambda *_: 1e4, float64, lambda *_: 1e-3)


@pytest.mark.parametrize(
    ("a", "x", "tail"),
    [
        # integrals of the density by mpmath's quadrature, in 40 digits
        (9235321.175875561, 9220287.101227637, 3.716829253311414578954e-07),
        (6311814.2, 6300402.3, 2.747278301535639675065e-06),
        (1e5, 99000.0, 7.574199211747679741846e-04),
    ],
)
def test_gammainc_of_large_parameters(a: float, x: float, tail: float) -> None:
    """Where series and continued fractions take too long."""
    for y in (
        values("gammainc", float64, np.array([a]), np.array([x])),
        OPS["gammainc"].reference(np.array([a]), np.array([x])),
    ):
        np.testing.assert_allclose(y, tail, 1e-12)


EDGES = (0.0, -0.0, 1.0, 0.5, 2.0, -1.0, -1.5, 1e4, 1e-4, INF, -INF, NAN)


@pytest.mark.parametrize(
    "name", [*dict.fromkeys(n.split()[0] for n in UNARY), *BINARY, "gammainc_dx", "betainc_dx"]
)
@pytest.mark.sample(7)
def test_edges_agree_with_the_meaning(name: str) -> None:
    """Poles, zeros, infinities, NaN: as NumPy's meaning has them, signs of infinities included."""
    arity = len(OPS[name].derivatives)
    # Of these two SciPy's values at infinity, and below 0, follow no rule.
    edges = [e for e in EDGES if 0 <= e < INF] if name in ("betaln", "zeta") else EDGES
    grid = np.array(list(itertools.product(edges, repeat=arity)))
    arrays = [np.ascontiguousarray(grid[:, i]) for i in range(arity)]
    found = values(name, float64, *arrays)
    np.testing.assert_allclose(found, OPS[name].reference(*arrays), 1e-10, 1e-290, err_msg=name)


def test_poles() -> None:
    x = np.array([0.0, -0.0, -1.0, -2.0, INF, -INF])
    for name, expected in {
        "gamma": [INF, -INF, NAN, NAN, INF, NAN],
        "lgamma": [INF, INF, INF, INF, INF, INF],
        "digamma": [-INF, INF, NAN, NAN, INF, NAN],
        "trigamma": [INF, INF, INF, INF, 0, NAN],
    }.items():
        np.testing.assert_array_equal(values(name, float64, x), expected, err_msg=name)


def test_a_wrong_digit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = gamma.LGAMMA
    monkeypatch.setattr(gamma, "LGAMMA", (first * (1 + 1e-12), *others))
    x = uniform(1.6, 2.4, 16)
    wrong = [(lambda at, a: gamma.formula(gamma._lgamma_positive)(at, *a), float64)]
    (y,) = Functions(float64, [float64], wrong, 16)(x)
    with mp.workdps(30):
        worst = max(
            error(float(v), mp.loggamma(mpmath.mpf(float(a))), float64)
            for v, a in zip(y, x, strict=True)
        )
    assert worst > 100


SUBNORMAL = np.array([5e-324, -5e-324, 2e-323, 1e-310, -1e-310, 2.0**-1022])


@pytest.mark.parametrize("name", ["gamma", "gammaln", "k0e", "k1e", "erfcinv", "digamma"])
def test_subnormal_arguments_and_their_slopes(name: str) -> None:
    """As the meaning has them; of `gamma` the pole's `1 / x`, of what is below a range NaN."""
    f = getattr(rg.special, name)
    slope = rg.grad(lambda x: rg.sum(f(x)))
    x = rg.tensor(SUBNORMAL)
    with rg.backend("reference"):
        expected = [f(x).numpy(), slope(x).numpy()]
    found = [rg.jit(f)(x).numpy(), rg.jit(slope)(x).numpy()]
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-15)
    if name == "gamma":
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(found[0], 1 / SUBNORMAL)
