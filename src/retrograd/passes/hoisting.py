"""What a scan computes of its rows alone, computed for all steps at once, before the loop.

A step waits for the step before it, and works on what may be a single number. What does not depend
on carries need not wait: for all steps together it is one operation on stacks, which goes in
vectors, and of a product of each row with a matrix it makes one product of matrices. The gradient
of a scan is full of it: all of it but the cotangents themselves is known beforehand.

Not everything is worth a stack in memory. Taken out are products with what is the same in every
step, unless their results are much larger than the rows, and functions of less than a vector of
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.ir import Graph, Node, Provenance, TensorType, Trait, made_by, substitute
from retrograd.ops.control import Scan
from retrograd.ops.control.body import stacked
from retrograd.ops.elementwise import Cast, Elementwise
from retrograd.ops.identity import Alias, Item
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.passes.rewrite import Rule, RuleSet, with_new_inputs

VECTOR = 16  # numbers in one
LARGER = 4  # times the rows that a product is made of


def _hoisting(graph: Graph) -> Rule | None:
    if not any(isinstance(node.prim, Scan) for node in graph.body):
        return None
    new: dict[Node, list[Node]] = {}  # results of scans that were replaced

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node.prim, Item) and node.inputs[0] in new:
            index: int = node.attrs["index"]
            return new[node.inputs[0]][index]
        if isinstance(node.prim, Scan):
            with made_by(Provenance(node.scope, node.source, node.origin)):
                found = _split(node.prim, inputs)
            if found is not None:
                new[node] = found
        return with_new_inputs(node, inputs)

    return rule


HOIST = RuleSet("hoist out of scans", _hoisting)


def _split(scan: Scan, given: Sequence[Node]) -> list[Node] | None:
    """The results of the scan without what can be taken out of it; None if that is nothing."""
    body, first = scan.body, scan.constants + scan.carries
    taken = _worth(body, set(body.inputs[: scan.constants]), set(body.inputs[first:]))
    if not taken:
        return None
    flags = [k >= first for k in range(len(given))]
    whole, found = stacked(taken, body.inputs, flags, scan.length)
    stacks = substitute([y for y, _ in found], dict(zip(whole, given, strict=True)))
    inside = {y: input_node(y.type) for y in taken}
    outputs = substitute(body.outputs, {x: x for x in body.inputs} | inside)
    op = Scan(
        Graph([*body.inputs, *inside.values()], outputs, body.name),
        scan.carries, scan.scanned + len(taken), scan.length, scan.reverse, scan.recompute,
    )  # fmt: skip
    y = op(*given, *stacks)
    there = dict(zip(taken, stacks, strict=True))
    results = [Item(k)(y) for k in range(len(outputs))]
    for k, out in enumerate(body.outputs[scan.carries :], scan.carries):
        results[k] = there.get(out, results[k])
    return results


def _worth(body: Graph, constants: set[Node], rows: set[Node]) -> list[Node]:
    """The nodes to take out: what is made of rows and read by what is not, or is a result."""
    fixed = set(constants)  # the same in every step
    sources: dict[Node, set[Node]] = {x: {x} for x in rows}  # the rows that it is made of
    slow: dict[Node, bool] = dict.fromkeys(rows, False)
    ends: dict[Node, None] = {}
    for node in body.body:
        if Trait.INPUT not in node.prim.traits and fixed.issuperset(node.inputs):
            fixed.add(node)
            continue
        parts = [x for x in node.inputs if x in sources]
        known = len(parts) == sum(x not in fixed for x in node.inputs)
        if parts and known and _can_wait(node, fixed, sources):
            sources[node] = set().union(*[sources[x] for x in parts])
            slow[node] = any(slow[x] for x in parts) or _is_slow(node) or _is_product(node)
        else:
            ends.update(dict.fromkeys(parts))
    ends.update(dict.fromkeys(y for y in body.outputs if y in sources))
    return [y for y in ends if y not in rows and slow[y]]


def _is_slow(node: Node) -> bool:
    return not node.prim.traits.isdisjoint((Trait.TRANSCENDENTAL, Trait.DIVISION))


def _is_view(node: Node) -> bool:
    prim = node.prim
    return isinstance(prim, Alias) or (prim.arity == 1 and Trait.VIEW in prim.traits)


def _is_product(node: Node) -> bool:
    return isinstance(node.prim, DotGeneral)


def _can_wait(node: Node, fixed: set[Node], sources: dict[Node, set[Node]]) -> bool:
    """Whether a node of rows can be computed beforehand, as far as memory goes."""
    if isinstance(node.prim, DotGeneral):
        if not any(x in fixed for x in node.inputs) or _without_columns(node, node.prim, fixed):
            return False
        (x,) = (x for x in node.inputs if x in sources)
        size = sum(_size(row.type) for row in sources[x])
        return 0 <= _size(node.type) <= LARGER * size
    if isinstance(node.prim, Elementwise | Cast) or _is_view(node):
        return 0 <= _size(node.type) < VECTOR
    return False


def _without_columns(node: Node, prim: DotGeneral, fixed: set[Node]) -> bool:
    """Whether a stack would give columns to a right operand that has none: its sums would be taken
    in another order, and a pass changes no bit."""
    a, b = node.inputs
    _, columns = prim.free_axes(a.type.rank, b.type.rank)
    return b not in fixed and all(b.shape[i] == 1 for i in columns)


def _size(type: TensorType) -> int:
    """How many numbers; -1 where sizes have names."""
    return type.size if isinstance(type.size, int) else -1
