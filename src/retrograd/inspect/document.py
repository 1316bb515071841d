"""The graph as a plain structure for programs that draw or search it: `document(graph)`.

It holds dicts, lists, strings, numbers and None only, so `json.dumps` writes it. Version 1:

    format, version   "retrograd-graph", 1
    name              the graph's name
    nodes             a list in topological order, in which `id` is the position:
      id              int; the number that `str(graph)` prints, but for nodes not computed
      op, family      "reduce_sum", and the topic it belongs to: "reduce"
      name            the user's name for the node, or ""
      attrs           short text: "axes=(1,)"; of a constant, its value
      type, shape     "f32[N, 3]", "N×3" ("" for a scalar)
      scope           module path, or ""
      source          {"file", "line", "function", "text"}, or null
      origin          id of the forward node that a gradient node belongs to, or null
      inputs          ids, one for each use
      role            "input", "parameter" (an input with a value of its own), "constant",
                      "forward", "gradient", or "update" (made of gradients, by the user)
      order           0, or how often differentiated: 2 for the gradient of a gradient
      outputs         positions among the graph's outputs, usually []
      graphs          {attribute: position in the document's `graphs`} of an operation that holds
                      graphs, such as what a loop repeats; usually {}, and of nodes not computed
      computed        false for a forward node that is shown because gradient nodes belong to it
                      although the graph does not need its value
    edges             {"from", "to", "slot", "shape"}: input number `slot` of node `to`
    scopes            {"path", "name", "parent", "nodes"}: outer before inner, `parent` a position
                      in this list or null, `nodes` the ids of the nodes directly inside
    inputs, outputs   ids, in order
    output_names      a name for each output, "" where none is known
    graphs            documents of the graphs that operations hold, and of those that theirs hold;
                      each one once, before its first use
    ops               how many nodes there are of each op, the most frequent first

Nodes that are not computed come after the graph's own nodes, which never use them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.errors import ShapeError
from retrograd.inspect.missing import Relatives, relatives
from retrograd.inspect.scopes import scopes
from retrograd.ir import Graph, Node, Source, TensorType, TupleType, nested

Document = dict[str, Any]
Record = dict[str, Any]

VERSION = 1
LONGEST = 60  # characters of attributes shown
READABLE = 6  # elements of an array shown


def document(
    graph: Graph, forward: Graph | None = None, outputs: Sequence[str] | None = None
) -> Document:
    """The graph as nested dicts and lists; the module's docstring describes them.

    `forward` is a graph this one is the gradient of: its nodes are included even where the gradient
    needs none of them. `outputs` are names for the graph's outputs. Linear in the number of nodes.
    """
    if outputs is not None and len(outputs) != len(graph.outputs):
        raise ShapeError(f"{len(outputs)} names for a graph of {len(graph.outputs)} outputs")
    inner: dict[Graph, int] = {}
    for held in nested(graph):
        inner.setdefault(held, len(inner))
    return _document(graph, forward, outputs, inner) | {
        "graphs": [_document(held, None, None, inner) for held in inner]
    }


def _document(
    graph: Graph, forward: Graph | None, outputs: Sequence[str] | None, inner: dict[Graph, int]
) -> Document:
    """The document of one graph; `inner` are the positions of those that operations hold."""
    kin = relatives(graph, forward)
    nodes = [*graph.nodes, *kin.missing]
    number = {node: i for i, node in enumerate(nodes)}
    records = _records(graph, nodes, number, kin, inner)
    edges = [
        {"from": x, "to": r["id"], "slot": slot, "shape": records[x]["shape"]}
        for r in records
        for slot, x in enumerate(r["inputs"])
    ]
    names = list(outputs) if outputs is not None else [y.name for y in graph.outputs]
    return {
        "format": "retrograd-graph",
        "version": VERSION,
        "name": graph.name,
        "nodes": records,
        "edges": edges,
        "scopes": scopes([r["scope"] for r in records]),
        "inputs": [number[x] for x in graph.inputs],
        "outputs": [number[y] for y in graph.outputs],
        "output_names": names,
        "ops": dict(Counter(r["op"] for r in records if r["computed"]).most_common()),
    }


def _records(
    graph: Graph,
    nodes: Sequence[Node],
    number: dict[Node, int],
    kin: Relatives,
    inner: dict[Graph, int],
) -> list[Record]:
    """One record for each node."""
    given, places = set(graph.inputs), _Sources()
    found: list[Record] = []
    positions: dict[Node, list[int]] = {}
    for i, y in enumerate(graph.outputs):
        positions.setdefault(y, []).append(i)
    orders = _orders(nodes, kin)
    own = len(graph.nodes)
    for i, node in enumerate(nodes):
        inputs = () if node in given else node.inputs
        origin = kin.origin.get(node)
        found.append(
            {
                "id": i,
                "op": "input" if node in given else node.op,
                "family": "leaf" if node in given else _family(node),
                "name": node.name,
                "attrs": "" if node in given else _attributes(node),
                "type": str(node.type),
                "shape": _shape(node.type),
                "scope": node.scope,
                "source": places(node.source),
                "origin": None if origin is None else number[origin],
                "inputs": [number[kin.same.get(x, x)] for x in inputs],
                "role": _role(node, node in given, orders[node]),
                "order": orders[node],
                "outputs": positions.get(node, []),
                "graphs": _held(node, inner),
                "computed": i < own,
            }
        )
    _mark_updates(found[:own])
    return found


def _held(node: Node, inner: Mapping[Graph, int]) -> dict[str, int]:
    """The graphs that a node's operation holds, by attribute, as positions."""
    found = {k: inner.get(g) for k, g in node.attrs.items() if isinstance(g, Graph)}
    return {k: position for k, position in found.items() if position is not None}


def _orders(nodes: Iterable[Node], kin: Relatives) -> dict[Node, int]:
    """How many times the computation of each node was differentiated to make it."""
    orders: dict[Node, int] = {}
    for node in sorted(nodes, key=lambda n: n.id):
        if node.origin is None:
            orders[node] = 0
        else:
            origin = kin.origin.get(node)
            orders[node] = 1 + (0 if origin is None else orders.get(origin, 0))
    return orders


def _role(node: Node, given: bool, order: int) -> str:
    if given:
        return "input" if getattr(node.prim, "array", None) is None else "parameter"
    if node.op == "constant":
        return "constant"
    return "gradient" if order else "forward"


def _mark_updates(records: Sequence[Record]) -> None:
    """What the user made of gradients, such as the step of an optimizer, is of the role update."""
    derived = [False] * len(records)
    for i, r in enumerate(records):
        if r["role"] == "gradient" or any(derived[x] for x in r["inputs"]):
            derived[i] = True
            if r["role"] == "forward":
                r["role"] = "update"


def _shape(type: TensorType) -> str:
    """Sizes; of a node of several results those of each."""
    if isinstance(type, TupleType):
        return ", ".join(_shape(t) or "scalar" for t in type.items)
    return "×".join(map(str, type.shape))


def _family(node: Node) -> str:
    """The topic of an op is the module of `retrograd.ops` that declares it."""
    package, _, topic = type(node.prim).__module__.rpartition(".")
    if package == "retrograd.control":
        return "control"
    return topic if package == "retrograd.ops" else "other"


def _attributes(node: Node) -> str:
    """The attributes as short text, without those that repeat the type or say nothing."""
    if node.op == "constant":
        return _value(node.attrs["value"])
    parts = []
    fields = getattr(node.prim, "__dataclass_fields__", {})
    for key, value in node.attrs.items():
        if (key == "shape" and value == node.shape) or (key == "dtype" and value == node.dtype):
            continue
        if value == () or (key in fields and value is fields[key].default):
            continue
        text = _value(value) if isinstance(value, np.ndarray) else str(value)
        if isinstance(value, Graph):
            text = value.name or f"{len(value)} nodes"
        parts.append(f"{key}={text}")
    return _shortened(", ".join(parts))


def _value(array: np.ndarray[Any, Any]) -> str:
    """A number as a number, a short array as a list, a long one by its shape."""
    if array.ndim and array.size > READABLE:
        return f"{array.dtype} array of {'×'.join(map(str, array.shape))}"
    if array.dtype.kind not in "biu":
        array = array.astype(np.float64)
        texts = [f"{x:.6g}" for x in array.reshape(-1).tolist()]
    else:
        texts = [str(x) for x in array.reshape(-1).tolist()]
    return texts[0] if array.ndim == 0 else f"[{', '.join(texts)}]"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


class _Sources:
    """Source lines, each place looked up once: finding a line number walks a table."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, int], Record] = {}

    def __call__(self, source: Source | None) -> Record | None:
        if source is None:
            return None
        key = source.code, source.lasti
        if key not in self._known:
            self._known[key] = {
                "file": source.file,
                "line": source.line,
                "function": source.function,
                "text": source.text,
            }
        return self._known[key]
