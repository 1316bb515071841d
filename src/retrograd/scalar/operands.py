"""What a `Value` can be made of and combined with."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir.source import user_source


def number_of(x: Any) -> float:
    """A real number as a float; anything else is a `DTypeError`."""
    if isinstance(x, int | float | np.integer | np.floating | np.bool_):
        return float(x)
    if isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype.kind in "fiub":
        return float(x)
    raise DTypeError(
        f"a Value is made of, and combines with, a real number or a Value, not {_described(x)}"
    )


def at_line() -> str:
    """The user's line that is being run, for the end of a message."""
    source = user_source()
    return f" (at {source})" if source else ""


def _described(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape}; go through its elements, or use rg.tensor"
    return f"{x!r:.80}" if isinstance(x, str | bytes) else f"the {type(x).__name__} {x!r:.80}"


def children_of(
    children: Any, op: Any, label: Any, local_grads: Any
) -> tuple[tuple[Any, ...], str, str, tuple[float, ...] | None]:
    """What a result was computed from, its operation, label, and slopes, as the constructors of
    micrograd (`Value(data, (a, b), "+")`) and microgpt (`Value(data, (a, b), (1, 1))`) take them;
    and `Value(data, "label")`."""
    if isinstance(children, str):
        children, label = (), children
    slopes = local_grads
    if not isinstance(op, str):
        op, slopes = "", op
    given = tuple(children)
    if slopes:
        slopes = tuple([number_of(s) for s in slopes])
        if len(slopes) != len(given):
            raise DTypeError(f"{len(given)} children with {len(slopes)} local gradients")
    return given, op, str(label), slopes or None
