"""Places of extrema along the last axis: the extremum, then the first place that has it.

Both are reductions of whole vectors, where a search for value and place at once goes element by
element. Along other axes the search is side by side as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, TensorType, full, int32, int64
from retrograd.ops.elementwise import bitwise_or, cast, eq, ne, select
from retrograd.ops.leaf import Iota
from retrograd.ops.reduce import ArgMax, ArgMin, ReduceMax, ReduceMin
from retrograd.ops.shape import expand
from retrograd.passes.lowering.rules import lowers


@lowers(ArgMax)
def argmax(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """The first place of the largest element, or of the first NaN."""
    return _found(node, inputs[0], ReduceMax)


@lowers(ArgMin)
def argmin(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """The first place of the smallest element, or of the first NaN."""
    return _found(node, inputs[0], ReduceMin)


def _found(node: Node, x: Node, extremum: type[ReduceMax] | type[ReduceMin]) -> Node:
    axis: int = node.attrs["axis"]
    length = x.shape[axis]
    if axis != x.type.rank - 1:
        return node.prim(x)
    best = expand(extremum((axis,))(x), x.shape, (axis,))
    hits = eq(x, best)
    if x.dtype.is_float:  # the extremum of elements with a NaN is NaN
        hits = bitwise_or(hits, ne(x, x))
    places = int32 if isinstance(length, int) and length <= np.iinfo(np.int32).max else int64
    type = TensorType(places, x.shape)
    behind = full(np.iinfo(places.dtype).max, type)
    return cast(ReduceMin((axis,))(select(hits, Iota(x.shape, axis, places)(), behind)), node.dtype)
