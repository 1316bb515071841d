"""Forward mode: tangents pushed through the graph, in topological order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from retrograd.autodiff.names import fresh
from retrograd.errors import GradientError
from retrograd.ir import Graph, Node, Provenance, TupleType, full, made_by, reachable
from retrograd.ops.leaf import input_node
from retrograd.shared import contained

G = TypeVar("G", bound=Graph)


@contained
def pushforward(
    outputs: Sequence[Node],
    wrt: Sequence[Node],
    tangents: Sequence[Node],
    stop: Collection[Node] = (),
) -> list[Node | None]:
    """Tangents of the outputs, `sum_i (d outputs[k] / d wrt[i]) tangents[i]`; None means zero."""
    found: dict[Node, Any] = {}  # of a node of several results a list
    kept = {*wrt, *stop}
    for x, t in zip(wrt, tangents, strict=True):
        if t.type != x.type:
            raise GradientError(f"the tangent of {x.describe()} must be {x.type}, not {t.type}")
        if not x.dtype.is_inexact:
            raise GradientError(f"integers and booleans have no tangent: {x.describe()}")
        found[x] = t
    for node in reachable(outputs, {*stop, *found}):
        if node in found or node in stop or not node.type.is_inexact:
            continue
        parts = [found.get(x) for x in node.inputs]
        if all(part is None for part in parts):
            continue
        with made_by(Provenance(node.scope, node.source, node)):
            smooth = node.prim.smooth(*node.inputs)
            if smooth is None or any(x in kept for x in smooth.passed):
                result = node.prim.jvp(parts, node, *node.inputs)
            else:  # past inputs with a kink that the node does not have
                moving = {x: found[x] for x in smooth.ends if x in found}
                tangents = list(moving.values())
                (result,) = pushforward([smooth.node], list(moving), tangents, smooth.ends)
        if result is not None:
            if not isinstance(node.type, TupleType) and result.type != node.type:
                raise GradientError(
                    f"the forward rule of {node.op} gave {result.type}: {node.describe()}"
                )
            found[node] = result
    return [found.get(y) for y in outputs]


def tangent(graph: G) -> G:
    """The graph of the tangents: a tangent input is added for each floating input of `graph`, and
    the outputs are the tangents of its floating outputs."""
    wrt = [x for x in graph.inputs if x.dtype.is_inexact]
    names = fresh([f"t_{x.name or f'input{i}'}" for i, x in enumerate(wrt)], graph)
    extra = [input_node(x.type, name) for x, name in zip(wrt, names, strict=True)]
    ends = [y for y in graph.outputs if y.dtype.is_inexact]
    found = pushforward(ends, wrt, extra, set(graph.inputs))
    results = [full(0, y.type) if t is None else t for y, t in zip(ends, found, strict=True)]
    return type(graph)((*graph.inputs, *extra), results, f"tangent of {graph.name or 'graph'}")
