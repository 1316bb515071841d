"""Arguments of the functions of linear algebra as nodes."""

from __future__ import annotations

from typing import Any

from retrograd.errors import ShapeError
from retrograd.frontend.broadcasting import as_node, broadcast_shapes, broadcast_to
from retrograd.frontend.conversion import promote
from retrograd.ir import Node, Shape, float32
from retrograd.ops.elementwise import cast


def floats(*values: Any, plane: bool = False) -> list[Node]:
    """Nodes of one floating dtype, with `plane` or a complex one; integers and booleans become
    float32."""
    nodes = [as_node(v) for v in values]
    dtype = nodes[0].dtype
    for x in nodes[1:]:
        dtype = promote(dtype, x.dtype)
    kept = dtype.is_float or (plane and dtype.is_complex)
    return [cast(x, dtype if kept else float32) for x in nodes]


def matrices(what: str, *values: Any, plane: bool = False) -> list[Node]:
    """The same, where each is a matrix or a stack of them."""
    nodes = floats(*values, plane=plane)
    for x in nodes:
        if x.type.rank < 2:
            raise ShapeError(f"{what} takes matrices, or stacks of them, not {x.type}")
    return nodes


def stacked_alike(*nodes: Node) -> list[Node]:
    """Matrices with their leading axes broadcast."""
    lead: Shape = broadcast_shapes(*(x.shape[:-2] for x in nodes))
    return [broadcast_to(x, (*lead, *x.shape[-2:])) for x in nodes]
