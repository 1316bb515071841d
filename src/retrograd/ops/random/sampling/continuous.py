"""Samples of continuous distributions from a key, in double precision.

Rejection is bounded: each sample is the first of so many proposals that is accepted, and that none
is has a probability below 1e-15.
"""

from __future__ import annotations

import math
from typing import Any

from retrograd.ir import float64
from retrograd.ops.random.sampling.normal import PPND16_TERMS, normal, quantile
from retrograd.ops.random.sampling.numbers import SampleMath
from retrograd.ops.special.asymptotic_series import PPND16

PROPOSALS = 32  # acceptance is at least 0.66
OF_GAMMA = 12  # proposals, which are accepted with probability 0.95 and more


def keys(m: SampleMath, key: Any, count: int) -> list[Any]:
    """Independent keys made from one."""
    return m.rows(m.bits(key, (count, 2)))


def unit(m: SampleMath, key: Any, shape: Any) -> Any:
    """Uniform on odd multiples of 2**-53 in (0, 1)."""
    high, low = (m.cast(m.right(x, 6), float64) for x in m.rows(m.bits(key, (2, *shape))))
    return ((high * 2.0**26 + low) + 0.5) * 2.0**-52


def minus_log(m: SampleMath, x: Any) -> Any:
    return -m.log(x)


def _nan_unless(m: SampleMath, c: Any, x: Any) -> Any:
    """x where the parameters are in their range, NaN elsewhere."""
    return m.choose(c, x, math.nan)


# -- by inversion --------------------------------------------------------------------------------
def exponential(m: SampleMath, key: Any, shape: Any) -> Any:
    return minus_log(m, unit(m, key, shape))


def laplace(m: SampleMath, key: Any, shape: Any) -> Any:
    q = unit(m, key, shape) - 0.5
    size = minus_log(m, 1.0 - 2.0 * m.abs(q))
    return m.choose(q < 0, -size, size)


def logistic(m: SampleMath, key: Any, shape: Any) -> Any:
    u = unit(m, key, shape)
    return minus_log(m, 1.0 - u) - minus_log(m, u)


def gumbel(m: SampleMath, key: Any, shape: Any) -> Any:
    return -m.log(exponential(m, key, shape))


def cauchy(m: SampleMath, key: Any, shape: Any) -> Any:
    """The quotient of two normal numbers."""
    a, b = (normal(m, k, shape) for k in keys(m, key, 2))
    return a / b


def truncated_normal(m: SampleMath, key: Any, shape: Any, low: float, high: float) -> Any:
    """Between two bounds, on the side of the tail."""
    mirrored = low > 0
    a, b = (-high, -low) if mirrored else (low, high)
    below, above = (0.5 * math.erfc(-x / math.sqrt(2)) for x in (a, b))
    p = below + unit(m, key, shape) * (above - below)
    tail = -m.log(m.choose(p < 0.5, p, 1.0 - p))
    z = m.clamp(quantile(m, p - 0.5, PPND16, PPND16_TERMS, tail), a, b)
    return -z if mirrored else z


# -- by rejection --------------------------------------------------------------------------------
def _gamma(m: SampleMath, key: Any, shape: Any, a: Any) -> tuple[Any, Any, Any]:
    """Gamma samples by G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
    variables", ACM TOMS 26 (2000), as `d v exp(boost)`; gives `(d, v, boost)`."""
    small = a < 1.0
    raised = m.choose(a > 0.0, m.choose(small, a + 1.0, a), 1.0)
    d = raised - 1 / 3
    c = 1.0 / m.sqrt(9.0 * d)
    k = keys(m, key, 3)
    x = normal(m, k[0], (OF_GAMMA, *shape))
    u = unit(m, k[1], (OF_GAMMA, *shape))
    t = 1.0 + m.several(c, OF_GAMMA) * x
    inside = t > 0.0
    v = m.choose(inside, t * t * t, 1.0)
    wide = m.several(d, OF_GAMMA)
    bound = 0.5 * x * x + wide * (1.0 - v + m.log(v))
    v = m.first(v, inside & (-minus_log(m, u) < bound))
    boost = minus_log(m, unit(m, k[2], shape)) / m.choose(small, a, 1.0)
    return d, v, m.choose(small, -boost, 0.0)


def gamma(m: SampleMath, key: Any, shape: Any, a: Any) -> Any:
    d, v, boost = _gamma(m, key, shape, a)
    return _nan_unless(m, a > 0.0, d * v * m.exp(boost))


def log_gamma(m: SampleMath, key: Any, shape: Any, a: Any) -> Any:
    """Logarithms of gamma samples, which may be smaller than a number can be."""
    d, v, boost = _gamma(m, key, shape, a)
    return _nan_unless(m, a > 0.0, m.log(d) + m.log(v) + boost)


def beta(m: SampleMath, key: Any, shape: Any, a: Any, b: Any) -> Any:
    """`X / (X + Y)` of gamma samples, in logarithms."""
    one, two = keys(m, key, 2)
    gap = log_gamma(m, two, shape, b) - log_gamma(m, one, shape, a)
    e = m.exp(-m.abs(gap))
    return m.choose(gap > 0, e, 1.0) / (1.0 + e)


def von_mises(m: SampleMath, key: Any, shape: Any, k: Any) -> Any:
    """By D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied
    Statistics 28 (1979)."""
    every = (PROPOSALS, *shape)
    kappa = m.max(k, 1e-6)
    tau = 1.0 + m.sqrt(1.0 + 4.0 * kappa * kappa)
    rho = (tau - m.sqrt(2.0 * tau)) / (2.0 * kappa)
    r = m.several((1.0 + rho * rho) / (2.0 * rho), PROPOSALS)
    k1, k2, k3, k4 = keys(m, key, 4)
    a, b = (normal(m, j, every) for j in (k1, k2))
    z = a / m.sqrt(a * a + b * b)  # the cosine of a uniform angle
    f = (1.0 + r * z) / (r + z)
    c = m.several(kappa, PROPOSALS) * (r - f)
    u = unit(m, k3, every)
    accepted = (c * (2.0 - c) > u) | (m.log(c / u) + 1.0 > c)
    f = m.clamp(m.first(f, accepted), -1.0, 1.0)
    angle = 2.0 * m.atan(m.sqrt((1.0 - f) / (1.0 + f + 2.0**-60)))
    angle = m.choose(unit(m, k4, shape) < 0.5, -angle, angle)
    return _nan_unless(m, k >= 0.0, angle)
