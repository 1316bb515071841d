"""An array in a few numbers, for people: extremes, mean, norm, histogram, what is not finite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Summary = dict[str, Any]

BINS = 24
SHOWN = 16  # elements of an array that is given whole


def summary(array: np.ndarray[Any, Any]) -> Summary:
    """What a page tells about an array; complex numbers by their magnitudes.

    `data` holds the elements of a small array in row-major order, and nothing else is needed of a
    single number. Of others: `size`; `min`, `max`, `mean`, `norm` (Euclidean) and `zeros` over the
    finite elements; `hist`, counts in equal bins from `min` to `max`; `nan` and `inf`, how many are
    not finite, and `bad`, the index of the first.
    """
    a = np.asarray(array)
    if a.dtype.kind == "c":
        a = np.abs(a)
    exact = a.dtype.kind in "biu"
    if a.size == 1:
        return {"data": [a.reshape(-1)[0].item() if exact else _number(a.reshape(-1)[0])]}
    found: Summary = {"size": int(a.size)}
    if a.size == 0:
        return found
    flat = np.asarray(a, np.float64).reshape(-1)
    finite = np.isfinite(flat)
    if a.size <= SHOWN:
        found["data"] = [x.item() for x in a.reshape(-1)] if exact else [_number(x) for x in flat]
    if not finite.all():
        found["nan"] = int(np.isnan(flat).sum())
        found["inf"] = int(np.isinf(flat).sum())
        found["bad"] = [int(i) for i in np.unravel_index(int(np.argmin(finite)), a.shape)]
        flat = flat[finite]
    if flat.size:
        low, high = float(flat.min()), float(flat.max())
        scale = max(abs(low), abs(high)) or 1.0
        counts = _histogram(flat, low, high)
        found |= {
            "min": low,
            "max": high,
            "mean": float((flat / scale).mean()) * scale,
            "norm": _capped(scale, float(np.linalg.norm(flat / scale))),
            "zeros": int((flat == 0).sum()),
            "hist": counts,
        }
    return found


def _histogram(flat: np.ndarray[Any, Any], low: float, high: float) -> list[int]:
    width = high - low
    if width <= 0 or not math.isfinite(width):
        return [int(flat.size)]
    places = np.minimum(((flat - low) / width * BINS).astype(np.int64), BINS - 1)
    return [int(n) for n in np.bincount(places, minlength=BINS)]


def _capped(scale: float, norm: float) -> float:
    """The product, or the largest number where it would be infinite."""
    return min(scale * norm, float(np.finfo(np.float64).max))


def _number(x: Any) -> float:
    return float(x)
