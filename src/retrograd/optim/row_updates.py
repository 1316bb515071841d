"""Steps of a table of which few rows were looked at, inside of programs.

The gradient of a gather is a scatter into an array of zeros of the size of the table, which an
optimizer would then read whole, to change few rows. Where the graph of the gradient says that it is
such a sum, and a row whose gradient is zero stays as it is, only the rows that were looked at are
read and written. The bits are the same, as the sums and the steps of these rows are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, Node, TensorType, full, int32, int64
from retrograd.ops.elementwise import add, cast
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import Constant, Iota
from retrograd.ops.scatter import ScatterSet
from retrograd.ops.shape import Concat, reshape, slice_axis
from retrograd.tuning import TUNING

SHARE = 4  # a table has at least so many rows for each one that is looked at


class RowGradient(NamedTuple):
    """The gradient of a table: positions of rows, which may repeat, and at each the gradient of its
    row, which is the whole one."""

    places: Node
    values: Tensor

    def read(self, x: Tensor) -> Tensor:
        """The rows of an array of the table's shape."""
        return Tensor(Gather(0)(x.node, self.places))

    def write(self, x: Tensor, rows: Tensor) -> Tensor:
        """The array with other rows, the same wherever a position repeats."""
        return Tensor(ScatterSet(0)(x.node, self.places, rows.node))


def row_gradient(g: Tensor) -> RowGradient | None:
    """A gradient by rows; None where its graph does not say that few are other than zero."""
    sums = _sums(g.node)
    counts = [s.inputs[1].type.size for s in sums]
    total, n = sum(counts), (*g.shape, 0)[0]
    if not sums or isinstance(total, Dim) or isinstance(n, Dim) or total * SHARE > n:
        return None
    flat = [cast(reshape(s.inputs[1], (k,)), int64) for s, k in zip(sums, counts, strict=True)]
    index = flat[0] if len(flat) == 1 else Concat(0)(*flat)
    place = _places(index, total, n)
    ends = np.cumsum([0, *counts]).tolist()
    parts = iter([slice_axis(place, 0, a, b) for a, b in itertools.pairwise(ends)])
    values = Gather(0)(_added(g.node, parts, total), place)
    return RowGradient(index, Tensor(values))


def _places(index: Node, total: int, n: int) -> Node:
    """For each of positions in a table of n rows one number below `total`, the same for all that
    are equal."""
    if total * (TUNING.sort_element_ns * math.log2(total + 1) + TUNING.search_value_ns) < (
        n * int32.itemsize * TUNING.byte_ns
    ):
        # Where it stands in order: what this takes does not grow with the table.
        row = Tensor(index)
        row = rg.where(row < 0, row + n, row)
        place: Node = rg.searchsorted(rg.sort(row), row).node
        return place
    # Positions of positions: what is left of them in a row is one place for all that are equal.
    start = full(0, TensorType(int32, (n,)))
    return Gather(0)(ScatterSet(0)(start, index, Iota((total,), 0, int32)()), index)


def _sums(g: Node) -> list[Node]:
    """The sums into zeros that a gradient is the sum of; none where it is something else."""
    if g.prim is add:
        parts = [_sums(x) for x in g.inputs]
        return [s for part in parts for s in part] if all(parts) else []
    if not isinstance(g.prim, ScatterAdd) or g.prim.axis != 0:
        return []
    start = g.inputs[0].prim
    zero = isinstance(start, Constant) and not (start.value.any() or np.signbit(start.value).any())
    return [g] if zero else []


def _added(g: Node, places: Iterator[Node], total: int) -> Node:
    """The same sum, of which a row stands at the place of one of its positions."""
    if g.prim is add:
        return add(*[_added(x, places, total) for x in g.inputs])
    updates = g.inputs[2]
    place = next(places)
    rest = g.shape[1:]
    start = full(0, TensorType(g.dtype, (total, *rest)))
    return ScatterAdd(0)(start, place, reshape(updates, (*place.shape, *rest)))
