"""Every operation, declared once: inference, reverse, forward and batching rule, reference meaning.

Importing this package registers them all, except those that hold graphs (`ops.control`).
"""

from retrograd.ops import (
    assume,
    complex,
    conv,
    elementwise,
    fft,
    identity,
    index,
    leaf,
    linalg,
    matmul,
    pool,
    random,
    reduce,
    remat,
    scan,
    scatter,
    shape,
    sort,
    special,
    toposort,
    windows,
)

__all__ = [
    "assume",
    "complex",
    "conv",
    "elementwise",
    "fft",
    "identity",
    "index",
    "leaf",
    "linalg",
    "matmul",
    "pool",
    "random",
    "reduce",
    "remat",
    "scan",
    "scatter",
    "shape",
    "sort",
    "special",
    "toposort",
    "windows",
]
