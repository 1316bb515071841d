"""How large each parameter is, its gradient, and what a step changes it by: Euclidean norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import retrograd as rg

KINDS = ("weight", "gradient", "update")

Norms = dict[str, dict[str, float]]


def parameter_norms(before: Sequence[Any], gradients: Sequence[Any], after: Sequence[Any]) -> Any:
    """`‖w‖`, `‖g‖` and `‖w' - w‖` of each parameter `w` that a step makes `w'`, `[3, parameters]`,
    float64. It is part of the program of a step, whose other results keep their bits.

    >>> w, g = rg.tensor([3.0, 4.0]), rg.tensor([0.0, 2.0])
    >>> parameter_norms([w], [g], [w - 0.5 * g]).tolist()
    [[5.0], [2.0], [1.0]]
    """
    moved = [new - old for new, old in zip(after, before, strict=True)]
    rows = [[_norm(x) for x in arrays] for arrays in (before, gradients, moved)]
    return rg.stack([rg.stack(row) for row in rows])


def _norm(x: Any) -> Any:
    x = rg.abs(x) if x.dtype.is_complex else x
    wide = x.astype(rg.float64)  # in which no square of a float32 is 0 or infinite
    return rg.sqrt(rg.sum(wide * wide))


def by_name(names: Sequence[str], found: np.ndarray[Any, Any]) -> Norms:
    """Norms as logs have them: `{"0.weight": {"weight": 5.0, "gradient": 2.0, "update": 1.0}}`."""
    columns = np.asarray(found, np.float64).T.tolist()
    return {
        name: {kind: float(f"{x:.6g}") for kind, x in zip(KINDS, column, strict=True)}
        for name, column in zip(names, columns, strict=True)
    }
