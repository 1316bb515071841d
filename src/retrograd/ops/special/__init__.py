"""Special functions: elementwise operations with exact derivatives."""

from retrograd.ops.special import functions, portable, scipy_functions

__all__ = ["functions", "portable", "scipy_functions"]
