"""rsqrt, cbrt, hypot."""

from __future__ import annotations

import math

from retrograd.codegen.math.logarithm import split
from retrograd.codegen.math.term import SINGLE, Term, choose, fma, formula, polynomial
from retrograd.codegen.op_builder import emits, outlined
from retrograd.ops import elementwise as el

# (1 + f)^(-1/3) from sqrt(1/2) - 1 to sqrt(2) - 1, to 2^-17
_CBRT = (
    1.0000038471643824, -0.33326097954028056, 0.22160510768833477, -0.17581860579844688,
    0.16041711344726808, -0.10806364785027507,
)  # fmt: skip


@emits(el.rsqrt)
@formula
def rsqrt(x: Term) -> Term:
    return 1.0 / x.sqrt()


@formula
def _cbrt(x: Term) -> Term:
    """`|x| = 8^q m`. Newton's iteration for `m^(-1/3)` needs no quotient; a last step on
    `m m^(-1/3)^2` itself, with the residue of its cube, makes up for the rounding errors."""
    form = x.format
    k, f = split(abs(x))
    q = k * (1 / 3)
    q = (q + form.magic) - form.magic
    rest = fma(q, -3.0, k)  # -1, 0 or 1
    up, down = rest > 0.5, rest < -0.5
    m = f + 1.0
    m = choose(up, m + m, choose(down, m * 0.5, m))
    third = x.like(2 ** (1 / 3))
    factor = choose(up, x.like(2 ** (-1 / 3)), choose(down, third, x.like(1)))
    r = polynomial(f, _CBRT) * factor
    for _ in range(1 if form is SINGLE else 2):
        r = fma(fma(r * r, -(r * m), 1.0), r * (1 / 3), r)
    y = r * r * m
    y = fma(fma(y * y, -y, m), r * r * (1 / 3), y)
    scale = ((q + (form.magic + form.bias)).bits() << form.mantissa).floats()
    plain = (abs(x) < math.inf) & ~x.equals(0.0)
    return choose(plain, (y * scale).with_sign_of(x), x)


@formula
def _hypot(x: Term, y: Term) -> Term:
    """In single precision by way of doubles, in which the sum of squares is almost exact."""
    a, b = abs(x), abs(y)
    if x.format is SINGLE and x.at.doubles:
        wide, other = a.double(), b.double()
        root = fma(wide, wide, other * other).sqrt().single()
    else:
        root = _hypot_scaled(a, b)
    return choose(a.equals(math.inf) | b.equals(math.inf), a.like(math.inf), root)


# The logarithms of: what is large, what is small, and what these are divided and multiplied by.
_SCALES = {"float32": (60, -50, 70, 90), "float64": (500, -450, 600, 600)}


def _hypot_scaled(a: Term, b: Term) -> Term:
    """Scaled by powers of two where squares would leave the range of exponents."""
    large, little, down, up = (2.0**k for k in _SCALES[a.format.dtype.name])
    top = choose(a > b, a, b)
    big, small = top > large, top < little
    one = a.like(1)
    scale = choose(big, a.like(1 / down), choose(small, a.like(up), one))
    back = choose(big, a.like(down), choose(small, a.like(1 / up), one))
    a, b = a * scale, b * scale
    high, low = choose(a > b, a, b), choose(a > b, b, a)
    return fma(high, high, low * low).sqrt() * back


cbrt = emits(el.cbrt)(outlined("cbrt", _cbrt))
hypot = emits(el.hypot)(outlined("hypot", _hypot))
