"""Weights of edges in files."""

from __future__ import annotations

import math
from pathlib import Path

from retrograd.errors import FormatError


def check_weight(text: str, path: Path, line: int) -> float:
    """The weight that is written in a line; `FormatError` for what is no number from 0 on."""
    try:
        weight = float(text)
    except ValueError:
        raise FormatError(f"{path}, line {line}: the weight is {text!r}") from None
    if not (weight >= 0 and math.isfinite(weight)):
        raise FormatError(f"{path}, line {line}: the weight is {weight}, not from 0 on")
    return weight
