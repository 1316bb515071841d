"""The incomplete gamma and beta functions and their derivatives, for any kind of numbers.

The formulas are written once, on a `IncompleteMath` of the numbers at hand: NumPy's arrays here,
registers of a compiler there. Each distribution function is an integral of its density on a
logarithmic scale from `x` away from the bulk, where the density decays to nothing without turning:

    P(a, x) = D int exp(-|a - x| w - x (exp(-w) - 1 + w)) dw,      D = x^a exp(-x) / Gamma(a),

for `x < a`, and likewise with `-w` in place of `w` for `Q(a, x)`, `x >= a`. The integrand is entire
and is integrated to rounding error by Gauss' rule of 12 points in 8 panels, for any parameters.
A derivative in `a` puts the factor `log t - psi(a)` under the integral, and so on for higher ones.
Only where a small `a` makes the decay slow (or `x < 0.1`), `a` is raised by 16 first:

    P(a, x) = sum_{k < 16} x^(a+k) exp(-x) / Gamma(a+k+1) + P(a + 16, x),

a sum of positive terms. `I_x(a, b)` is treated alike, on the scale of `log(t / (1 - t))`.
"""

from retrograd.ops.special.incomplete import beta, gamma, von_mises
from retrograd.ops.special.incomplete.quadrature import FUNCTIONS, IncompleteMath

__all__ = ["FUNCTIONS", "IncompleteMath", "beta", "gamma", "von_mises"]
