"""sin, cos and tan: of the reduced angle both sin and cos, of which `n` chooses."""

from __future__ import annotations

from retrograd.codegen.math.range_reduction import reduced
from retrograd.codegen.math.term import Term, choose, fma, formula, polynomial
from retrograd.codegen.op_builder import emits, outlined
from retrograd.ops import elementwise as el

# fmt: off
# (sin(r) / r - 1) / r^2 in r^2, to 2^-27.9 and 2^-57.8
_SIN = {
    "float32": (-0.16666654, 0.008332123, -0.00019510061),
    "float64": (
        -0.16666666666666627, 0.008333333333321183, -0.00019841269828817934,
        2.7557313346330653e-06, -2.505070364360082e-08, 1.5893616789035895e-10,
    ),
}
# (cos(r) - 1 + r^2 / 2) / r^4 in r^2, to 2^-32 and 2^-63
_COS = {
    "float32": (0.041666646, -0.0013887264, 2.4427185e-05),
    "float64": (
        0.04166666666666659, -0.0013888888888871724, 2.480158728800229e-05,
        -2.7557313929413323e-07, 2.08756663088937e-09, -1.135672122673487e-11,
    ),
}
# fmt: on


def _parts(a: Term) -> tuple[Term, Term, Term]:
    """Integers whose low bits are those of `n`, `sin r`, `cos r`."""
    name = a.format.dtype.name
    n, r = reduced(a)
    z = r * r
    sin_r = fma(z * r, polynomial(z, _SIN[name]), r)
    cos_r = fma(z * z, polynomial(z, _COS[name]), fma(z, -0.5, 1.0))
    return n, sin_r, cos_r


def _sign_bit(n: Term, bit: int) -> Term:
    """A bit of integers, where the sign of a float is; other bits are off."""
    width = 8 * n.at.dtype.itemsize
    return (n << (width - 1 - bit)) & (-1 << (width - 1))


@formula
def _sin(x: Term) -> Term:
    a = abs(x)
    n, sin_r, cos_r = _parts(a)
    y = choose((n & 1).equals(0), sin_r, cos_r).bits()
    negative = x.bits() ^ a.bits() ^ _sign_bit(n, 1)
    return (y ^ negative).floats()


@formula
def _cos(x: Term) -> Term:
    n, sin_r, cos_r = _parts(abs(x))
    y = choose((n & 1).equals(0), cos_r, sin_r).bits()
    return (y ^ _sign_bit(n + 1, 1)).floats()


@formula
def _tan(x: Term) -> Term:
    a = abs(x)
    n, sin_r, cos_r = _parts(a)
    even = (n & 1).equals(0)
    y = (choose(even, sin_r, cos_r) / choose(even, cos_r, sin_r)).bits()
    negative = x.bits() ^ a.bits() ^ _sign_bit(n, 0)
    return (y ^ negative).floats()


sin = emits(el.sin)(outlined("sin", _sin))
cos = emits(el.cos)(outlined("cos", _cos))
tan = emits(el.tan)(outlined("tan", _tan))
