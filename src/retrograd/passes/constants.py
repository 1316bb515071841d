"""Looking at constants: splats, and tests of their value."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, full
from retrograd.ops.leaf import Constant

Array = np.ndarray[Any, Any]


def splat(x: Node) -> Array | None:
    """The value of a constant that is the same everywhere, as an array of rank 0."""
    prim = x.prim
    return prim.value if isinstance(prim, Constant) and not prim.value.ndim else None


def same_bits(a: Array, b: Array) -> bool:
    """Whether two scalars are the same: 0.0 and -0.0 differ, equal NaNs do not."""
    return a.tobytes() == b.tobytes()


def is_full(x: Node, value: float) -> bool:
    """Whether `x` is `value` everywhere, the sign of zero included."""
    found = splat(x)
    if found is None or found != value:
        return False
    return bool(value) or not x.dtype.is_float or np.signbit(found) == np.signbit(value)


def refill(x: Array, type: TensorType) -> Node:
    """The splat of the value of `x`, in the shape of `type`."""
    return Constant(x, type.shape)()


def zero(x: Node) -> bool:
    """Zero of either sign everywhere."""
    found = splat(x)
    return found is not None and not found


def nonzero(x: Node) -> bool:
    """Not zero anywhere (NaN is not zero)."""
    found = splat(x)
    return found is not None and bool(found != 0)


def all_ones(x: Node) -> bool:
    """True, or an integer of all bits set, everywhere."""
    found = splat(x)
    return found is not None and bool(np.invert(found) == 0)


def like(value: Any, x: Node) -> Node:
    """`value` everywhere, in the type of `x`."""
    return full(value, x.type)


def leaf_value(node: Node) -> Any:
    """The scalar that a constant has everywhere, or None."""
    value = node.attrs["value"]
    return value if value.size == 1 else None


def is_buffer(node: Node) -> bool:
    """Whether a node is an array that is at hand before the program runs."""
    return isinstance(node.prim, Constant) and leaf_value(node) is None
