"""The gamma function and what belongs to it, in double precision.

`Gamma` and its logarithm are polynomials in `t`, `|t| <= 1/2`, of `2 + t`, from which the
recurrence leads to the other arguments below 10; from there on Stirling's series. The digamma
function is a polynomial on [1, 2] times the distance from its zero. Negative arguments are
reflected. Coefficients by interpolation at Chebyshev's nodes, with the relative error noted.
"""

from __future__ import annotations

import math

from retrograd.codegen.math.double_precision import (
    LOG_2PI,
    called,
    cotangent_of_turn,
    exp,
    is_odd,
    log,
    log1p,
    loop,
    pow,
    sine_of_turn,
    special,
    whole,
)
from retrograd.codegen.math.term import Term, at_most, choose, formula, polynomial
from retrograd.codegen.op_builder import emits
from retrograd.ir import int64
from retrograd.ops.special import functions
from retrograd.ops.special.asymptotic_series import DIGAMMA_SERIES, STIRLING_SERIES, ZETA_SERIES

# fmt: off
# log(Gamma(2 + t)) / t, |t| <= 1/2, to 2^-53.7
LGAMMA = (
    0.42278433509846713, 0.32246703342411326, -0.0673523010531981, 0.02058080842778038,
    -0.0073855510286719986, 0.002890510331034267, -0.0011927539118428156, 0.0005096695154115458,
    -0.00022315475400520507, 9.945767355819498e-05, -4.49263133791557e-05, 2.0505590755833454e-05,
    -9.438715099211532e-06, 4.38470440459836e-06, -2.0439048107029907e-06, 9.200527894968101e-07,
    -4.3252393445604814e-07, 2.78740805211359e-07, -1.3219945666117874e-07,
)
# Gamma(2 + t), |t| <= 1/2, to 2^-55
_GAMMA = (
    1.0, 0.4227843350984668, 0.41184033042643986, 0.08157691924717193, 0.07424901075347107,
    -0.0002669820747604432, 0.01115404572113896, -0.0028526456294803125, 0.0021039332448517375,
    -0.0009195771393381067, 0.0004903901012192666, -0.0002409081678851826, 0.00012165717113737426,
    -6.099437734759249e-05, 3.0554308764876926e-05, -1.4518030694390135e-05, 7.2632956346064904e-06,
    -5.167425827999643e-06, 2.584210735300929e-06,
)
# psi(1.5 + t) / (1.5 + t - root), |t| <= 1/2, to 2^-53.6
_DIGAMMA = (
    0.951055876031833, -0.4236274212814605, 0.2405424842407742, -0.14840492305390884,
    0.09498872445494122, -0.061922133273064534, 0.04076083381242074, -0.02697579675613825,
    0.0179072524394512, -0.011908218001568644, 0.007926944646403797, -0.005279964873257405,
    0.003519006401502276, -0.002345267632540769, 0.0015566317474486838, -0.0010376374098418604,
    0.0007233266279287554, -0.0004821990530566789, 0.0002272331660987376, -0.00015148586836773365,
    0.00025968482126430747, -0.00017312261802727394,
)
# fmt: on
_ROOT = (1.4616321449683622, 9.549995429965697e-17)  # of digamma, a sum of two doubles


def stirling_far(u: Term) -> Term:
    """What Stirling's formula lacks of `log(Gamma(u))`, from 10 on."""
    inverse = 1.0 / u
    return inverse * polynomial(inverse * inverse, STIRLING_SERIES)


def _steps_to_two(u: Term) -> tuple[Term, Term, Term, Term]:
    """`t` and `p`, `q` with `Gamma(u) = Gamma(2 + t) p / q`, for `0 < u < 10`; whether `q` is 1."""
    small, below = u < 0.5, u < 1.5
    t, p = u - 2.0, u.like(1)
    for j in range(1, 9):
        step = u >= j + 1.5
        p = choose(step, p * (u - float(j)), p)
        t = choose(step, t - 1.0, t)
    t = choose(small, u, choose(below, u - 1.0, t))
    q = choose(small, u * (u + 1.0), u)
    return t, p, choose(below, q, u.like(1)), ~below


def _lgamma_positive(u: Term) -> Term:
    near = at_most(u, 10.0)
    t, p, q, above = _steps_to_two(near)
    far = u >= 10.0
    logarithm = log(choose(far, u, choose(above, p, q)))
    close = choose(
        above, t * polynomial(t, LGAMMA) + logarithm, t * polynomial(t, LGAMMA) - logarithm
    )
    rest = stirling_far(u) + (LOG_2PI / 2 - 0.5)
    return choose(far, (u - 0.5) * (logarithm - 1.0) + rest, close)


lgamma_positive = called("lgamma_positive", formula(_lgamma_positive))


def _lgamma(x: Term) -> Term:
    """`log |Gamma(x)|`; below zero `-log(|sin(pi x)| / pi) - log(Gamma(1 + |x|))`."""
    negative = x < 0.0
    a = abs(x)
    y = lgamma_positive(choose(negative, a + 1.0, a))
    reflected = -log(sine_of_turn(a) / math.pi) - y  # pi / sine would overflow next to 0
    y = choose(negative, choose(a < 2.0**52, reflected, x.like(math.inf)), y)
    y = choose(a.equals(math.inf), x.like(math.inf), y)
    return choose(x.equals(0.0), x.like(math.inf), y)


def _gamma_positive(u: Term) -> Term:
    t, p, q, _ = _steps_to_two(at_most(u, 10.0))
    near = polynomial(t, _GAMMA) * p / q
    root = pow(u, u * 0.5)  # the exponent is exact, as must be those that follow
    big = root * (exp(-u) * exp(stirling_far(u)) * (2 * math.pi / u).sqrt()) * root
    return choose(u < 10.0, near, choose(u < 172.0, big, u.like(math.inf)))


def _gamma(x: Term) -> Term:
    """Below zero `pi / (sin(pi x) a Gamma(a))` of `a = -x`; near zero, where these overflow, the
    first term at the pole, `1 / x`; NaN at the other poles."""
    negative = x < 0.0
    a = abs(x)
    y = _gamma_positive(a)
    turn = sine_of_turn(a)
    odd = is_odd(x.intrinsic("floor"))
    reflected = math.pi / turn / y / a
    reflected = choose(odd, -reflected, reflected)
    reflected = choose(turn.equals(0.0), x.like(math.nan), reflected)
    y = choose(negative, reflected, y)
    y = choose(x.equals(-math.inf) | x.is_nan(), x.like(math.nan), y)
    return choose(a < 2.0**-60, 1.0 / x, y)


def _digamma_positive(u: Term) -> Term:
    """For `u > 0`."""
    near = at_most(u, 10.0)
    small = near < 1.0
    z = choose(small, near + 1.0, near)
    above, below = choose(small, u.like(-1), u.like(0)), choose(small, near, u.like(1))
    for j in range(1, 9):
        step = near >= j + 1.0
        f = near - float(j)
        above = choose(step, above * f + below, above)
        below = choose(step, below * f, below)
        z = choose(step, z - 1.0, z)
    close = ((z - _ROOT[0]) - _ROOT[1]) * polynomial(z - 1.5, _DIGAMMA) + above / below
    inverse = 1.0 / u
    far = log(u) - inverse * 0.5 - inverse * inverse * polynomial(inverse * inverse, DIGAMMA_SERIES)
    return choose(u < 10.0, close, far)


digamma_positive = called("digamma_positive", formula(_digamma_positive))


def _digamma(x: Term) -> Term:
    """Below zero `psi(1 - x) - pi cot(pi x)`; NaN at the poles but for zero."""
    negative = x < 0.0
    y = digamma_positive(choose(negative, 1.0 - x, x))
    turn = cotangent_of_turn(choose(negative, x, x.like(0.5)))
    turn = choose((x - whole(x)).equals(0.0), x.like(math.nan), turn)
    y = choose(negative, y - math.pi * turn, y)
    return choose(x.equals(0.0), -1.0 / x, y)


def _digamma_rest(a: Term) -> Term:
    """`log(a) - psi(a)` for `a > 0`"""
    inverse = 1.0 / a
    far = inverse * 0.5 + inverse * inverse * polynomial(inverse * inverse, DIGAMMA_SERIES)
    return choose(a < 10.0, log(a) - digamma_positive(a), far)


digamma_rest = called("digamma_rest", formula(_digamma_rest))


def _stirling(a: Term) -> Term:
    """`log(Gamma(a)) - ((a - 1/2) log(a) - a + log(2 pi) / 2)` for `a > 0`"""
    near = lgamma_positive(a) - ((a - 0.5) * log(a) - a + LOG_2PI / 2)
    return choose(a < 10.0, near, stirling_far(a))


stirling = called("stirling", formula(_stirling))


def _trigamma_positive(u: Term) -> Term:
    """Ten terms of the sum, and the series from there; for `u > 0`."""
    low = u < 10.0

    def step(k: Term, total: Term) -> tuple[Term, Term]:
        return k + 1.0, total + 1.0 / (k * k)

    top, total = loop(10, step, u, u.like(0))
    a = choose(low, top, u)
    inverse = 1.0 / a
    z = inverse * inverse
    coefficients = [2 * k * c for k, c in enumerate(DIGAMMA_SERIES, 1)]
    far = inverse + z * 0.5 + z * inverse * polynomial(z, coefficients)
    return choose(low, total + far, far)


trigamma_positive = called("trigamma_positive", formula(_trigamma_positive))


def _trigamma(x: Term) -> Term:
    """Below zero `(pi / sin(pi x))^2 - psi'(1 - x)`."""
    negative = x < 0.0
    y = trigamma_positive(choose(negative, 1.0 - x, x))
    turn = math.pi / sine_of_turn(x)
    y = choose(negative, turn * turn - y, y)
    return choose(x.equals(0.0), x.like(math.inf), y)


def _zeta_positive(s: Term, q: Term) -> Term:
    """Nine terms, and the formula of Euler and Maclaurin with twelve terms from there."""

    def step(k: Term, total: Term) -> tuple[Term, Term]:
        return k + 1.0, total + pow(k, -s)

    a, total = loop(9, step, q, q.like(0))
    first = pow(a, 1.0 - s)
    inverse = 1.0 / a
    total = total + first / (s - 1.0) + first * inverse * 0.5
    s = at_most(s, 1e6)  # beyond, there is nothing left of `first`
    factor = first * inverse * inverse * s
    for j, c in enumerate(ZETA_SERIES):
        total = total + factor * c
        factor = factor * ((s + (2 * j + 1.0)) * inverse) * ((s + (2 * j + 2.0)) * inverse)
    return total


zeta_positive = called(
    "zeta_positive", lambda at, s, q: _zeta_positive(Term(at, s), Term(at, q)).name
)


def _zeta(s: Term, q: Term) -> Term:
    """For negative `q = f - n` and whole `s`, with positive arguments only:
    `zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q))`."""
    negative = q < 0.0
    f = q - q.intrinsic("floor")
    first = choose(negative, f, q)
    odd = is_odd(s)
    sign = choose(negative, choose(odd, s.like(-1), s.like(1)), s.like(0))
    index = s.at.with_dtype(int64, 1)
    count = Term(index, index.select(negative.anywhere(), index.number(3), index.number(1)))

    def step(k: Term, total: Term) -> tuple[Term, Term]:
        one, two = k.equals(1.0), k.equals(2.0)
        argument = choose(one, 1.0 - f, choose(two, 1.0 - q, first))
        factor = choose(one, sign, choose(two, -sign, s.like(1)))
        return k + 1.0, total + choose(
            factor.equals(0.0), s.like(0), factor * zeta_positive(s, argument)
        )

    _, y = loop(count, step, s.like(0), s.like(0))
    fraction = negative & ~s.equals(s.intrinsic("trunc"))
    y = choose(fraction, s.like(math.nan), y)
    pole = (q <= 0.0) & q.equals(q.intrinsic("trunc"))
    y = choose(pole | s.equals(1.0), s.like(math.inf), y)
    y = choose(q.equals(math.inf) & (s > 1.0), s.like(0), y)
    undefined = (s < 1.0) | s.is_nan() | q.is_nan() | q.equals(-math.inf)
    return choose(undefined, s.like(math.nan), y)


def _betaln(a: Term, b: Term) -> Term:
    """Of positive arguments by Stirling's formula, where no large numbers cancel; at poles as the
    meaning of the operation says."""
    low, high = choose(a < b, a, b), choose(a < b, b, a)
    whole_low = low.intrinsic("floor").equals(low)
    whole_high = high.intrinsic("floor").equals(high)
    pole = (whole_low & (low <= 0.0)) | (whole_high & (high <= 0.0))
    finite = pole & (high > 0.0) & whole_high & (low + high <= 0.0)
    a, b = choose(finite, 1.0 - (low + high), a), choose(finite, high, b)
    low, high = choose(a < b, a, b), choose(a < b, b, a)
    total = low + high
    good = (low > 0.0) & (total < math.inf)
    u, v = choose(good, low, a.like(1)), choose(good, high, a.like(1))
    c = u + v
    y = (0.5 - v) * log1p(u / v) + (u - 0.5) * log(u) - u * log(c)
    y = y + LOG_2PI / 2 + ((stirling(u) - stirling(c)) + stirling(v))
    w = lgamma_any(a) + lgamma_any(b) - lgamma_any(a + b)
    w = choose(total.equals(math.inf) & (low > 0.0), a.like(-math.inf), w)
    return choose(good, y, choose(pole & ~finite, a.like(math.inf), w))


lgamma_any = called("lgamma_any", formula(_lgamma))

gamma = emits(functions.gamma)(special("gamma", _gamma))
lgamma = emits(functions.lgamma)(special("lgamma", _lgamma))
digamma = emits(functions.digamma)(special("digamma", _digamma))
trigamma = emits(functions.trigamma)(special("trigamma", _trigamma))
zeta = emits(functions.zeta)(special("zeta", _zeta))
betaln = emits(functions.betaln)(special("betaln", _betaln))
