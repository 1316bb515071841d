"""Mathematical functions as formulas of vector instructions.

Every function is written once, for any number of lanes, in which it gives the same bits. The bounds
in units in the last place are those of `tests/codegen/math/test_elementary_functions.py`. Short
functions are written where they are used, long ones as functions of the module.

Importing this package enters them all: `@emits` says of which op a function is the text.
"""

from retrograd.codegen.math import (
    bessel,
    bessel_second_kind,
    entropy,
    error_function,
    exponential,
    gamma,
    incomplete,
    inverse_trigonometric,
    logarithm,
    normal,
    portable,
    power,
    roots,
    trigonometric,
)

__all__ = [
    "bessel",
    "bessel_second_kind",
    "entropy",
    "error_function",
    "exponential",
    "gamma",
    "incomplete",
    "inverse_trigonometric",
    "logarithm",
    "normal",
    "portable",
    "power",
    "roots",
    "trigonometric",
]
