"""Patterns of what is read and written at positions, which may not be known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.index import Gather
from retrograd.runtime.backend import Array
from retrograd.transforms.sparse.known_values import KnownValues, shape_of, size_of
from retrograd.transforms.sparse.pattern import Pattern, joined, lines_of, moved, union


def gather(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Each element depends on the one at its position, or on its line if that is not known."""
    x, index = node.inputs
    if operands[0] is None or values(index) is not None:
        return moved(node, operands, values)
    line = lines_of(shape_of(x), (node.attrs["axis"],))
    rows = joined(line, size_of(x), operands[0])
    return rows[node.prim.reference(line, _positions(index, None)).reshape(-1)]


def _positions(index: Node, known: Array | None) -> Array:
    return np.zeros(shape_of(index), np.int64) if known is None else known


def scatter(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """What was there, and updates at their positions, or in their line if these are not known."""
    x, index, _ = node.inputs
    prim: Any = node.prim
    before, _, updates = operands
    parts = [] if before is None else [before]
    if updates is not None:
        at = values(index)
        line = lines_of(shape_of(x), (prim.axis,))
        places = np.arange(size_of(x)).reshape(shape_of(x)) if at is not None else line
        where = Gather(prim.axis, prim.shared).reference(places, _positions(index, at))
        found = joined(where, size_of(x), updates)
        parts.append(found if at is not None else found[line.reshape(-1)])
    return union(parts)
