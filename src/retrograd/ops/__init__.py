"""Every operation, declared once: inference, reverse, forward and batching rule, reference meaning.

Importing this package registers them all.
"""

from retrograd.ops import (
    control,
    conv,
    elementwise,
    implicit,
    index,
    leaf,
    matmul,
    pool,
    portable,
    random,
    reduce,
    shape,
    special,
    windows,
)

__all__ = [
    "control",
    "conv",
    "elementwise",
    "implicit",
    "index",
    "leaf",
    "matmul",
    "pool",
    "portable",
    "random",
    "reduce",
    "shape",
    "special",
    "windows",
]
