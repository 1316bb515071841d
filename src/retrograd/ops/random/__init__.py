"""Random bits by counting, the formulas of samples, and samples as functions of parameters."""

from retrograd.ops.random import implicit_gradients, threefry

__all__ = ["implicit_gradients", "threefry"]
