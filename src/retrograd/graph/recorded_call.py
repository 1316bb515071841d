"""A graph called on what is being traced or differentiated: its nodes become part of that.

So gradients, `jit` and `vmap` go through the call of a graph as through any function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd import ir
from retrograd.eager.lazy_tensor import LazyTensor, is_taped, leaf
from retrograd.eager.lazy_tensor import evaluate as evaluate_tensors
from retrograd.eager.modes import grad_enabled, is_tracing
from retrograd.eager.weak_types import is_weak
from retrograd.errors import DTypeError, ShapeError, TraceError
from retrograd.functions.broadcasting import rounded
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, Node, substitute
from retrograd.ir.dim import evaluate
from retrograd.runtime.backend import bind
from retrograd.tracing.arguments import argument
from retrograd.tracing.scope import to_node


def is_recorded(values: Sequence[Any]) -> bool:
    """Whether a call on these values is part of something: a trace, a tape, or what somebody may
    ask for a gradient of."""
    tensors = [x for x in values if isinstance(x, LazyTensor)]
    if not tensors:
        return False
    if grad_enabled() and any(x._requires_grad for x in tensors):
        return True
    if is_tracing() or is_taped(tensors):
        return True
    try:
        evaluate_tensors(tensors)
    except TraceError:  # they stand for any array, as under `vmap`
        return True
    return False


def recorded(graph: ir.Graph, values: Sequence[Any]) -> tuple[Tensor, ...]:
    """The outputs of a graph as nodes computed from values. `ShapeError` and `DTypeError` as for a
    call on arrays."""
    nodes = [_node(x, v) for x, v in zip(graph.inputs, values, strict=True)]
    sizes = _sizes(graph.inputs, nodes)
    bound = ir.Graph.bind(graph, sizes) if sizes else graph
    made = substitute(bound.outputs, dict(zip(bound.inputs, nodes, strict=True)))
    asks = grad_enabled() and any(isinstance(x, LazyTensor) and x._requires_grad for x in values)
    return tuple(Tensor(y, asks and y.dtype.is_inexact) for y in made)


def _node(x: Node, value: Any) -> Node:
    if not isinstance(value, LazyTensor):
        return leaf(np.array(argument(x, value)))
    node = to_node(value, "a graph")
    return rounded(node, x.dtype) if is_weak(node) and node.dtype.kind == x.dtype.kind else node


def _sizes(inputs: Sequence[Node], nodes: Sequence[Node]) -> dict[str, Any]:
    """What the named sizes of inputs stand for: numbers, or sizes with names of their own."""
    if all(isinstance(d, int) for n in nodes for d in n.shape):
        arrays = [np.broadcast_to(np.empty((), n.dtype.dtype), n.shape) for n in nodes]  # type: ignore[arg-type]
        return dict(bind(inputs, arrays))
    found: dict[str, Any] = {}
    for x, n in zip(inputs, nodes, strict=True):
        if x.dtype is not n.dtype:
            raise DTypeError(f"input {x.name!r} is {x.type}, but the tensor given is {n.type}")
        if x.type.rank != n.type.rank:
            raise ShapeError(f"input {x.name!r} is {x.type}, but the tensor given is {n.type}")
        for d, given in zip(x.shape, n.shape, strict=True):
            if isinstance(d, Dim) and str(d) in d.names:
                found.setdefault(str(d), given)
    for x, n in zip(inputs, nodes, strict=True):
        for d, given in zip(x.shape, n.shape, strict=True):
            names = d.names if isinstance(d, Dim) else frozenset()
            if not names <= found.keys() or evaluate(d, found) != given:
                raise ShapeError(f"input {x.name!r} is {x.type}, but the tensor given is {n.type}")
    return found
