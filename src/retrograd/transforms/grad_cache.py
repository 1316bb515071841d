"""Gradients of functions that run now, found by trace nodes, as those of `backward()` are.

What was called before with arguments of the same types is not differentiated again: the gradient of
a trace node is known from the first time on. Where anything else is going on (transforms around,
tapes, traces, arguments that want gradients themselves) it is done on nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.eager.grad_fn import grad_fn_of
from retrograd.eager.lazy_tensor import LazyTensor, evaluate, is_taped
from retrograd.eager.leaf import ConcreteLeaf, leaf, leaf_handle
from retrograd.eager.listeners import sees_all
from retrograd.eager.modes import current_backend, is_tracing
from retrograd.eager.program_cache import LOCK
from retrograd.eager.quick_dispatch import make_handle
from retrograd.eager.segment_backward import backward_path, gradients, gradients_by_calls
from retrograd.eager.weak_types import is_weak
from retrograd.ir import Node, full
from retrograd.runtime.executors.nan_observer import CHECKED
from retrograd.tracing.scope import is_differentiating


def force_arguments(leaves: Sequence[Any]) -> bool:
    """Have the values of arguments at hand; False where that is not for a transform to do."""
    if is_differentiating() or is_tracing() or current_backend() == CHECKED:
        return False
    if sees_all() or is_taped(leaves):
        return False
    waiting = [x for x in leaves if isinstance(x, LazyTensor) and not x.is_computed]
    if any(
        (x._trace_node is None and not is_weak(x.leaf_or_node)) or x._requires_grad for x in waiting
    ):
        return False
    evaluate(waiting)
    return True


def fresh_leaves(nodes: Sequence[Node]) -> list[Node] | None:
    """Leaves with the same values and identities of their own, if all are plain constants."""
    for node in nodes:
        prim = node.prim
        if not isinstance(prim, ConcreteLeaf) or prim.grad_fn is not None:
            return None
        if leaf_handle(node) is not None:
            return None
    return [leaf(node.prim.array, node.name, node.type) for node in nodes]  # type: ignore[attr-defined]


def release(nodes: Sequence[Node]) -> None:
    """The function that got these leaves is done: nothing gets a gradient through them any more."""
    for node in nodes:
        node.prim.handle = None  # type: ignore[attr-defined]


def cached_gradients(value: Any, inner: Sequence[Node]) -> tuple[Any, list[Any]] | None:
    """The value as a constant and its gradients by the leaves; None where that has to be found out
    on nodes, or said there what is wrong."""
    if not isinstance(value, LazyTensor) or not value._requires_grad:
        return None
    if value._trace_node is None:
        return _of_calls(value, inner)
    trace_node, buffer = value._trace_node, value._buffer
    if buffer.is_taped():  # the function uses what is on a tape
        return None
    reached = trace_node.slots()
    if (
        trace_node.freed
        or trace_node.type.shape
        or not trace_node.type.dtype.is_float
        or -1 in reached
    ):
        return None
    slots = {node: buffer.slots[node] for node in inner if node in buffer.slots}
    own = {slot.slot for slot in slots.values()}
    for k in reached:
        node = buffer.arrays[k]
        prim: Any = node.prim
        if k not in own and (prim.replaced or leaf_handle(node) is not None):
            return None
        if prim.grad_fn is not None:
            return None
    wanted = [slot for slot in slots.values() if slot.slot in reached]
    found = trace_node.value_and_grads.get(tuple(wanted))
    if found is None:
        with LOCK:
            found = trace_node.differentiated(wanted)
    if not buffer.open:
        buffer.reopen()
    constant, *gradients = [g if g is None else make_handle(buffer, g, False) for g in found]
    by_slot = dict(zip(wanted, gradients, strict=True))
    slopes = [by_slot.get(slots[node]) if node in slots else None for node in inner]
    zero = LazyTensor.handle_class
    return constant, [
        zero(full(0, node.type)) if g is None else g for g, node in zip(slopes, inner, strict=True)
    ]


def _of_calls(value: LazyTensor, inner: Sequence[Node]) -> tuple[Any, list[Any]] | None:
    """The same of what was not recorded, but computed call by call."""
    if value.shape or not value.dtype.is_float:
        return None
    seed = np.ones((), value.dtype.dtype)
    by_calls = gradients_by_calls(value, seed, inner)
    if by_calls is None:
        node = value.leaf_or_node
        path = None if grad_fn_of(node) is None else backward_path(node, inner)
        if path is None or any(x not in inner for x in path.ends):
            return None
        found = gradients(node, seed, path)
    elif any(x not in inner for x in by_calls):
        return None
    else:
        found = {x: g for x, (_, g) in by_calls.items()}
    handle = LazyTensor.handle_class
    constant = handle.of(value.value())
    return constant, [handle.of(found[x]) if x in found else handle(full(0, x.type)) for x in inner]
