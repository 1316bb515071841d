"""Which forward node each gradient node belongs to, and which of those the graph left out.

The gradient graph of `relu(a * b)` needs neither the relu nor anything behind it, so they are not
among its nodes; a picture of the backward pass without them is hard to read. They are found through
the origins of the gradient nodes. After a pass has rewritten a graph, the origins are nodes of the
graph before it; equal structure, or else an equal source line, tells which of the new nodes stand
for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from retrograd.ir import Graph, Node, reachable
from retrograd.ops.identity import Alias
from retrograd.ops.leaf import Constant


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
    same = _twins(graph, outside)
    strange = [n for n in outside if n not in same]
    missing: list[Node] = []
    if forward is None and _rewritten(graph, roots):
        same |= _alike(graph, strange)
    else:
        missing = _complete(own, strange, same)
    known = own.union(missing)
    # A rule may compute again what the forward pass did, outside of this graph: that stands for it.
    again = {inside for node, inside in same.items() if node.origin is None}
    origin = {}
    for node in (*graph.body, *missing):
        found = same.get(node.origin, node.origin) if node.origin is not None else None
        if found is not None and found in known and node not in again:
            origin[node] = found
    return Relatives(origin, same, missing)


def _rewritten(graph: Graph, roots: Iterable[Node]) -> bool:
    """Whether a pass made the graph anew: then its forward nodes are younger than the origins, and
    to show the forward nodes of the graph before would show everything twice."""
    youngest = max((n.id for n in roots), default=-1)
    derived: set[Node] = set()
    for node in graph.body:
        if node.origin is not None or any(x in derived for x in node.inputs):
            derived.add(node)
        elif node.inputs and node.id > youngest:
            return True
    return False


def _twins(graph: Graph, outside: Iterable[Node]) -> dict[Node, Node]:
    """For nodes outside the graph, the node inside that computes the same."""
    first: dict[Hashable, Node] = {}
    canonical: dict[Node, Node] = {}
    own = set(graph.nodes)

    def enter(node: Node) -> None:
        inputs = tuple([canonical.get(x, x) for x in node.inputs])
        if isinstance(node.prim, Alias):
            canonical[node] = inputs[0]
        elif inputs or isinstance(node.prim, Constant):
            canonical[node] = first.setdefault((node.prim, inputs, node.type), node)
        else:
            canonical[node] = node

    for node in graph.inputs:
        canonical[node] = node
    for node in graph.body:
        enter(node)
    for node in outside:
        enter(node)
    return {node: canonical[node] for node in outside if canonical[node] in own}


def _alike(graph: Graph, strange: Iterable[Node]) -> dict[Node, Node]:
    """For nodes of a graph before a pass, the forward node made at the same source line and scope,
    of the same operation where there is one, in order of occurrence."""
    by_op: dict[Hashable, list[Node]] = {}
    by_line: dict[Hashable, list[Node]] = {}
    for node in graph.body:
        if node.origin is None and node.source and node.inputs:
            line = node.scope, node.source.code, node.source.lasti
            by_op.setdefault((node.op, node.type, *line), []).append(node)
            by_line.setdefault(line, []).append(node)
    count: dict[Hashable, int] = {}
    found = {}
    for node in strange:
        if node.origin is None and node.source and node.inputs:
            line = node.scope, node.source.code, node.source.lasti
            key: Hashable = (node.op, node.type, *line)
            peers = by_op.get(key)
            if peers is None:
                key, peers = line, by_line.get(line)
            if peers is not None:
                found[node] = peers[min(count.get(key, 0), len(peers) - 1)]
                count[key] = count.get(key, 0) + 1
    return found


def _complete(own: set[Node], outside: Iterable[Node], same: dict[Node, Node]) -> list[Node]:
    """The nodes whose inputs can all be shown, in topological order."""
    found: dict[Node, None] = {}
    for node in outside:
        inputs = [same.get(x, x) for x in node.inputs]
        if isinstance(node.prim, Constant) or (
            inputs and all(x in own or x in found for x in inputs)
        ):
            found[node] = None
    return list(found)
