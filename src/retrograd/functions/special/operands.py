"""Arguments of special functions as nodes of one floating dtype."""

from __future__ import annotations

from typing import Any

from retrograd.eager.weak_types import is_weak
from retrograd.functions.broadcasting import broadcast
from retrograd.ir import Node, float64
from retrograd.ir.dtype import DEFAULT
from retrograd.ops import elementwise as el


def floats(*values: Any) -> list[Node]:
    """Nodes of one floating dtype and one shape; integers count as what stands next to them, alone
    as what Python floats are.

    Where these are float64, arrays of integers of 32 bits and more are float64 beside float32 too:
    who calls `set_default_dtype(float64)` does so to have SciPy's dtypes, whose functions these
    are.
    """
    if DEFAULT.real is float64:
        values = tuple(el.cast(v, float64) if _is_wide_integer(v) else v for v in values)
    return broadcast(*values, floating=True)


def _is_wide_integer(value: Any) -> bool:
    if not isinstance(value, Node) or is_weak(value):
        return False
    return value.dtype.is_integer and value.dtype.itemsize >= 4
