"""What the backend makes of a function: its text, and its values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.ir import as_dtype
from retrograd.xla.executable import XlaProgram

Array = np.ndarray[Any, Any]


def traced(f: Callable[..., Any], *arrays: Array) -> Any:
    """The graph of a function of arrays like these."""
    return rg.trace(f, *[rg.spec(x.shape, as_dtype(x.dtype)) for x in arrays])


def operations(f: Callable[..., Any], *arrays: Array) -> list[str]:
    """The operations of XLA in the program of a function, in order."""
    return re.findall(r"(?<!#)\b(?:stablehlo|chlo)\.(\w+)", traced(f, *arrays).to_stablehlo())


def values(f: Callable[..., Any], *arrays: Array) -> list[Array]:
    """What the program computes."""
    return [np.asarray(y) for y in XlaProgram(traced(f, *arrays))(arrays)]


def value(f: Callable[..., Any], *arrays: Array) -> Array:
    """What a program of one result computes."""
    (y,) = values(f, *arrays)
    return y
