"""erf and erfc."""

from __future__ import annotations

from retrograd.codegen.math.exponential import excess, power_of_two, reduced, scaled
from retrograd.codegen.math.term import Term, at_most, choose, fma, formula, polynomial
from retrograd.codegen.op_builder import emits, outlined
from retrograd.ops import elementwise as el

# fmt: off
# erf(x) / x - 1 in x^2, for |x| <= 1, to 2^-29 and 2^-68
_NEAR = {
    "float32": (
        0.12837917, -0.37612626, 0.112835854, -0.026853811, 0.0051883273, -0.00080101885,
        7.853843e-05,
    ),
    "float64": (
        0.1283791670955126, -0.37612638903183754, 0.11283791670955119, -0.026866170645129733,
        0.005223977625422085, -0.0008548327021853163, 0.00012055332899356686,
        -1.4925647465088558e-05, 1.6462043407311606e-06, -1.6364614415853453e-07,
        1.4792145707103559e-08, -1.2163041672230308e-09, 8.703789054817073e-11,
        -4.222895036500959e-12,
    ),
}
# log(erfc(a)) from 0.95 to where erf is 1, so that erf is right to 2^-34 and 2^-61
_FAR = {
    "float32": (
        0.0001824594, -1.129552, -0.6332724, -0.10836154, 0.025171803, -0.004190854, 0.0004385295,
        -2.1445529e-05,
    ),
    "float64": (
        -7.755400874044132e-09, -1.1283791217065715, -0.6366197445211713, -0.10277377038876516,
        0.01913418900740314, 0.0001928503415224139, -0.001663803388256348, 0.0005420152333975956,
        2.9646604079636953e-05, -0.00011531548672103541, 6.693023014432143e-05,
        -2.5117804839555242e-05, 7.043955666308418e-06, -1.5338846664850254e-06,
        2.605802639339755e-07, -3.404423290336223e-08, 3.3115124246774366e-09,
        -2.2608614171695614e-10, 9.668147984193172e-12, -1.9479920591094623e-13,
    ),
}
_ONE = {"float32": 4.0, "float64": 6.0}
# (a + c) exp(a^2) erfc(a) in (a - c) / (a + c), from 0.45 to where erfc is 0, to 2^-28 and 2^-58
_TAIL = {
    "float32": (
        1.0215827, -0.6871607, 0.27947178, -0.036443517, -0.021504445, 0.006491719, 0.0030462819,
        -0.0008843905, -0.0005322034, 0.00010396588,
    ),
    "float64": (
        1.095995661000491, -0.976548729080882, 0.7732087022652361, -0.5408538313132353,
        0.3308515878780769, -0.17401093723994032, 0.07638151490766368, -0.026370053340029405,
        0.006112055677163231, -0.00028095887011149944, -0.0004550528481435148,
        0.00017681285463785765, -3.634387299217022e-06, -1.8861047088636506e-05,
        4.692018271746391e-06, 1.4246093896862641e-06, -8.415435085174877e-07,
        -7.614250872874508e-08, 1.1862885385573452e-07, 1.3330148008678636e-09,
        -1.1844906223023164e-08,
    ),
}
_CENTRE = {"float32": 2.0, "float64": 4.0}
_ZERO = {"float32": 10.3, "float64": 27.5}
# fmt: on


def _erf_near(x: Term) -> Term:
    z = x * x
    return fma(x, polynomial(z, _NEAR[x.format.dtype.name]), x)


@formula
def _erf(x: Term) -> Term:
    """Near zero an odd polynomial; from 1 on `1 - exp(p(|x|))`."""
    form = x.format
    name = form.dtype.name
    a = abs(x)
    exponent = polynomial(at_most(a, _ONE[name]), _FAR[name])
    n, r = reduced(exponent, form.bias)
    far = 1.0 - (excess(r) + 1.0) * power_of_two(n, form)
    return choose(a < 1.0, _erf_near(x), far.with_sign_of(x))


def scaled_erfc(a: Term, c: float) -> Term:
    """`exp(a^2) erfc(a)`. The argument of the polynomial is `1 - 2c / (a + c)`: what was lost in
    the sum and in the quotient is made up for, since its slope is steep where `a` is small."""
    below = a + c
    inverse = 1.0 / below
    lost = fma(-(a - (below - c)), inverse, fma(-inverse, below, 1.0))
    twice = inverse * (-2 * c)
    t = fma(twice, lost, twice + 1.0)
    return polynomial(t, _TAIL[a.format.dtype.name]) * inverse


@formula
def _erfc(x: Term) -> Term:
    """Near zero `1 - erf(x)`; else `exp(-a^2) q(a)` of `a = |x|` or, for a negative argument, what
    that lacks of 2. The square is a sum of two floats: its last bits count in the exponent."""
    form = x.format
    name = form.dtype.name
    a = abs(x)
    bounded = at_most(a, _ZERO[name])
    square = bounded * bounded
    n, r = reduced(-square, 2 * form.bias)
    r = r - fma(bounded, bounded, -square)
    q = scaled_erfc(bounded, _CENTRE[name])
    y = scaled(fma(excess(r), q, q), n, form)
    y = choose(x < 0.0, 2.0 - y, y)
    return choose(a < 0.47, 1.0 - _erf_near(x), y)


erf = emits(el.erf)(outlined("erf", _erf))
erfc = emits(el.erfc)(outlined("erfc", _erfc))
