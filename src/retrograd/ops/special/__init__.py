"""Special functions: elementwise operations with exact derivatives."""

from retrograd.ops.special import functions, portable

__all__ = ["functions", "portable"]
