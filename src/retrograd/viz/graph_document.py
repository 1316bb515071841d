"""The graph as a plain structure for programs that draw or search it: `document(graph)`.

It holds dicts, lists, strings, numbers and None only, so JSON holds it; `files.py` of this folder
writes and reads it. `docs/document-format.md` is the reference of the format, whose version is
`VERSION`.

Nodes that are not computed come after the graph's own nodes, which never use them, and the nodes of
bodies, the graphs that an operation holds, come last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import ShapeError
from retrograd.ir import Graph, Node, Source, TensorType, TupleType
from retrograd.ir.calls import calls_of
from retrograd.ops.leaf import Constant
from retrograd.viz.bodies import with_bodies
from retrograd.viz.called import Told, calls
from retrograd.viz.mathematics.operations import word
from retrograd.viz.mathematics.rules import Rules
from retrograd.viz.mathematics.variables import variables
from retrograd.viz.missing import Relatives, relatives
from retrograd.viz.scopes import scopes
from retrograd.viz.training_step import updates

Document = dict[str, Any]
Record = dict[str, Any]

VERSION = 2
LONGEST = 60  # characters of attributes shown
READABLE = 6  # elements of an array shown


def document(
    graph: Graph, forward: Graph | None = None, outputs: Sequence[str] | None = None
) -> Document:
    """The graph as nested dicts and lists; the module's docstring describes them.

    `forward` is a graph this one is the gradient of: its nodes are included even where the gradient
    needs none of them. `outputs` are names for the graph's outputs. Linear in the number of nodes.
    """
    return completed(essence(graph, shown(graph, forward), outputs))


def completed(doc: Document) -> Document:
    """A document with what follows from the rest of it: its edges, and the tree of its scopes."""
    nodes = doc["nodes"]
    doc["edges"] = [
        {"from": x, "to": r["id"], "slot": slot, "shape": nodes[x]["shape"]}
        for r in nodes
        for slot, x in enumerate(r["inputs"])
    ]
    doc["scopes"] = scopes([r["scope"] for r in nodes])
    return doc


def essence(
    graph: Graph, members: tuple[list[Node], Relatives], outputs: Sequence[str] | None = None
) -> Document:
    """The document without what follows from the rest of it, which a page does not hold; `members`
    is what `shown` found."""
    if outputs is not None and len(outputs) != len(graph.outputs):
        raise ShapeError(f"{len(outputs)} names for a graph of {len(graph.outputs)} outputs")
    nodes, kin = members
    number = {node: i for i, node in enumerate(nodes)}
    tables = Tables()
    records = _records(graph, nodes, number, kin, tables)
    step = updates(records)
    own = Counter(r["op"] for r in records if r["computed"])
    with_bodies(nodes, records, tables, _records)
    names = list(outputs) if outputs is not None else [y.name for y in graph.outputs]
    return {
        "format": "retrograd-graph",
        "version": VERSION,
        "name": graph.name,
        "nodes": records,
        "inputs": [number[x] for x in graph.inputs],
        "outputs": [number[y] for y in graph.outputs],
        "output_names": names,
        "ops": dict(own.most_common()),
        "sources": tables.sources.listed,
        "rules": tables.rules.listed,
        "calls": calls(tables.told, tables.sources),
        "words": {op: word(op) for op in sorted({r["op"] for r in records})},
        **({"updates": step} if step is not None else {}),
    }


def shown(graph: Graph, forward: Graph | None = None) -> tuple[list[Node], Relatives]:
    """The nodes of the document, without those of bodies, in the order of their ids."""
    kin = relatives(graph, forward)
    return [*graph.nodes, *kin.missing], kin


class Tables:
    """What many nodes share, listed once."""

    def __init__(self) -> None:
        self.sources = _Sources()
        self.rules = Rules()
        self.told: list[Told] = []
        self._types: dict[TensorType, tuple[str, str]] = {}

    def type(self, type: TensorType) -> tuple[str, str]:
        """A type and its shape as text."""
        found = self._types.get(type)
        if found is None:
            found = self._types[type] = str(type), _shape(type)
        return found


def _records(
    graph: Graph,
    nodes: Sequence[Node],
    number: dict[Node, int],
    kin: Relatives,
    tables: Tables,
) -> list[Record]:
    """One record for each node."""
    given = set(graph.inputs)
    found: list[Record] = []
    positions: dict[Node, list[int]] = {}
    for i, y in enumerate(graph.outputs):
        positions.setdefault(y, []).append(i)
    orders = _orders(nodes, kin)
    own = len(graph.nodes)
    called, assigned = calls_of(nodes), variables(nodes)
    for i, node in enumerate(nodes):
        inputs = () if node in given else node.inputs
        origin = kin.origin.get(node)
        call = called.get(node)
        type_text, shape = tables.type(node.type)
        found.append(
            {
                "id": i,
                "op": "input" if node in given else node.op,
                "family": "leaf" if node in given else _family(node),
                "name": node.name,
                "variable": assigned.get(node, ""),
                "attrs": "" if node in given else _attributes(node),
                "type": type_text,
                "shape": shape,
                "scope": node.scope if call is None else call.path,
                "source": tables.sources(node.source),
                "origin": None if origin is None else number[origin],
                "inputs": [number[kin.same.get(x, x)] for x in inputs],
                "role": _role(node, node in given, orders[node]),
                "order": orders[node],
                "outputs": positions.get(node, []),
                "computed": i < own,
                "rule": None if node in given else tables.rules(node),
                "body": None,
                "gradient": None,
            }
        )
        if node.source is not None and node.inputs:
            tables.told.append((found[-1], node.source, "" if call is None else call.shown))
    _mark_updates(found[:own])
    return found


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
    if isinstance(node.prim, Constant):
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
    """The topic of an op is the file or folder of `retrograd.ops` that declares it."""
    place = type(node.prim).__module__.split(".")
    if place[:2] != ["retrograd", "ops"]:
        return "other"
    return "control" if place[2] == "identity" else place[2]


def _attributes(node: Node) -> str:
    """The attributes as short text, without those that repeat the type or say nothing."""
    if isinstance(node.prim, Constant):
        return _value(node.attrs["value"])
    parts = []
    fields = getattr(node.prim, "__dataclass_fields__", {})
    for key, value in node.attrs.items():
        if (key == "shape" and value == node.shape) or (key == "dtype" and value == node.dtype):
            continue
        if value == () or (key in fields and value is fields[key].default):
            continue
        if any(isinstance(v, Graph) for v in (value if isinstance(value, tuple) else (value,))):
            continue  # shown as a body
        text = _value(value) if isinstance(value, np.ndarray) else str(value)
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
        self.listed: list[Record] = []
        self._known: dict[tuple[Any, int], int] = {}

    def __call__(self, source: Source | None) -> int | None:
        if not source:
            return None
        key = source.code, source.lasti
        if key not in self._known:
            self._known[key] = len(self.listed)
            self.listed.append(
                {
                    "file": source.cell or source.file,
                    "line": source.line,
                    "function": source.function,
                    "text": source.text,
                }
            )
        return self._known[key]


def place_of(record: Record, doc: Document) -> Record | None:
    """The source line of a node of a document."""
    at = record["source"]
    return None if at is None else doc["sources"][at]
