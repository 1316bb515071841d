"""Mathematical functions as formulas of vector instructions.

Every function is written once, for any number of lanes, in which it gives the same bits. The bounds
in units in the last place are those of `tests/codegen/math/test_elementary_functions.py`. Short
functions are written where they are used, long ones as functions of the module.
"""

from retrograd.codegen.math import (
    bessel,
    bessel_second_kind,
    entropy,
    gamma,
    incomplete,
    normal,
    portable,
)
from retrograd.codegen.math.error_function import erf, erfc
from retrograd.codegen.math.exponential import (
    cosh,
    exp,
    exp2,
    expm1,
    sech2,
    sigmoid,
    sinh,
    tanh,
)
from retrograd.codegen.math.inverse_trigonometric import acos, asin, atan, atan2
from retrograd.codegen.math.logarithm import (
    acosh,
    asinh,
    atanh,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    softplus,
)
from retrograd.codegen.math.power import pow
from retrograd.codegen.math.roots import cbrt, hypot, rsqrt
from retrograd.codegen.math.trigonometric import cos, sin, tan
from retrograd.codegen.op_builder import Emit

FUNCTIONS: dict[str, Emit] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "pow": pow,
    "rsqrt": rsqrt,
    "cbrt": cbrt,
    "hypot": hypot,
    "logaddexp": logaddexp,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "erf": erf,
    "erfc": erfc,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sech2": sech2,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "gamma": gamma.gamma,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "trigamma": gamma.trigamma,
    "zeta": gamma.zeta,
    "betaln": gamma.betaln,
    "erfcx": normal.erfcx,
    "ndtr": normal.ndtr,
    "ndtri": normal.ndtri,
    "erfinv": normal.erfinv,
    "erfcinv": normal.erfcinv,
    "logit": entropy.logit,
    "xlogy": entropy.xlogy,
    "xlog1py": entropy.xlog1py,
    "entr": entropy.entr,
    "rel_entr": entropy.rel_entr,
    "j0": bessel.j0,
    "j1": bessel.j1,
    "y0": bessel_second_kind.y0,
    "y1": bessel_second_kind.y1,
    "k0e": bessel_second_kind.k0e,
    "k1e": bessel_second_kind.k1e,
    "i0e": bessel.i0e,
    "i1e": bessel.i1e,
    "bessel_j": bessel.bessel_j,
    "bessel_ie": bessel.bessel_ie,
    **incomplete.FUNCTIONS,
    **portable.FUNCTIONS,
}
