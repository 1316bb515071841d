"""Loops of as many steps as become known, for samples of which each has a number of its own.

One sample after the other does no step too many and keeps the records of one sample at a time. All
samples side by side make as many steps as the longest of them, which is faster where the numbers
are alike: vectors instead of numbers, products of matrices instead of vectors. Both compute the
same, so a `cond` that looks at the numbers chooses.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.ir import Dim, Graph, Node, TensorType, TupleType, full, int64, product
from retrograd.ops.control.body import closed, fresh
from retrograd.ops.control.scan import Scan
from retrograd.ops.elementwise import Cast, Elementwise, bitwise_and, keep_if, le, lt, select
from retrograd.ops.identity import Alias, Item, StopGradient
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceMax, ReduceSum
from retrograd.ops.shape import Concat, Expand, Permute, expand

MOST = 1 << 26  # bytes that records of all samples may take
SMALL = 64  # bytes for a step of a sample: so little work gains most from vectors
# Side by side if a sample makes, on average, one in so many of the steps of the longest.
PART, PART_OF_SMALL = 2, 4


def longest(counts: Node) -> Node:
    """The largest of some numbers of steps, which is 0 for no samples."""
    none = full(0, TensorType(int64, (1,)))
    return ReduceMax((0,))(Concat(0)(none, counts))


def alike(counts: Node, each: int) -> Node:
    """Whether samples are better gone through side by side: they have similar numbers of steps, of
    which the records, `each` bytes for a step of a sample, find room."""
    steps = ReduceSum((0,))(expand(longest(counts), counts.shape, (0,)))
    used = (PART_OF_SMALL if each <= SMALL else PART) * ReduceSum((0,))(counts)
    room = le(steps, full(MOST // max(each, 1), steps.type))
    return bitwise_and(le(steps, used), room)


def masked(body: Graph, dim: str) -> tuple[Graph, int] | None:
    """`body`, of loops over `dim` steps, as a graph of a first input more, the number of steps that
    count: those beyond leave everything as it is, so that any size that is not smaller will do.
    Also the bytes of what it keeps of each step.

    None if `body` does anything with records of steps but to make them in loops, to compute them
    element by element, to go through them in loops, and to add up all of them.
    """
    steps = Dim(dim)
    own = [input_node(x.type, x.name) for x in body.inputs]
    count = input_node(TensorType(int64, ()))
    new: dict[Node, Node] = dict(zip(body.inputs, own, strict=True))
    kept = 0
    for node in body.body:
        inputs = [new.get(x, x) for x in node.inputs]
        if isinstance(node.prim, Scan) and node.prim.length == steps:
            if dim in node.prim.body.dim_names or _mention(dim, node.inputs[: _before(node.prim)]):
                return None
            new[node] = _masked_scan(node.prim, inputs, count, steps)
        elif dim in node.prim.dim_names or _mention(dim, [node, *node.inputs]):
            if _adds_steps(node, steps):
                inputs = [
                    _counted(x, y, count, steps) for x, y in zip(node.inputs, inputs, strict=True)
                ]
            elif not _row_by_row(node, steps):
                return None
            new[node] = node.with_inputs(inputs) if node.inputs else node
        else:
            new[node] = node.with_inputs(inputs) if node.inputs else node
        if isinstance(node.prim, Item) and _mention(dim, [node]):
            size = product([d for d in node.type.shape if d != steps])
            if not isinstance(size, int):
                return None
            kept += size * node.dtype.dtype.itemsize
    return closed([count, *own], [new[y] for y in body.outputs], body.name), kept


def row_by_row(body: Graph, dim: str) -> bool:
    """Whether `body` does with records of `dim` steps what `masked` can do."""
    steps = Dim(dim)
    for node in body.body:
        if not (dim in node.prim.dim_names or _mention(dim, [node, *node.inputs])):
            continue
        if isinstance(node.prim, Scan) and node.prim.length == steps:
            if dim in node.prim.body.dim_names or _mention(dim, node.inputs[: _before(node.prim)]):
                return False
        elif not (_row_by_row(node, steps) or _adds_steps(node, steps)):
            return False
    return True


def _before(scan: Scan) -> int:
    """How many inputs are not gone through."""
    return scan.constants + scan.carries


def _mention(dim: str, nodes: Sequence[Node]) -> bool:
    return any(dim in x.type.dim_names for x in nodes)


def _row_by_row(node: Node, steps: Dim) -> bool:
    """Whether what is made of records of steps stays apart for each."""
    if isinstance(node.type, TupleType):
        return False
    axes = [d for d in node.type.shape if isinstance(d, Dim) and steps.names <= d.names]
    if isinstance(node.prim, Item):
        return axes in ([], [steps])
    plain = Elementwise | Cast | Expand | Permute | Iota | Alias | StopGradient
    return axes == [steps] and isinstance(node.prim, plain)


def _adds_steps(node: Node, steps: Dim) -> bool:
    """Whether it is a sum over all steps, of records or of products of two of them."""
    if not isinstance(node.prim, ReduceSum | DotGeneral) or not steps.names.isdisjoint(
        node.type.dim_names
    ):
        return False
    return all(
        [d for d in x.shape if isinstance(d, Dim) and steps.names <= d.names] == [steps]
        for x in node.inputs
    )


def _counted(record: Node, x: Node, count: Node, steps: Dim) -> Node:
    """A record, which is now `x`, with 0 in steps that do not count."""
    shape, axis = record.shape, record.shape.index(steps)
    others = tuple(i for i in range(len(shape)) if i != axis)
    position = Iota((steps,), 0, int64)()
    going = lt(position, expand(count, (steps,), (0,)))
    return keep_if(expand(going, shape, others), x)


def _masked_scan(scan: Scan, inputs: Sequence[Node], count: Node, steps: Dim) -> Node:
    """The node of a scan of which only the first `count` steps count."""
    own, outputs = fresh(scan.body)
    counted, position = (input_node(TensorType(int64, ())) for _ in range(2))
    constants, carries, xs = scan.parts(own)
    going = lt(position, counted)
    after = [_choose(going, y, x) for y, x in zip(outputs, carries, strict=False)]
    body = closed(
        [counted, *constants, *carries, *xs, position],
        [*after, *outputs[scan.carries :]],
        scan.body.name,
    )
    op = Scan(body, scan.carries, scan.scanned + 1, steps, scan.reverse, scan.recompute)
    return op(count, *inputs, Iota((steps,), 0, int64)())


def _choose(condition: Node, a: Node, b: Node) -> Node:
    return select(expand(condition, a.shape, tuple(range(a.type.rank))), a, b)
