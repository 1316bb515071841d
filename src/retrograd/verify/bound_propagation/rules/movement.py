"""What moves elements without changing them: the meaning of the op, applied to both ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice, SliceSet
from retrograd.ops.windows import Windows
from retrograd.verify.bound_propagation.interval import Interval, Rectangle
from retrograd.verify.bound_propagation.propagation import rule


def moved(f: Callable[..., Any], *given: Any) -> Any:
    """A function that only moves elements of arrays, of intervals of these."""
    if any(isinstance(x, Rectangle) for x in given):
        return Rectangle(*[moved(f, *[x[i] for x in given]) for i in range(2)])
    lower = f(*[x.lower for x in given])
    points = all(x.upper is x.lower for x in given)
    upper = lower if points else f(*[x.upper for x in given])
    return Interval(lower, upper, moved_nan(f, given))


def moved_nan(f: Callable[..., Any], given: Any) -> Any:
    nans = [x.nan for x in given]
    if all(nan is False for nan in nans):
        return False
    if len(nans) == 1 and np.ndim(nans[0]) == 0:
        return nans[0]
    found = f(*[np.broadcast_to(nan, x.shape) for nan, x in zip(nans, given, strict=True)])
    return found if found.any() else False


@rule(Expand, Reshape, Permute, Slice, SliceSet, Pad, Flip, Concat, Windows)
def movement(node: Node, *given: Any) -> Any:
    return moved(node.prim.reference, *given)
