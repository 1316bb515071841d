"""Random samples as functions of the parameters of their distributions.

A sample z with the distribution function `F(z; a)` moves with the parameter so that F stays:
`dz/da = -(dF/da) / (dF/dz)` (Figurnov, Mohamed, Mnih, arXiv:1805.08498). These ops give the sample
they are given, their last input, which is drawn from the parameters they are given, and have that
derivative, of the output as a function of the parameters; so higher derivatives follow. Of a sample
whose logarithm `a` is known, `implicit_exp` says that it moves as `exp(a)` does.
"""

from __future__ import annotations

from typing import Any

from retrograd.ir import Node
from retrograd.ops.elementwise import (
    FLOAT,
    binary,
    cos,
    exp,
    select,
    sin,
    zdiv,
    zmul,
)
from retrograd.ops.special.functions import (
    betainc_da,
    betainc_db,
    betainc_dx,
    digamma,
    gammainc_da,
    gammainc_dx,
    i0e,
    i1e,
    ternary,
    undefined,
)
from retrograd.ops.special.reference import from_formula


def sample(*arrays: Any) -> Any:
    """The last of the arrays."""
    return arrays[-1]


def log_gamma_slope(a: Node, y: Node) -> Node:
    """Of the logarithm `y` of a gamma sample; where that is tiny, `F = z^a / Gamma(a + 1)`."""
    tiny = y < -34.0
    z = exp(y)
    near = (digamma(a + 1) - y) / a
    return select(tiny, near, -zdiv(gammainc_da(a, z), z * gammainc_dx(a, z)))


# fmt: off
implicit_exp = binary("implicit_exp", sample, lambda g, y, a, z: zmul(g, y), None, FLOAT)
implicit_gamma = binary("implicit_gamma", sample, lambda g, y, a, z: -zdiv(
                            zmul(g, gammainc_da(a, y)), gammainc_dx(a, y)), None, FLOAT)
implicit_log_gamma = binary("implicit_log_gamma", sample,
                            lambda g, y, a, z: zmul(g, log_gamma_slope(a, y)), None, FLOAT)
implicit_beta = ternary("implicit_beta", sample, lambda g, y, a, b, z: -zdiv(
                            zmul(g, betainc_da(a, b, y)), betainc_dx(a, b, y)),
                        lambda g, y, a, b, z: -zdiv(
                            zmul(g, betainc_db(a, b, y)), betainc_dx(a, b, y)), None)
von_mises_slope = binary("von_mises_slope", from_formula("von_mises_slope"),
                         lambda g, y, *of: undefined(g, *of),
                         lambda g, y, k, x: zmul(g, k * sin(x) * y - cos(x) + i1e(k) / i0e(k)),
                         FLOAT)
implicit_von_mises = binary("implicit_von_mises", sample,
                            lambda g, y, k, z: zmul(g, von_mises_slope(k, y)), None, FLOAT)
# fmt: on

# Whose value is that of their last input.
IMPLICIT = frozenset(
    op.name
    for op in (implicit_exp, implicit_gamma, implicit_log_gamma, implicit_beta, implicit_von_mises)
)
