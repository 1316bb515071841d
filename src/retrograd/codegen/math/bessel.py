"""Bessel functions of the first kind, of whole order, in double precision: `J_n(x)`, and
`exp(-|x|) I_n(x)`.

`J_0` and `J_1` are polynomials in `x^2` below 8 and, from there on, a modulus and a phase, with
polynomials in `64 / x^2`; higher orders come by recurrence where it is stable, from the power
series where it is not. The error of `J_n` is relative to the height of its waves. Coefficients by
interpolation at Chebyshev's nodes, right to 2^-53 of that height.
"""

from __future__ import annotations

import math

from retrograd.codegen.math import trigonometric
from retrograd.codegen.math.double_precision import called, exp, is_odd, loop, sin, special
from retrograd.codegen.math.term import Term, at_least, at_most, choose, formula, polynomial
from retrograd.codegen.op_builder import emits
from retrograd.ops.special import functions

# fmt: off
# J_0(x) and J_1(x) / x in x^2 - 32
_J0 = (
    0.04582966485981377, 0.029071913977995537, -0.0006332707842648278, -2.4660913319997774e-05,
    9.902758227765285e-07, -1.512372630378908e-08, 1.3596271031311967e-10, -8.286651750930346e-13,
    3.690801339999316e-15, -1.2606333327559718e-17, 3.417106407378802e-20, -7.543269190023498e-23,
    1.383971831148643e-25, -2.1454755481295115e-28, 2.8489714847285236e-31, -3.278202570151774e-34,
    3.3011222869440757e-37, -2.9342364379575714e-40, 2.3248864649132e-43, -1.6446550949462486e-46,
)
_J1 = (
    -0.05814382795599107, 0.002533083137059311, 0.00014796547991998666, -7.922206582212228e-06,
    1.512372630378908e-07, -1.6315525237574362e-09, 1.1601312451302484e-11, -5.905282143998905e-14,
    2.269139998960749e-16, -6.834212814757637e-19, 1.6595192218051714e-21, -3.321532394750189e-24,
    5.5782364251332324e-27, -7.977120164625296e-30, 9.83460771444195e-33, -1.0563586922105821e-35,
    9.976401495675052e-39, -8.370664549724842e-42, 6.250277554065413e-45,
)
# P and x Q of J_n(x) = sqrt(2 / (pi x)) (P cos(x - n pi / 2 - pi / 4) - Q sin(...)), in 64 / x^2
P0 = (
    1.0, -0.0010986328124996737, 2.738088367210925e-05, -2.183919034228364e-06,
    3.6203309521173534e-07, -1.0239239991285941e-07, 4.3812698516604044e-08,
    -2.5395434404600186e-08, 1.7236203631456423e-08, -1.1558696461579817e-08, 6.567427583744966e-09,
    -2.7665349658558268e-09, 7.407863558784998e-10, -9.29540244708693e-11,
)
Q0 = (
    -0.12499999999999999, 0.0011444091796844857, -5.544628928009036e-05, 6.590752087383666e-06,
    -1.4531181940492296e-06, 5.128257431965574e-07, -2.619389801844378e-07, 1.738598639373869e-07,
    -1.294758179775837e-07, 9.196525551455919e-08, -5.40798879623974e-08, 2.326329561535314e-08,
    -6.312757842328772e-09, 7.992208185039611e-10,
)
P1 = (
    1.0, 0.0018310546874996559, -3.5203993297701904e-05, 2.580995295001314e-06,
    -4.103048089140431e-07, 1.1317408863913823e-07, -4.763576237721032e-08, 2.7310862271339776e-08,
    -1.8410150403133396e-08, 1.229719716702473e-08, -6.971334048415056e-09, 2.932813230777702e-09,
    -7.846707061002526e-10, 9.840821678448612e-11,
)
Q1 = (
    0.375, -0.0016021728515593268, 6.776768693173265e-05, -7.6047144829333516e-06,
    1.6240781447013697e-06, -5.61694136836811e-07, 2.8300006796479155e-07, -1.8612719875479017e-07,
    1.3782740725415923e-07, -9.757592676638466e-08, 5.7271028826226886e-08, -2.4608376619829315e-08,
    6.67306043217023e-09, -8.444427200072099e-10,
)
# fmt: on
HIGHEST = 31  # order; only derivatives of J_0, J_1, I_0 and I_1 ask for more than the first
_cos = called("cos", trigonometric.cos)


def far(a: Term) -> tuple[Term, Term, Term, Term]:
    """The sum of sine and cosine, their difference, `1 / sqrt(pi x)`, `64 / x^2`."""
    s, c = sin(a), _cos(a)
    inverse = 1.0 / a
    return s + c, s - c, (inverse * (1 / math.pi)).sqrt(), inverse * inverse * 64.0


def _j0(x: Term) -> Term:
    a = abs(x)
    near = at_most(a, 8.0)
    close = at_most(polynomial(near * near - 32.0, _J0), 1.0)  # the sum at 0 is rounded up
    b = at_least(a, 8.0)
    total, excess, size, z = far(b)
    wave = size * (polynomial(z, P0) * total - polynomial(z, Q0) * (excess / b))
    return choose(a < 8.0, close, choose(a.equals(math.inf), x.like(0), wave))


def _j1(x: Term) -> Term:
    a = abs(x)
    near = at_most(a, 8.0)
    close = near * polynomial(near * near - 32.0, _J1)
    b = at_least(a, 8.0)
    total, excess, size, z = far(b)
    wave = size * (polynomial(z, P1) * excess + polynomial(z, Q1) * (total / b))
    wave = choose(a.equals(math.inf), x.like(0), wave)
    y = choose(a < 8.0, close, wave)
    return choose(x < 0.0, -y, choose(x.equals(0.0), x, y))


call_j0 = called("j0", formula(_j0))
call_j1 = called("j1", formula(_j1))


def _leading(n: Term, half: Term) -> Term:
    """`half^n / n!`"""

    def step(k: Term, term: Term) -> tuple[Term, Term]:
        return k + 1.0, choose(k <= n, term * half / k, term)

    _, term = loop(HIGHEST, step, n.like(1), n.like(1))
    return term


def _power_series(n: Term, z: Term, terms: int, first: Term) -> Term:
    """`first * sum_k z^k / (k! (n + 1) ... (n + k))`"""

    def step(k: Term, term: Term, total: Term) -> tuple[Term, Term, Term]:
        term = term * z / (k * (k + n))
        return k + 1.0, term, total + term

    _, _, total = loop(terms, step, n.like(1), first, first)
    return total


def _bessel_j(n: Term, x: Term) -> Term:
    m, a = abs(n), abs(x)
    small = a < m
    b = choose(small, a, a.like(1))
    series = _power_series(m, b * b * -0.25, 32, _leading(m, b * 0.5))

    def step(k: Term, before: Term, last: Term) -> tuple[Term, Term, Term]:
        more = (k + k) / a * last - before
        on = k < m
        return k + 1.0, choose(on, last, before), choose(on, more, last)

    first = call_j0(a)
    _, _, high = loop(HIGHEST - 1, step, n.like(1), first, call_j1(a))
    y = choose(small, series, choose(m.equals(0.0), first, high))
    y = choose(a.equals(math.inf), x.like(0), y)
    flip = is_odd(m) & ((x < 0.0) ^ (n < 0.0))
    return _checked(choose(flip, -y, y), m)


def _checked(y: Term, m: Term) -> Term:
    """NaN for orders that are not whole or too high."""
    good = m.equals(m.intrinsic("trunc")) & (m <= float(HIGHEST))
    return choose(good, y, y.like(math.nan))


def _bessel_ie(n: Term, x: Term) -> Term:
    """The power series, in which nothing cancels, below 30; then Hankel's asymptotic one."""
    m, a = abs(n), abs(x)
    near = at_most(a, 30.0)
    close = _power_series(m, near * near * 0.25, 52, _leading(m, near * 0.5)) * exp(-near)
    eighth = 0.125 / at_least(a, 30.0)
    four = m * m * 4.0

    def step(k: Term, term: Term, total: Term) -> tuple[Term, Term, Term]:
        odd = k + k - 1.0
        term = -(term * ((four - odd * odd) * eighth) / k)
        return k + 1.0, term, total + term

    _, _, total = loop(22, step, n.like(1), n.like(1), n.like(1))
    far = total * (eighth * (4 / math.pi)).sqrt()
    y = choose(a < 30.0, close, far)
    y = choose(is_odd(m) & (x < 0.0), -y, y)
    return _checked(choose(x.is_nan(), x, y), m)


_call_ie = called("bessel_ie", formula(lambda n, x: _bessel_ie(n, x)))


def unit_ratio(k: Term) -> Term:
    """`I_1(k) / I_0(k)`"""
    return _call_ie(k.like(1), k) / _call_ie(k.like(0), k)


j0 = emits(functions.j0)(special("bessel_j0", _j0))
j1 = emits(functions.j1)(special("bessel_j1", _j1))
bessel_j = emits(functions.bessel_j)(special("bessel_jn", _bessel_j))
bessel_ie = emits(functions.bessel_ie)(special("bessel_ien", _bessel_ie))
i0e = emits(functions.i0e)(special("bessel_i0e", lambda x: _bessel_ie(x.like(0), x)))
i1e = emits(functions.i1e)(special("bessel_i1e", lambda x: _bessel_ie(x.like(1), x)))
