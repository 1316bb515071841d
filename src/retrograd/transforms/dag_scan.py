"""States of the nodes of a directed acyclic graph: tracing cells and messages into `DagScan`.

A cell is called once, with tensors whose number of rows has no value, and what it does becomes part
of the op. States and sums may be trees: their arrays lie side by side in one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograd import pytree
from retrograd.eager.dispatch import ArrayLike, op_function, wrap
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import traced
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.broadcasting import as_node
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import (
    Dim,
    Graph,
    Node,
    Provenance,
    Shape,
    TensorType,
    int64,
    made_by,
    product,
    provenance,
)
from retrograd.ir.source import user_source
from retrograd.ops.control import DagScan
from retrograd.ops.control.row_functions import ROWS, rows_of
from retrograd.ops.elementwise import cast
from retrograd.ops.leaf import Constant, Iota, input_node
from retrograd.ops.shape import Concat, reshape, slice_axis
from retrograd.ops.toposort import DagOrder
from retrograd.ops.toposort import parts as order_parts
from retrograd.tracing.scope import to_node

__all__ = ["count_up", "dag_order", "dag_scan", "order_parts"]


def count_up(size: Any) -> Any:
    """0, 1, ... up to a size that may be symbolic."""
    return Tensor(Iota((size,), 0, int64)())


class RowLayout(NamedTuple):
    """How the leaves of a tree lie in a row: their shapes without the rows, and the structure."""

    shapes: list[Shape]
    structure: Any

    @property
    def width(self) -> Any:
        total: int | Dim = 0
        for shape in self.shapes:
            total = total + product(shape)
        return total

    def unpack(self, rows: Node) -> list[Node]:
        """The leaves of some rows."""
        found, at = [], 0
        for shape in self.shapes:
            end = at + product(shape)
            part = slice_axis(rows, 1, at, end) if len(self.shapes) > 1 else rows
            found.append(reshape(part, (rows.shape[0], *shape)))
            at = end  # type: ignore[assignment]
        return found

    def tree(self, leaves: Sequence[Node], tracked: bool = False) -> Any:
        return pytree.unflatten(self.structure, [Tensor(x, tracked) for x in leaves])


@op_function
def dag_order(edges: ArrayLike, /, nodes: Any) -> Any:
    """The order of nodes that edges imply, as `ops.dag` describes it."""
    return DagOrder(nodes)(cast(as_node(edges), int64))


def dag_scan(
    cell: Callable[..., Any], message: Callable[..., Any], edges: Any, order: Any, nodes: Any,
    x: Any, edge: Any, state: Any,
) -> Any:  # fmt: skip
    """States of all nodes; `state` is a tree of `TensorType`s of a row, `x` and `edge` are trees of
    arrays with one row for each node and edge."""
    here = provenance()
    with made_by(Provenance(here.scope, user_source(), here.origin)):
        types, structure = pytree.flatten(state)
        dtypes = {t.dtype for t in types}
        if len(dtypes) != 1:
            raise DTypeError(f"dag_scan: a state is of one floating dtype, not {dtypes or 'none'}")
        (dtype,) = dtypes
        layout = RowLayout([t.shape for t in types], structure)
        sent = _TracedRowFunction(message, layout, edge, dtype)
        sums = sent.result
        made = _TracedRowFunction(cell, sums, x, dtype)
        if (made.result.shapes, made.result.structure) != (layout.shapes, layout.structure):
            raise ShapeError(
                f"dag_scan: the cell gives a state {_shown(made.result)}, but its states are "
                f"{_shown(layout)}; name the state's shape by state="
            )
        op = DagScan(nodes, sent.body, made.body, len(sent.rows), len(sent.shared), len(made.rows))
        y = op(to_node(edges, "dag_scan"), to_node(order, "dag_scan"),
               *sent.rows, *sent.shared, *made.rows, *made.shared)  # fmt: skip
        leaves = layout.unpack(slice_axis(y, 1, 0, layout.width))
        found = wrap(leaves, sent.tracked or made.tracked)
    return pytree.unflatten(layout.structure, found)


def _shown(layout: RowLayout) -> str:
    return str(
        pytree.unflatten(layout.structure, [f"[{', '.join(map(str, s))}]" for s in layout.shapes])
    )


class _TracedRowFunction:
    """A function of rows, traced. `rows` are the arrays it uses rows of, `shared` what it took from
    around it: values that do not depend on rows are computed once, outside."""

    def __init__(self, f: Callable[..., Any], first: RowLayout, rest: Any, dtype: Any) -> None:
        leaves, structure = pytree.flatten(rest)
        arrays = [to_node(x, "dag_scan") for x in leaves]
        start = input_node(TensorType(dtype, (ROWS, first.width)))
        given = [input_node(rows_of(x.type)) for x in arrays]
        rows = pytree.unflatten(structure, list(map(Tensor, given)))
        result = traced(f, first.tree(first.unpack(start)), rows)
        found, form = pytree.flatten(result)
        nodes = [as_node(y.node if isinstance(y, LazyTensor) else y) for y in found]
        for y in nodes:
            if y.dtype is not dtype or y.type.rank < 1 or y.shape[0] != ROWS:
                raise ShapeError(
                    f"dag_scan: {getattr(f, '__name__', type(f).__name__)} is given rows of "
                    f"{dtype} and has to give such rows, but gave {y.type} ({ROWS}: rows)"
                )
        self.result = RowLayout([y.shape[1:] for y in nodes], form)
        self.tracked = any(
            isinstance(y, LazyTensor) and y._requires_grad for y in (*found, *leaves)
        )
        flat = [reshape(y, (ROWS, product(y.shape[1:]))) for y in nodes]
        y = flat[0] if len(flat) == 1 else Concat(1)(*flat)
        inner, outer = _inside(y, [start, *given])
        used = [i for i, x in enumerate(given) if x in inner]
        self.rows = [arrays[i] for i in used]
        self.shared = outer
        self.body = _body([start, *[given[i] for i in used]], outer, y)


def _inside(y: Node, rows: Sequence[Node]) -> tuple[set[Node], list[Node]]:
    """What of a body's computation has to do with rows, and the values that this needs."""
    start = rows[0].id
    found: dict[Node, None] = {y: None}
    todo = [y]
    while todo:
        node = todo.pop()
        if node.id >= start:
            new = [x for x in node.inputs if x not in found]
            found.update(dict.fromkeys(new))
            todo += new
    inner: set[Node] = set()
    for node in sorted(found, key=lambda n: n.id):
        own = node in rows or (
            node.id >= start and (_of_rows(node) or not inner.isdisjoint(node.inputs))
        )
        plain = isinstance(node.prim, Constant) and node.prim.value.ndim == 0
        if own or plain:
            inner.add(node)
    needed: dict[Node, None] = {}
    for node in inner:
        needed.update(dict.fromkeys(x for x in node.inputs if x not in inner))
    if y not in inner:
        needed[y] = None
    return inner, sorted(needed, key=lambda n: n.id)


def _of_rows(node: Node) -> bool:
    """Whether the number of rows is part of what a node computes."""
    sizes = [d for v in node.attrs.values() for d in (v if isinstance(v, tuple) else (v,))]
    return "_rows" in node.type.dim_names or any(
        isinstance(d, Dim) and "_rows" in d.names for d in sizes
    )


def _body(rows: Sequence[Node], shared: Sequence[Node], y: Node) -> Graph:
    """A body, with inputs that have no names."""
    new = {x: input_node(x.type) for x in (*rows, *shared)}
    inputs = list(new.values())
    boundary = set(new)
    order: dict[Node, None] = {}
    todo = [y]
    while todo:
        node = todo.pop()
        if node not in order and node not in boundary:
            order[node] = None
            todo += node.inputs
    for node in sorted(order, key=lambda n: n.id):
        given = tuple([new[x] for x in node.inputs])
        new[node] = Node(node.prim, given, node.type, node.scope, node.source)
    return Graph(inputs, [new[y]])
