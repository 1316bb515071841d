"""Operations on the structure of graphs as calls of routines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.backends.kernel.call import Call, in_memory
from retrograd.ir import Node

ORDER = "dag_order"  # the routine's name
EACH = 8  # multiply-adds in whose time a node or an edge is put in order


def ordered_nodes(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """The order of nodes, for each graph of a stack."""
    (edges,), n = inputs, node.attrs["nodes"]
    e = edges.shape[-1]
    call = Call(
        ORDER, node.type, [n, e], node, batch=edges.type.rank - 2, fills=False, work=n,
        cost=EACH * (n + e), refuses=True,
    )  # fmt: skip
    return call(in_memory(edges))
