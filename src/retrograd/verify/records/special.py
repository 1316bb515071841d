"""Records of the special functions: mpmath's functions, and where they are smooth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from retrograd.lazy_import import need
from retrograd.verify.records.elementwise import in_mp, table
from retrograd.verify.records.record import Record


def derivative(f: Any, *orders: int) -> Callable[..., Any]:
    """A derivative of a function of mpmath's numbers, by differences with many digits."""

    def g(mp: Any, *xs: Any) -> Any:
        with mp.workdps(50):
            return mp.diff(partial(in_mp(f).exact, mp), xs, orders, h=mp.mpf(10) ** -14)

    return g


def lower_gamma(mp: Any, a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def lower_beta(mp: Any, a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def log_beta(mp: Any, a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def inverse_of(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The last argument at which a function has a value, from SciPy's on."""

    def g(mp: Any, *given: Any) -> Any:
        *rest, value = given
        of_scipy = getattr(need("scipy.special", "the record of an inverse"), name)
        near = mp.mpf(float(of_scipy(*map(float, given))))
        ends = near * (1 - mp.mpf(10) ** -8), near * (1 + mp.mpf(10) ** -8)
        return mp.findroot(lambda x: f(mp, *rest, x) - value, ends, solver="anderson")

    return g


UNARY = {
    "gamma": (in_mp("gamma"), [(0.4, 3)]),
    "lgamma": (in_mp(lambda mp, x: mp.log(abs(mp.gamma(x)))), [(0.2, 4)], None, (), False, 8),
    "digamma": (in_mp("digamma"), [(0.3, 4)], None, (), False, 8),
    "trigamma": (in_mp(lambda mp, x: mp.polygamma(1, x)), [(0.3, 4)]),
    "erfcx": in_mp(lambda mp, x: mp.exp(x * x) * mp.erfc(x)),
    "ndtr": in_mp("ncdf"),
    "ndtri": (in_mp(lambda mp, p: mp.sqrt(2) * mp.erfinv(2 * p - 1)), [(0.2, 0.8)]),
    "erfinv": (in_mp("erfinv"), [(-0.9, 0.9)]),
    "erfcinv": (in_mp(lambda mp, x: mp.erfinv(1 - x)), [(0.2, 1.8)]),
    "logit": (in_mp(lambda mp, x: mp.log(x / (1 - x))), [(0.1, 0.9)]),
    "entr": (in_mp(lambda mp, x: -x * mp.log(x)), [(0.2, 3)]),
    "j0": (in_mp(lambda mp, x: mp.besselj(0, x)), [(-9, 9)], None, (), False, 16),
    "j1": (in_mp(lambda mp, x: mp.besselj(1, x)), [(-9, 9)], None, (), False, 16),
    "i0e": (in_mp(lambda mp, x: mp.besseli(0, x) * mp.exp(-abs(x))), [(-3, 3)], None, [0]),
    "i1e": (in_mp(lambda mp, x: mp.besseli(1, x) * mp.exp(-abs(x))), [(-3, 3)], None, [0]),
}
UNARY |= {
    "y0": (in_mp(lambda mp, x: mp.bessely(0, x)), [(0.3, 9)], None, (), False, 16),
    "y1": (in_mp(lambda mp, x: mp.bessely(1, x)), [(0.3, 9)], None, (), False, 16),
    "k0e": (in_mp(lambda mp, x: mp.besselk(0, x) * mp.exp(x)), [(0.3, 5)]),
    "k1e": (in_mp(lambda mp, x: mp.besselk(1, x) * mp.exp(x)), [(0.3, 5)]),
}
HYPERGEOMETRIC_1F1: dict[str, Callable[..., Any] | str] = {
    "hyp1f1": "hyp1f1",
    "hyp1f1_da": derivative("hyp1f1", 1, 0, 0),
    "hyp1f1_db": derivative("hyp1f1", 0, 1, 0),
}
HYPERGEOMETRIC_2F1: dict[str, Callable[..., Any] | str] = {
    "hyp2f1": "hyp2f1",
    "hyp2f1_da": derivative("hyp2f1", 1, 0, 0, 0),
    "hyp2f1_dc": derivative("hyp2f1", 0, 0, 1, 0),
}
BOTH = [(0.3, 2.5)]
SHAPE = [(0.3, 0.9)]
MANY = {
    "zeta": (in_mp("zeta"), [(2.1, 4), (0.4, 3)], (1,)),
    "betaln": (in_mp(log_beta), BOTH, None, (), False, 8),
    "xlogy": (in_mp(lambda mp, a, b: a * mp.log(b)), BOTH),
    "xlog1py": (in_mp(lambda mp, a, b: a * mp.log1p(b)), BOTH),
    "rel_entr": (in_mp(lambda mp, a, b: a * mp.log(a / b)), BOTH),
    # An order that is not whole has no value.
    "bessel_j": (in_mp("besselj"), [(2, 2), (-9, 9)], (1,), (), False, 16),
    "bessel_ie": (
        in_mp(lambda mp, n, x: mp.besseli(n, x) * mp.exp(-abs(x))),
        [(2, 2), (-3, 3)],
        (1,),
        [0],
    ),
    "gammainc": (in_mp(lower_gamma), BOTH),
    "gammaincc": (in_mp(lambda mp, a, x: mp.gammainc(a, x, regularized=True)), BOTH),
    "gammainc_dx": (in_mp(lambda mp, a, x: x ** (a - 1) * mp.exp(-x) / mp.gamma(a)), BOTH),
    # The third derivative in a parameter is not offered.
    "gammainc_da": (in_mp(derivative(lower_gamma, 1, 0)), BOTH, (1,)),
    "gammainc_daa": (in_mp(derivative(lower_gamma, 2, 0)), SHAPE, (1,), (), False, 8),
    "betainc": (in_mp(lower_beta), SHAPE),
    "betainc_dx": (
        in_mp(lambda mp, a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)),
        SHAPE,
    ),
    **{
        f"betainc_d{'a' * i}{'b' * j}": (
            in_mp(derivative(lower_beta, i, j, 0)), SHAPE, (2,), (), False, 8,
        )
        for i, j in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    },
}  # fmt: skip


MANY |= {
    "portable_log": (in_mp("log"), [(0.2, 3)]),
    "portable_exp": (in_mp("exp"), [(-2, 2)]),
    "portable_atan": (in_mp("atan"), [(0.2, 3)]),
    "portable_log_factorial": (
        in_mp(lambda mp, k: mp.loggamma(k + 1)), [(0.2, 3)], None, (), False, 64,
    ),
}  # fmt: skip
# What SciPy computes in compiled programs, too.
MANY |= {
    # SciPy's is 13 ulp off at some of these points.
    "spence": (in_mp(lambda mp, x: mp.polylog(2, 1 - x)), [(0.2, 3)], None, (), False, 16),
    "ellipkm1": (in_mp(lambda mp, p: mp.ellipk(1 - p)), [(0.2, 3)]),
    "ellipe": (in_mp("ellipe"), [(-2.0, 0.8)]),
    "exp1": (in_mp("e1"), [(0.2, 3)]),
    "expi": (in_mp("ei"), [(0.6, 3.0)]),
    "expn": (in_mp(lambda mp, n, x: mp.expint(int(n), x)), [(2, 2), (0.3, 3)], (1,)),
    "yn": (in_mp(lambda mp, n, x: mp.bessely(int(n), x)), [(2, 2), (0.3, 9)], (1,), (), False, 64),
    # Where it is steeper, differences are not good enough.
    "gammaincinv": (
        in_mp(inverse_of(lower_gamma, "gammaincinv")),
        [(0.3, 0.9), (0.3, 0.7)], None, (), False, 64,
    ),
    "gammainccinv": (
        in_mp(inverse_of(lambda mp, a, x: 1 - lower_gamma(mp, a, x), "gammainccinv")),
        SHAPE, None, (), False, 64,
    ),
    "betaincinv": (in_mp(inverse_of(lower_beta, "betaincinv")), SHAPE, None, (), False, 64),
    "betainccinv": (
        in_mp(inverse_of(lambda mp, a, b, x: 1 - lower_beta(mp, a, b, x), "betainccinv")),
        SHAPE, None, (), False, 64,
    ),
    **{
        name: (in_mp(f), [(0.5, 2), (1, 2), (-1, 2)], (2,), (), False, 64)
        for name, f in HYPERGEOMETRIC_1F1.items()
    },
    **{
        name: (in_mp(f), [(0.5, 2), (1, 2), (1, 2), (-0.8, 0.8)], (3,), (), False, 64)
        for name, f in HYPERGEOMETRIC_2F1.items()
    },
    "lpmv": (
        in_mp(lambda mp, m, v, x: mp.legenp(v, int(m), x)), [(1, 1), (2, 3), (-0.8, 0.8)], (2,), (),
        False, 256,
    ),
}  # fmt: skip
# Samples as functions of the parameters: no differences tell these derivatives.
IMPLICIT = {
    "implicit_exp": (lambda a, z: z, BOTH, ()),
    "implicit_gamma": (lambda a, z: z, BOTH, ()),
    "implicit_log_gamma": (lambda a, z: z, BOTH, ()),
    "implicit_beta": (lambda a, b, z: z, SHAPE, ()),
    "implicit_von_mises": (lambda k, z: z, BOTH, ()),
}


def von_mises_slope(mp: Any, k: Any, x: Any) -> Any:
    """By the integral of the density from -pi to x."""
    ratio = mp.besseli(1, k) / mp.besseli(0, k)
    below = mp.quad(
        lambda t: mp.exp(k * (mp.cos(t) - mp.cos(x))) * (mp.cos(t) - ratio), [-mp.pi, x]
    )
    return -below


MANY["von_mises_slope"] = (in_mp(von_mises_slope), BOTH, (1,), (), False, 8)
# Inputs with a derivative that is NaN or, in a parameter of a derivative, has none itself.
UNCHECKED = {
    "zeta": (0,),
    "von_mises_slope": (0,),
    **{name: (0, 1) if name == "implicit_beta" else (0,) for name in IMPLICIT},
    "gammainc_da": (0,),
    **dict.fromkeys(("expn", "yn"), (0,)),
    # The second derivatives in these are NaN; the first have tests of their own.
    **dict.fromkeys(("hyp1f1", "hyp1f1_da", "hyp1f1_db", "lpmv"), (0, 1)),
    **dict.fromkeys(("hyp2f1", "hyp2f1_da", "hyp2f1_dc"), (0, 1, 2)),
    "gammainc_daa": (0,),
    **{f"betainc_d{order}": (0, 1) for order in ("a", "b", "aa", "ab", "bb")},
}


def records() -> list[Record]:
    return [
        replace(record, unchecked=UNCHECKED.get(record.name, ()))
        for record in [*table(UNARY), *table(MANY), *table(IMPLICIT)]
    ]
