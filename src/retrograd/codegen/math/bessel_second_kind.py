"""Bessel functions of the second kind, of orders 0 and 1, in double precision: `Y_n(x)`, and
`exp(x) K_n(x)`; NaN below 0.

Near 0 they are what is regular in them, a polynomial in `x^2`, besides `log(x)` times the function
of the first kind, and `1 / x`. `Y_n` has the modulus and phase of `J_n` from 8 on, and its error is
relative to the height of the waves; `exp(x) K_n(x)` is `1 / sqrt(x)` times polynomials in `1 / x`
from 1 on. Coefficients by interpolation at Chebyshev's nodes, right to 2^-53.
"""

from __future__ import annotations

import math

from retrograd.codegen.math.bessel import P0, P1, Q0, Q1, call_j0, call_j1, far
from retrograd.codegen.math.double_precision import exp, log, special
from retrograd.codegen.math.term import Term, at_least, at_most, choose, polynomial
from retrograd.codegen.op_builder import emits
from retrograd.ops.special import functions

# fmt: off
# Y_0(x) - 2 / pi log(x) J_0(x) in x^2 - 32
_Y0 = (
    -0.382250654459425, -0.025888621573764335, 0.0016084926551509244, 4.398386343170911e-06,
    -1.0276295984474178e-06, 2.003243799040235e-08, -2.0392003558735948e-10, 1.3494586944972137e-12,
    -6.389874267616478e-15, 2.291240565611618e-17, -6.46553200529898e-20, 1.4769626171421434e-22,
    -2.7916105578149077e-25, 4.442807135683514e-28, -6.039735790955599e-31, 7.0987283422372375e-34,
    -7.31236917708974e-37, 6.611400334684244e-40,
)
# (Y_1(x) - 2 / pi (log(x) J_1(x) - 1 / x)) / x in x^2 - 32
_Y1 = (
    0.07075985882118005, -0.007605544712247848, 2.2819894258782696e-05, 7.173830934652635e-06,
    -1.8730010852747157e-07, 2.3409089214332514e-09, -1.8280704350319794e-11, 9.96075902343299e-14,
    -4.0364952241545176e-16, 1.2697208298747e-18, -3.1983305093997487e-21, 6.6071954344689164e-24,
    -1.1408536763721334e-26, 1.6722991560795548e-29, -2.1171854779924692e-32,
    2.3182673376008238e-35,
)
# K_0(x) + log(x) I_0(x), (K_1(x) - 1 / x - log(x) I_1(x)) / x, I_0(x), I_1(x) / x in x^2
_K0 = (
    0.11593151565841245, 0.2789828789146032, 0.025248929932160484, 0.0008460350907258961,
    1.4914719229859212e-05, 1.6271070900264265e-07, 1.2082515207624246e-09, 6.615903551644314e-12,
)
_K1 = (
    -0.3079657578292062, -0.08537071972865079, -0.004642182766471435, -0.00011253607036730547,
    -1.5592887662774348e-06, -1.403017207152258e-08, -8.870907975584019e-11,
    -4.2224747994537033e-13,
)
_I0 = (
    1.0, 0.25000000000000006, 0.015624999999999221, 0.00043402777778401143, 6.781684003298254e-06,
    6.781689246632508e-08, 4.708886739799705e-10, 2.4406278948541674e-12,
)
_I1 = (
    0.5, 0.06249999999999818, 0.002604166666695756, 5.425347204774747e-05, 6.781689009605557e-07,
    5.6506735279544e-09, 3.4168816194609333e-11,
)
# exp(x) sqrt(x) K_n(x) in 1 / x - 5 / 8 and, from 4 on, in 1 / x - 1 / 8
_K0_MIDDLE = (
    1.1775638711923546, -0.09714204315890183, 0.027290460759489373, -0.01153900788386223,
    0.006076267997307353, -0.0036841801470920577, 0.002468523260730544, -0.0017834280803840188,
    0.0013672050088896813, -0.0010998962361504184, 0.0009213887765994691, -0.0007984090754932173,
    0.0007077157762285588, -0.0006472677300963426, 0.0006531298203472034, -0.0006285253329198393,
    0.00032815311037023885, -0.0003081274385152981, 0.001256111665194393, -0.0013041542159053941,
)
_K0_FAR = (
    1.2349563891012865, -0.13809320599125596, 0.0630597185603228, -0.04894804610235228,
    0.05172340949006282, -0.06741550921950974, 0.10261992759957597, -0.17630703744212023,
    0.3340557249282789, -0.6859567756735078, 1.509987399931601, -3.6041628922334565,
    8.922630106491214, -17.856921785322655, 45.84295927442104, -314.9160992968121,
    943.9542607175525,
)
_K1_MIDDLE = (
    1.5076064703310195, 0.36117612246983594, -0.055190457956731775, 0.019304093235635724,
    -0.0092257501981338, 0.005267194572484967, -0.0033856922722980656, 0.002372199882324139,
    -0.0017759356560845061, 0.0014020201404445459, -0.0011559297943896578, 0.0009847194506509473,
    -0.0008682775170775448, 0.0008284938620470941, -0.0007735981023261882, 0.00046580348534236155,
    -0.0004329883353193031, 0.0013762262754036, -0.001402530401793359,
)
_K1_FAR = (
    1.3099834570765034, 0.43820147789212366, -0.11090343839702331, 0.07216367595572222,
    -0.06990546656712097, 0.08647757300024844, -0.1271049569733085, 0.21293328192727284,
    -0.3958212190646758, 0.8007332134313002, -1.7414353673185783, 4.111653442201825,
    -10.092513838866216, 20.19851313151591, -51.56549439017697, 347.81628413192794,
    -1037.8454856605088,
)
# fmt: on
TWO_OVER_PI = 2 / math.pi
FROM = 8.0  # where modulus and phase of Y_n begin


def _at_ends(x: Term, y: Term, at_zero: float) -> Term:
    """`y`, and the limits at 0 and infinity."""
    y = choose(x.equals(math.inf), x.like(0), y)
    return choose(x.equals(0.0), x.like(at_zero), y)


def _y0(x: Term) -> Term:
    a = at_most(x, FROM)
    close = TWO_OVER_PI * log(a) * call_j0(a) + polynomial(a * a - 32.0, _Y0)
    b = at_least(x, FROM)
    total, excess, size, z = far(b)
    wave = size * (polynomial(z, P0) * excess + polynomial(z, Q0) * (total / b))
    return _at_ends(x, choose(x < FROM, close, wave), -math.inf)


def _y1(x: Term) -> Term:
    a = at_most(x, FROM)
    singular = TWO_OVER_PI * (log(a) * call_j1(a) - 1.0 / a)
    close = singular + a * polynomial(a * a - 32.0, _Y1)
    b = at_least(x, FROM)
    total, excess, size, z = far(b)
    wave = size * (polynomial(z, Q1) * (excess / b) - polynomial(z, P1) * total)
    return _at_ends(x, choose(x < FROM, close, wave), -math.inf)


def _decaying(x: Term, middle: tuple[float, ...], far: tuple[float, ...]) -> Term:
    """`exp(x) K_n(x)` from 1 on."""
    inverse = 1.0 / at_least(x, 1.0)
    near, away = at_least(inverse, 0.25), at_most(inverse, 0.25)
    y = choose(x < 4.0, polynomial(near - 0.625, middle), polynomial(away - 0.125, far))
    return inverse.sqrt() * y


def _k0e(x: Term) -> Term:
    a = at_most(x, 1.0)
    z = a * a
    close = (polynomial(z, _K0) - log(a) * polynomial(z, _I0)) * exp(a)
    return _at_ends(x, choose(x < 1.0, close, _decaying(x, _K0_MIDDLE, _K0_FAR)), math.inf)


def _k1e(x: Term) -> Term:
    a = at_most(x, 1.0)
    z = a * a
    close = (1.0 / a + a * (log(a) * polynomial(z, _I1) + polynomial(z, _K1))) * exp(a)
    return _at_ends(x, choose(x < 1.0, close, _decaying(x, _K1_MIDDLE, _K1_FAR)), math.inf)


y0 = emits(functions.y0)(special("bessel_y0", _y0))
y1 = emits(functions.y1)(special("bessel_y1", _y1))
k0e = emits(functions.k0e)(special("bessel_k0e", _k0e))
k1e = emits(functions.k1e)(special("bessel_k1e", _k1e))
