"""Arrays that upset pivots and digits, and special values among them."""

from __future__ import annotations

import numpy as np

PATTERNS = {
    "random": lambda r, n: r.standard_normal(n) * 100,
    "sorted": lambda r, n: np.arange(n),
    "reversed": lambda r, n: np.arange(n)[::-1],
    "equal": lambda r, n: np.zeros(n),
    "few": lambda r, n: r.integers(0, 3, n),
    "pipe": lambda r, n: np.minimum(np.arange(n), np.arange(n)[::-1]),
    "teeth": lambda r, n: np.arange(n) % 17,
}


def marked(r, x):
    """The numbers with special values among them."""
    x, n = x.copy(), len(x)
    if n and x.dtype.kind == "f":
        for value in (np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan):
            x[r.integers(0, n, n // 10 + 1)] = value
    elif n:
        ends = np.iinfo(x.dtype)
        for value in (ends.min, ends.max):
            x[r.integers(0, n, n // 5 + 1)] = value
    return x
