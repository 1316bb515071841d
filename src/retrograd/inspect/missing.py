"""Which forward node each gradient node belongs to, and which of those the graph left out.

The gradient graph of `relu(a * b)` needs neither the relu nor anything behind it, so they are not
among its nodes; a picture of the backward pass without them is hard to read. They are found through
the origins of the gradient nodes. After a pass has rewritten a graph, the origins are nodes of the
graph before it; equal structure tells which of the new nodes stand for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from retrograd.ir import Graph, Node, reachable


@dataclass(frozen=True)
class Relatives:
    """`origin`: the forward node of each gradient node, where known. `same`: for nodes outside the
    graph, the node inside that computes the same. `missing`: forward nodes outside the graph."""

    origin: dict[Node, Node]
    same: dict[Node, Node]
    missing: list[Node]


def relatives(graph: Graph, forward: Graph | None = None) -> Relatives:
    """The forward nodes that the gradient nodes of a graph belong to."""
    own = set(graph.nodes)
    roots = [n.origin for n in graph.body if n.origin is not None]
    wanted = [*roots, *(forward.outputs if forward is not None else ())]
    outside = [n for n in reachable(wanted, stop=own) if n not in own]
    same, rewritten = _twins(graph, outside, roots)
    missing = _complete(own, [n for n in outside if n not in same], same)
    if rewritten and forward is None:
        missing = []
    known = own.union(missing)
    origin = {}
    for node in (*graph.body, *missing):
        found = same.get(node.origin, node.origin) if node.origin is not None else None
        if found is not None and found in known:
            origin[node] = found
    return Relatives(origin, same, missing)


def _twins(
    graph: Graph, outside: Iterable[Node], roots: list[Node]
) -> tuple[dict[Node, Node], bool]:
    """For nodes outside the graph, the node of the graph of the same structure; and whether a pass
    made the graph anew, which shows in forward nodes younger than what they were made from."""
    first: dict[Hashable, Node] = {}
    same: dict[Node, Node] = {}
    given = set(graph.inputs)
    youngest = max((n.id for n in roots), default=-1)
    rewritten = False

    def key(node: Node) -> Hashable:
        if not node.inputs and node.op != "constant":
            return node
        return node.prim, tuple([canonical.get(x, x) for x in node.inputs]), node.type

    canonical: dict[Node, Node] = {}
    for node in graph.nodes:
        canonical[node] = node if node in given else first.setdefault(key(node), node)
    for node in outside:
        twin = first.get(key(node))
        if twin is None:
            canonical[node] = node
            first[key(node)] = node
        else:
            canonical[node] = twin
            same[node] = same.get(twin, twin)
            if node.inputs and twin.origin is None and twin.id > youngest:
                rewritten = True
    return same, rewritten


def _complete(own: set[Node], outside: Iterable[Node], same: dict[Node, Node]) -> list[Node]:
    """The nodes whose inputs can all be shown, in topological order."""
    found: dict[Node, None] = {}
    for node in outside:
        inputs = [same.get(x, x) for x in node.inputs]
        if node.op == "constant" or (inputs and all(x in own or x in found for x in inputs)):
            found[node] = None
    return list(found)
