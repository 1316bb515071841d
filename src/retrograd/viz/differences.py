"""How much the values of two runs differ, node by node."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograd.viz.compare import Pairs
from retrograd.viz.graph_document import Document, Record

Array = np.ndarray[Any, Any]
Summary = Mapping[str, Any]


def difference(a: Array, b: Array) -> tuple[float, float]:
    """`‖a - b‖ / max(‖a‖, ‖b‖)`, and the largest `|a - b|`; infinite where an element of one is not
    finite and that of the other is something else. Norms are Euclidean, of scaled elements.

    >>> difference(np.array([3.0, 4.0]), np.array([3.0, 4.5]))[1]
    0.5
    """
    x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if not (np.isfinite(x) | same).all() or not (np.isfinite(y) | same).all():
        return math.inf, math.inf
    x, y = (np.where(same & ~np.isfinite(v), 0.0, v) for v in (x, y))
    apart = np.abs(x - y)
    largest = float(apart.max(initial=0.0))
    scale = max(float(np.abs(x).max(initial=0.0)), float(np.abs(y).max(initial=0.0)))
    if scale == 0.0 or largest == 0.0:
        return 0.0, largest
    norms = [float(np.linalg.norm(np.ravel(np.abs(v) / scale))) for v in (x, y)]
    return float(np.linalg.norm(np.ravel(apart / scale))) / max(norms), largest


def of_summaries(before: Document, after: Document, pairs: Pairs) -> list[Record]:
    """The same of documents with values: of small arrays exactly, of others by what their summaries
    tell, which is at least the difference of their norms."""
    first, second = before.get("values", {}), after.get("values", {})
    found = []
    for j, (i, _) in pairs.items():
        a, b = first.get(str(i)), second.get(str(j))
        if a is None or b is None or after["nodes"][j]["shape"] != before["nodes"][i]["shape"]:
            continue
        relative, largest = _of_summary(a, b)
        found.append({"node": j, "relative": relative, "largest": largest})
    return largest_first(found)


def largest_first(found: list[Record]) -> list[Record]:
    return sorted(found, key=lambda d: (-d["relative"], d["node"]))


def _of_summary(a: Summary, b: Summary) -> tuple[float, float]:
    if "data" in a and "data" in b:
        x, y = (np.array([float(v) for v in s["data"]]) for s in (a, b))
        return difference(x, y) if x.shape == y.shape else (math.inf, math.inf)
    if a.get("nan") != b.get("nan") or a.get("inf") != b.get("inf"):
        return math.inf, math.inf
    norm, other = a.get("norm", 0.0), b.get("norm", 0.0)
    ends = [abs(a.get(k, 0.0) - b.get(k, 0.0)) for k in ("min", "max")]
    most = max(norm, other)
    return (abs(norm - other) / most if most else 0.0), max(ends)
