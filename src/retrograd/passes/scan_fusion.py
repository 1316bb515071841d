"""Two scans over the same steps, of which one computes all that the other does, made one.

The gradient of a scan runs it again to keep what it needs of each step, and a tangent runs it along
with what it is the tangent of. Each is right by itself; in one graph the steps are the same, and
one loop can give the results of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrograd.ir import Graph, Node, Provenance, made_by, substitute
from retrograd.ops.control import Scan
from retrograd.ops.control.body import closed
from retrograd.ops.identity import Item

Optimize = Callable[[Graph], Graph]


@dataclass
class Merged:
    """A scan that stands for two. `places` are the numbers of the results of each in it."""

    op: Scan
    inputs: list[Node]
    places: dict[Node, list[int]]


def merged(graph: Graph, optimize: Optimize) -> Graph:
    """The graph with pairs of such scans made one, as long as there are any."""
    while True:
        found = _pair(graph, optimize)
        if found is None:
            return graph
        graph = _rebuilt(graph, found)


def _pair(graph: Graph, optimize: Optimize) -> Merged | None:
    """A pair that can be merged."""
    scans = [n for n in graph.body if isinstance(n.prim, Scan)]
    if len(scans) < 2:
        return None
    below = _below(graph, scans)
    for j, b in enumerate(scans):
        for i in range(j):
            a = scans[i]
            if not below[b] >> i & 1 and _alike(a, b):
                found = _merge(a, b, optimize)
                if found is not None:
                    return found
    return None


def _below(graph: Graph, scans: Sequence[Node]) -> dict[Node, int]:
    """For every node the scans that it depends on, as bits."""
    number = {n: i for i, n in enumerate(scans)}
    found: dict[Node, int] = dict.fromkeys(graph.inputs, 0)
    for node in graph.body:
        bits = 0
        for x in node.inputs:
            bits |= found[x] | (1 << number[x] if x in number else 0)
        found[node] = bits
    return found


def _alike(a: Node, b: Node) -> bool:
    p, q = a.prim, b.prim
    assert isinstance(p, Scan)
    assert isinstance(q, Scan)
    same = (p.length, p.reverse, p.recompute) == (q.length, q.reverse, q.recompute)
    one, two = set(a.inputs), set(b.inputs)
    return same and (one <= two or two <= one)


def _merge(a: Node, b: Node, optimize: Optimize) -> Merged | None:
    """One scan for two, if each carry of one is a carry of the other."""
    p, q = a.prim, b.prim
    assert isinstance(p, Scan)
    assert isinstance(q, Scan)
    if p.carries > q.carries:
        a, b, p, q = b, a, q, p
    pa, pb = p.parts(a.inputs), q.parts(b.inputs)
    own_a, own_b = p.parts(p.body.inputs), q.parts(q.body.inputs)
    partner = []
    for init, x in zip(pa[1], own_a[1], strict=True):
        same = [
            k
            for k, (y, z) in enumerate(zip(pb[1], own_b[1], strict=True))
            if y is init and z.type == x.type and k not in partner
        ]
        if not same:
            return None
        partner.append(same[0])
    new: dict[Node, Node] = {}
    for x, k in zip(own_a[1], partner, strict=True):
        new[x] = own_b[1][k]
    constants, rows = list(own_b[0]), list(own_b[2])
    given, stacks = list(pb[0]), list(pb[2])
    for own, outer, here, there in (
        (own_a[0], pa[0], constants, given),
        (own_a[2], pa[2], rows, stacks),
    ):
        for x, y in zip(own, outer, strict=True):
            if y in there:
                new[x] = here[there.index(y)]
            else:
                here.append(x)
                there.append(y)
                new[x] = x
    outputs_a = substitute(p.body.outputs, new)
    inputs = [*constants, *own_b[1], *rows]
    # Equal nodes become one, and show whether the carries are the same after a step.
    both = optimize(closed(inputs, [*q.body.outputs, *outputs_a], q.body.name))
    after_b, after_a = both.outputs[: len(q.body.outputs)], both.outputs[len(q.body.outputs) :]
    if any(after_b[k] is not after_a[i] for i, k in enumerate(partner)):
        return None
    places_b = list(range(len(after_b)))
    places_a = list(partner)
    outputs = list(after_b)
    for y in after_a[p.carries :]:
        known = [k for k in range(q.carries, len(outputs)) if outputs[k] is y]
        if not known:
            outputs.append(y)
            known = [len(outputs) - 1]
        places_a.append(known[0])
    op = Scan(
        Graph(both.inputs, outputs, q.body.name),
        q.carries,
        len(rows),
        q.length,
        q.reverse,
        q.recompute,
    )
    return Merged(op, [*given, *pb[1], *stacks], {a: places_a, b: places_b})


def _rebuilt(graph: Graph, found: Merged) -> Graph:
    """The graph with the merged scan, which comes as soon as all that it reads is there."""
    new: dict[Node, Node] = {x: x for x in graph.inputs}
    scan: list[Node] = []
    earlier = min(found.places, key=lambda n: n.id)
    todo = list(reversed(graph.outputs))
    while todo:
        node = todo[-1]
        if node in new:
            todo.pop()
            continue
        needs = found.inputs if node in found.places else node.inputs
        missing = [x for x in needs if x not in new]
        if missing:
            todo += reversed(missing)
            continue
        todo.pop()
        if node in found.places:
            if not scan:
                with made_by(Provenance(earlier.scope, earlier.source, earlier.origin)):
                    scan.append(found.op(*[new[x] for x in found.inputs]))
            new[node] = scan[0]
        elif isinstance(node.prim, Item) and node.inputs[0] in found.places:
            new[node] = Item(found.places[node.inputs[0]][node.attrs["index"]])(scan[0])
        else:
            inputs = tuple([new[x] for x in node.inputs])
            new[node] = node.with_inputs(inputs)
    return graph.with_outputs([new[y] for y in graph.outputs])
