"""Half precision: computed in float32, rounded once. NumPy's own functions differ in this between
float16 and bfloat16, and from op to op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def is_half(x: Any) -> bool:
    """Whether an array is float16 or bfloat16."""
    return bool(x.dtype.itemsize == 2 and x.dtype.kind not in "iu")


def in_float32(f: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """`f(*arrays)`, by way of float32 where the arrays are of half precision."""
    if not is_half(arrays[-1]):
        return f(*arrays)
    y = f(*[x.astype(np.float32) if is_half(x) else x for x in arrays])
    return y.astype(arrays[-1].dtype) if y.dtype == np.float32 else y
