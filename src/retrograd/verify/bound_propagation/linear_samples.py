"""The axis of samples: where a program computes the rows of its inputs apart, bounds do so, too.

An axis is followed through each node that depends on a region. Where an operation mixes its
positions, or none is known for it, samples are not apart, and the whole is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from retrograd.ir import Graph, Node, TupleType
from retrograd.ops.conv import Conv
from retrograd.ops.elementwise import ELEMENTWISE, Cast
from retrograd.ops.identity import IdentityOp
from retrograd.ops.index import Gather
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.pool import MaxPool
from retrograd.ops.reduce import Reduction
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice
from retrograd.ops.windows import Windows


def sample_axes(
    graph: Graph, regions: Collection[Node], moving: Collection[Node]
) -> dict[Node, int]:
    """For every node that depends on a region, and what is added to one, the axis along which
    samples are; empty where the first axis of the regions and the outputs is none of samples."""
    sizes = {x.shape[0] if x.shape else 0 for x in regions}
    if len(sizes) != 1 or (size := sizes.pop()) in (0, 1) or not isinstance(size, int):
        return {}
    found: dict[Node, int] = dict.fromkeys(regions, 0)
    for node in graph.body:
        if node not in moving:
            continue
        if isinstance(node.type, TupleType):
            return {}
        axis = _axis(node, [found.get(x) if x in moving else None for x in node.inputs])
        if axis is None:
            return {}
        found[node] = axis
        for x in node.inputs:  # such as a bias, of which each sample takes its own part
            if (
                x not in moving
                and x.type.rank == node.type.rank
                and found.setdefault(x, axis) != axis
            ):
                return {}
    return found if all(found.get(y) == 0 for y in graph.outputs) else {}


def _axis(node: Node, axes: Sequence[int | None]) -> int | None:
    """Where the axis of the inputs is in the result, None where it is mixed or none is known."""
    if node.op in ELEMENTWISE or isinstance(node.prim, Cast | IdentityOp):
        known = {a for a in axes if a is not None}
        return known.pop() if len(known) == 1 else None
    for kind, follow in RULES:
        if isinstance(node.prim, kind):
            return follow(node, axes)
    return None


def _reduced(node: Node, axes: Sequence[int | None]) -> int | None:
    (a,), gone = axes, node.prim.axes  # type: ignore[attr-defined]
    return None if a is None or a in gone else a - sum(g < a for g in gone)


def _expanded(node: Node, axes: Sequence[int | None]) -> int | None:
    (a,), new = axes, node.prim.axes  # type: ignore[attr-defined]
    kept = [i for i in range(node.type.rank) if i not in new]
    return None if a is None else kept[a]


def _permuted(node: Node, axes: Sequence[int | None]) -> int | None:
    return node.prim.perm.index(axes[0])  # type: ignore[attr-defined]


def _reshaped(node: Node, axes: Sequence[int | None]) -> int | None:
    """The axis that has as many elements before it, and its size."""
    (a,), x = axes, node.inputs[0]
    assert a is not None
    before = math.prod(x.shape[:a])
    for i, d in enumerate(node.shape):
        if math.prod(node.shape[:i]) == before and d == x.shape[a]:
            return i
    return None


def _whole_axis(node: Node, axes: Sequence[int | None]) -> int | None:
    a, prim, x = axes[0], node.prim, node.inputs[0]  # Pad has a second one, what it pads with
    if a is None or any(fill is not None for fill in axes[1:]):
        return None
    if isinstance(prim, Slice):
        return a if (prim.starts[a], prim.stops[a], prim.steps[a]) == (0, x.shape[a], 1) else None
    if isinstance(prim, Pad):  # between elements, too, all samples read one number
        if any(prim.interior):
            return None
        return a if node.shape[a] == x.shape[a] and prim.low[a] == 0 else None
    return a if isinstance(prim, Flip) and a not in prim.axes else None


def _joined(node: Node, axes: Sequence[int | None]) -> int | None:
    known = {a for a in axes if a is not None}
    a = known.pop() if len(known) == 1 else None
    return None if a == node.prim.axis else a  # type: ignore[attr-defined]


def _dot(node: Node, axes: Sequence[int | None]) -> int | None:
    prim, (a, b) = node.prim, node.inputs
    assert isinstance(prim, DotGeneral)
    i, j = axes
    if i is not None and j is not None:
        paired = i in prim.a_batch and prim.b_batch[prim.a_batch.index(i)] == j
        return prim.a_batch.index(i) if paired else None
    lead = len(prim.a_batch)
    free_a, free_b = prim.free_axes(a.type.rank, b.type.rank)
    if i is not None:
        return lead + free_a.index(i) if i in free_a else None
    return lead + len(free_a) + free_b.index(j) if j in free_b else None


def _conv(node: Node, axes: Sequence[int | None]) -> int | None:
    return 0 if axes[0] == 0 and axes[1] is None else None


def _windows(node: Node, axes: Sequence[int | None]) -> int | None:
    a, x = axes[0], node.inputs[0]
    lead = x.type.rank - len(node.prim.sizes)  # type: ignore[attr-defined]
    return a if a is not None and a < lead else None


def _gathered(node: Node, axes: Sequence[int | None]) -> int | None:
    """Of the same positions in every sample."""
    prim = node.prim
    shared, axis = prim.shared, prim.axis  # type: ignore[attr-defined]
    if axes[1] is not None or shared or axes[0] is None or axes[0] >= axis:
        return None
    return axes[0]


RULES: tuple[tuple[type, Callable[[Node, Sequence[int | None]], int | None]], ...] = (
    (Reduction, _reduced),
    (Expand, _expanded),
    (Permute, _permuted),
    (Reshape, _reshaped),
    (Slice, _whole_axis),
    (Pad, _whole_axis),
    (Flip, _whole_axis),
    (Concat, _joined),
    (DotGeneral, _dot),
    (Windows, _windows),
    (Conv, _conv),
    (Gather, _gathered),
    (MaxPool, _windows),
)
