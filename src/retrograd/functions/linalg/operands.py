"""Arguments of the functions of linear algebra as nodes."""

from __future__ import annotations

from typing import Any

from retrograd.errors import ShapeError
from retrograd.functions.broadcasting import alike, broadcast_shapes, broadcast_to
from retrograd.ir import Node, Shape


def inexact(*values: Any) -> list[Node]:
    """Nodes of one floating or complex dtype; integers and booleans become float32."""
    return alike(*values, floating=True)


def matrices(what: str, *values: Any) -> list[Node]:
    """The same, where each is a matrix or a stack of them."""
    nodes = inexact(*values)
    for x in nodes:
        if x.type.rank < 2:
            raise ShapeError(f"{what} takes matrices, or stacks of them, not {x.type}")
    return nodes


def square(what: str, a: Node) -> Node:
    """A square matrix or a stack of them; else a `ShapeError`."""
    if a.type.rank < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{what} takes square matrices, or stacks of them, not {a.type}")
    return a


def stacked_alike(*nodes: Node) -> list[Node]:
    """Matrices with their leading axes broadcast."""
    lead: Shape = broadcast_shapes(*(x.shape[:-2] for x in nodes))
    return [broadcast_to(x, (*lead, *x.shape[-2:])) for x in nodes]
