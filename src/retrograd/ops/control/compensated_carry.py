"""Sums that grow from step to step of a loop, in twice the precision.

Those of float32 in float64, of float64 as a total and what was rounded off in each addition: so the
error does not grow with the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.ir import DType, Node, TensorType, complex64, complex128, float64, full
from retrograd.ops.elementwise import bitwise_and, cast, eq, ne, select
from retrograd.ops.identity import StopGradient

WIDE: dict[DType, DType] = {complex64: complex128}


def carried(type: TensorType) -> list[TensorType]:
    """The types of what a sum of such arrays is from step to step."""
    if type.dtype in (float64, complex128):
        return [type, type]
    return [type.with_dtype(WIDE.get(type.dtype, float64))]


def more(state: Sequence[Node], x: Node) -> list[Node]:
    """A sum with one more term."""
    if len(state) == 1:
        return [state[0] + cast(x, state[0].dtype)]
    total, rest = state
    # What is rounded off has no derivative: it is none of the exact sum's.
    a, b = StopGradient()(total), StopGradient()(x)
    both = a + b
    moved = both - a
    lost = (a - (both - moved)) + (b - moved)
    return [total + x, rest + lost]


def summed(state: Sequence[Node], dtype: DType) -> Node:
    """The value of a sum."""
    if len(state) == 1:
        return cast(state[0], dtype)
    total, rest = state
    both, zero = total + rest, full(0, total.type)
    some, finite = ne(rest, zero), eq(both - both, zero)
    return select(bitwise_and(some, finite), both, total)
