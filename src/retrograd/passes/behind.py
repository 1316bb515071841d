"""Sums that a scan only adds to, computed behind it, of all steps at once.

The gradient of a weight that every step uses is such a sum: of products of matrices, one for each
step, in a carry that nothing else reads. A step that adds to it goes through memory as large as the
weight, for a product of what may be two vectors. With the factors of all steps in stacks it is a
single product, over the steps too. The stacks are about as large as what the scan goes through:
where they would be much larger, things stay as they are. With a stack at hand, sums of it alone
(the gradient of a bias) are taken behind the scan as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from retrograd.control import Scan
from retrograd.ir import Graph, Node, Provenance, made_by, substitute
from retrograd.ops.control import Item
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceSum

LARGER = 4  # times what the scan goes through
SAME = frozenset(("permute", "reshape"))  # of a sum, the sum of these


def behind(graph: Graph) -> Graph:
    """The graph with such sums taken out of its scans."""
    new: dict[Node, list[Node]] = {}  # results of scans that were replaced

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "item" and node.inputs[0] in new:
            index: int = node.attrs["index"]
            return new[node.inputs[0]][index]
        if isinstance(node.prim, Scan):
            with made_by(Provenance(node.scope, node.source, node.origin)):
                found = _split(node.prim, inputs)
            if found is not None:
                new[node] = found
        return node if inputs == node.inputs else node.with_inputs(inputs)

    result = graph.rewrite(rule)
    return result if new else graph


@dataclass
class Sum:
    """What a carry adds up, and what it consists of: each part is a value that is added, and the
    product or the value within it that is summed over the steps."""

    carry: int
    parts: list[tuple[Node, Node]] = field(default_factory=list)

    @property
    def factors(self) -> list[Node]:
        """Whose stacks it takes."""
        return [x for _, inner in self.parts for x in _factors(inner)]


def _factors(inner: Node) -> Sequence[Node]:
    return inner.inputs if isinstance(inner.prim, DotGeneral | ReduceSum) else (inner,)


def _split(scan: Scan, given: Sequence[Node]) -> list[Node] | None:
    """The results of the scan with such sums behind it; None if there are none."""
    body, first = scan.body, scan.constants
    sums = _sums(scan)
    rows = dict(
        zip(body.inputs[first + scan.carries :], given[first + scan.carries :], strict=True)
    )
    fixed = set(body.inputs[:first])
    products = [s for s in sums if any(isinstance(x.prim, DotGeneral) for _, x in s.parts)]
    products = [s for s in products if fixed.isdisjoint(s.factors)]
    given_out = {y: k for k, y in enumerate(body.outputs) if k >= scan.carries}
    wanted = dict.fromkeys(x for s in products for x in s.factors if x not in rows)
    stacked = [x for x in wanted if x not in given_out]
    if not products or _size(stacked) > LARGER * _size(list(rows)):
        return None
    there = {*rows, *wanted}
    taken = {s.carry: s for s in sums if s in products or there.issuperset(s.factors)}
    outputs = list(body.outputs)
    for k in taken:
        outputs[k] = body.inputs[first + k]  # a carry that stays as it is
    op = Scan(
        Graph(body.inputs, [*outputs, *stacked], body.name),
        scan.carries, scan.scanned, scan.length, scan.reverse, scan.recompute,
    )  # fmt: skip
    y = op(*given)
    places = given_out | {x: len(outputs) + j for j, x in enumerate(stacked)}
    stacks = rows | {x: Item(places[x])(y) for x in wanted}
    results = [Item(k)(y) for k in range(len(outputs))]
    for k, s in taken.items():
        total = given[first + k]
        for part, inner in s.parts:
            whole = input_node(inner.type)
            (shaped,) = substitute([part], {inner: whole})
            total = total + substitute([shaped], {whole: _over_steps(inner, stacks)})[0]
        results[k] = total
    return results


def _over_steps(inner: Node, stacks: dict[Node, Node]) -> Node:
    """The sum over all steps."""
    given = [stacks[x] for x in _factors(inner)]
    prim = inner.prim
    if isinstance(prim, DotGeneral):
        a, b = (tuple(i + 1 for i in axes) for axes in (prim.a_contract, prim.b_contract))
        c, d = (tuple(i + 1 for i in axes) for axes in (prim.a_batch, prim.b_batch))
        return DotGeneral((0, *a), (0, *b), c, d)(*given)
    axes = tuple(i + 1 for i in prim.axes) if isinstance(prim, ReduceSum) else ()
    return ReduceSum((0, *axes))(*given)


def _sums(scan: Scan) -> list[Sum]:
    """The carries that are only added to."""
    body = scan.body
    users: dict[Node, int] = {}
    for node in body.body:
        for x in node.inputs:
            users[x] = users.get(x, 0) + 1
    for y in body.outputs:
        users[y] = users.get(y, 0) + 1
    found = []
    for k in range(scan.carries):
        own, after = body.inputs[scan.constants + k], body.outputs[k]
        if users.get(own) == 1 and after is not own and own.dtype.is_float:
            parts = _added(own, after, users)
            if parts is not None:
                found.append(Sum(k, parts))
    return found


def _added(own: Node, after: Node, users: dict[Node, int]) -> list[tuple[Node, Node]] | None:
    """The summands beside the carry, each with what is to be summed; None if it is no such sum."""
    parts, todo, seen = [], [after], False
    while todo:
        node = todo.pop()
        if node is own:
            seen = True
        elif node.op == "add" and users[node] == 1:
            todo += node.inputs
        else:
            parts.append((node, _within(node)))
    return parts if seen else None


def _within(part: Node) -> Node:
    """What a summand is another shape of."""
    while part.op in SAME:
        (part,) = part.inputs
    return part


def _size(nodes: Sequence[Node]) -> float:
    """How many numbers; infinite where sizes have names."""
    sizes = [x.type.size for x in nodes]
    return sum([s if isinstance(s, int) else math.inf for s in sizes])
