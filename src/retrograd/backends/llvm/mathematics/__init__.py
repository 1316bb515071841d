"""Mathematical functions as formulas of vector instructions.

Every function is written once, for any number of lanes, in which it gives the same bits. The bounds
in units in the last place are those of `tests/backends/test_vector_math.py`. Short functions are
written where they are used, long ones as functions of the module.
"""

from retrograd.backends.llvm.at import Emit
from retrograd.backends.llvm.mathematics import (
    bessel,
    bessel_second,
    entropy,
    gamma,
    incomplete,
    normal,
    portable,
)
from retrograd.backends.llvm.mathematics.exponential import (
    cosh,
    exp,
    exp2,
    expm1,
    sech2,
    sigmoid,
    sinh,
    tanh,
)
from retrograd.backends.llvm.mathematics.gaussian import erf, erfc
from retrograd.backends.llvm.mathematics.inverse import acos, asin, atan, atan2
from retrograd.backends.llvm.mathematics.logarithm import (
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
from retrograd.backends.llvm.mathematics.power import pow
from retrograd.backends.llvm.mathematics.roots import cbrt, hypot, rsqrt
from retrograd.backends.llvm.mathematics.trigonometric import cos, sin, tan

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
    "y0": bessel_second.y0,
    "y1": bessel_second.y1,
    "k0e": bessel_second.k0e,
    "k1e": bessel_second.k1e,
    "i0e": bessel.i0e,
    "i1e": bessel.i1e,
    "bessel_j": bessel.bessel_j,
    "bessel_ie": bessel.bessel_ie,
    **incomplete.FUNCTIONS,
    **portable.FUNCTIONS,
}
