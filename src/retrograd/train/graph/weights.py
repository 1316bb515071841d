"""Weights of edges in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retrograd.errors import FormatError

LARGEST = float(np.finfo(np.float32).max)  # what features and weights are computed in


def check_weight(text: str, path: Path, line: int) -> float:
    """The weight that is written in a line; `FormatError` for what is no number from 0 on."""
    try:
        weight = float(text)
    except ValueError:
        raise FormatError(f"{path}, line {line}: the weight is {text!r}") from None
    if not 0 <= weight <= LARGEST:
        raise FormatError(
            f"{path}, line {line}: the weight is {weight}, not from 0 on to {LARGEST:.4g}"
        )
    return weight
