"""How a sample of von Mises' distribution moves with the concentration."""

from __future__ import annotations

import math
from typing import Any

from retrograd.ops.special.incomplete.quadrature import (
    IncompleteMath,
    chosen,
    formula_of,
    integrals,
    least,
)


@formula_of("von_mises_slope")
def von_mises_slope(m: IncompleteMath, k: Any, x: Any) -> Any:
    """`-(dF / dk) / (dF / dx)` of the distribution function F of the density
    `exp(k cos x) / (2 pi I_0(k))` on `[-pi, pi]`: what keeps `F(x; k)` as k changes. It is

        `int_x^pi exp(k (cos t - cos x)) (cos t - I_1(k) / I_0(k)) dt`

    for `x >= 0`, and odd in x. The integrand has decayed at `x + pi sqrt(20 / k)`.
    """
    a = abs(x)
    good = (k >= 0.0) & (k < math.inf) & (a <= 4.0)
    u, v = m.choose(good, k, k * 0.0 + 1.0), m.choose(good, a, a * 0.0)
    rest = math.pi - v
    rest = m.choose(rest > 0.0, rest, rest * 0.0)
    positive = m.choose(u > 1e-3, u, u * 0.0 + 1e-3)
    width = least(m, rest, m.sqrt(20.0 / positive) * math.pi)
    lack = 1.0 - m.bessel_ratio(u)

    def point(w: Any) -> tuple[Any, ...]:
        half = m.sin((v + w) * 0.5)
        e = m.exp(-(u * 2.0 * m.sin(v + w * 0.5) * m.sin(w * 0.5)))
        return (e * (lack - half * half * 2.0),)

    (y,) = integrals(m, width, point, 1)
    return chosen(m, good, m.choose(x < 0.0, -y, y))
