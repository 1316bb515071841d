"""Every operation, declared once: inference, reverse, forward and batching rule, reference meaning.

Importing this package registers them all.
"""

from retrograd.ops import (
    complex,
    control,
    conv,
    dag,
    elementwise,
    fft,
    implicit,
    index,
    leaf,
    linalg,
    matmul,
    pool,
    portable,
    random,
    recompute,
    reduce,
    scan,
    scatter,
    shape,
    sort,
    special,
    windows,
)

__all__ = [
    "complex",
    "control",
    "conv",
    "dag",
    "elementwise",
    "fft",
    "implicit",
    "index",
    "leaf",
    "linalg",
    "matmul",
    "pool",
    "portable",
    "random",
    "recompute",
    "reduce",
    "scan",
    "scatter",
    "shape",
    "sort",
    "special",
    "windows",
]
