"""Every operation, declared once: inference, reverse, forward and batching rule, reference meaning.

Importing this package registers them all.
"""

from retrograd.ops import control, elementwise, index, leaf, matmul, random, reduce, shape

__all__ = ["control", "elementwise", "index", "leaf", "matmul", "random", "reduce", "shape"]
