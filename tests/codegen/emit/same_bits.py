"""Arrays compared to the bit, where one NaN is as good as another."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import DTYPES

REALS = [d for d in DTYPES if not d.is_complex]


SIZE = 64


def assert_same_bits(y: np.ndarray[Any, Any], r: np.ndarray[Any, Any], what: str) -> None:
    """Equal to the bit, but one NaN is as good as another."""
    kind = f"u{y.itemsize}"
    differ = y.view(kind) != r.view(kind)
    differ &= ~((y != y) & (r != r))
    where = np.flatnonzero(differ)
    assert not where.size, f"{what} at {where[0]}: {y[where[0]]!r}, in one lane {r[where[0]]!r}"
