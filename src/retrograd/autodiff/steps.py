"""The reverse walk with its steps written down, for those who want to watch it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from retrograd.autodiff.reverse import active
from retrograd.ir import Graph, Node, Provenance, full, made_by
from retrograd.ops.complex import conj

G = TypeVar("G", bound=Graph)


class Visit(NamedTuple):
    """One step of the reverse walk: a node, the cotangent that arrived at it, and for each input
    that receives something its position, what is added, and the sum so far."""

    node: Node
    upstream: Node
    parts: list[tuple[int, Node, Node]]


def gradient_steps(
    graph: G, outputs: Sequence[Node], wrt: Sequence[Node], cotangents: Sequence[Node] = ()
) -> tuple[G, list[Visit]]:
    """The graph that `gradient` makes, and the steps by which it comes about, in their order.

    `cotangents` are inputs for the outputs that are not real scalars, in order; scalars are seeded
    with 1. The nodes of the steps are nodes of the graph, but for those that `wrt` does not need.
    """
    given = iter(cotangents)
    found: dict[Node, Node] = {}
    stop = set(graph.inputs)
    path = active(outputs, set(wrt), stop)
    on_path = set(path)
    seeds = [
        next(given) if y.shape != () or y.dtype.is_complex else full(1, y.type) for y in outputs
    ]
    for y, g in zip(outputs, seeds, strict=True):
        if y in on_path:
            with made_by(Provenance(y.scope, y.source, y)):
                found[y] = found[y] + conj(g) if y in found else conj(g)
    visits = []
    for node in reversed(path):
        if node not in found or node in stop:
            continue
        parts = []
        with made_by(Provenance(node.scope, node.source, node)):
            passed = node.prim.vjp(found[node], node, *node.inputs)
            for slot, (x, part) in enumerate(zip(node.inputs, passed, strict=True)):
                if part is not None and x in on_path:
                    found[x] = found[x] + part if x in found else part
                    parts.append((slot, part, found[x]))
        visits.append(Visit(node, found[node], parts))
    results = [conj(found[x]) if x in found else full(0, x.type) for x in wrt]
    name = f"gradient of {graph.name or 'graph'}"
    return type(graph)((*graph.inputs, *cotangents), results, name), visits
