"""Every operation, declared once: inference, reverse, forward and batching rule, reference meaning.

Importing this package registers them all.
"""

from retrograd.ops import (
    complex,
    control,
    conv,
    elementwise,
    fft,
    index,
    leaf,
    linalg,
    matmul,
    pool,
    random,
    reduce,
    scan,
    scatter,
    shape,
    sort,
    windows,
)

__all__ = [
    "complex",
    "control",
    "conv",
    "elementwise",
    "fft",
    "index",
    "leaf",
    "linalg",
    "matmul",
    "pool",
    "random",
    "reduce",
    "scan",
    "scatter",
    "shape",
    "sort",
    "windows",
]
