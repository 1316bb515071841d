"""Gradients of functions that run now, without nodes: by trace nodes, or by calls that have run, as
those of `backward()` are.

The function gets tensors of their own identities: leaves for what wants no gradient itself, an
`alias` of what does. What was called before with arguments of the same types is not differentiated
again: the gradient of a trace node is known from the first time on. Where somebody outside may ask
for a gradient of the gradient, it is recorded, or made of calls, as what the function computed was.
Where anything else is going on (transforms around, tapes, traces) it is done on nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.fast_path import MISSED
from retrograd.eager.grad_fn import Output, grad_fn_of
from retrograd.eager.immediate.create_graph import gradients_with_graph, handle_of, key_of
from retrograd.eager.immediate.dispatch import run_same
from retrograd.eager.lazy_tensor import LazyTensor, evaluate, is_taped
from retrograd.eager.leaf import ConcreteLeaf, leaf, leaf_handle
from retrograd.eager.listeners import sees_all
from retrograd.eager.modes import active, current_backend, grad_enabled, is_tracing
from retrograd.eager.program_cache import LOCK
from retrograd.eager.quick_dispatch import make_handle
from retrograd.eager.segment_backward import backward_path, gradients, gradients_by_calls
from retrograd.eager.trace_buffer import TraceBuffer
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.weak_types import is_weak
from retrograd.ir import Node, full
from retrograd.ops.elementwise import add
from retrograd.ops.identity import Alias
from retrograd.ops.leaf import Constant
from retrograd.runtime.executors.nan_observer import CHECKED
from retrograd.tracing.scope import argument


def _same(x: ArrayLike, /) -> Any:
    """The same value under another identity."""
    return Alias()(x)


_recorded_same = op_function(_same)


def _alias(x: LazyTensor) -> LazyTensor:
    """The same of a tensor."""
    found = run_same(_same, x)
    return _recorded_same(x) if found is MISSED else found


@op_function
def _added(x: ArrayLike, y: ArrayLike, /) -> Any:
    """A gradient so far, and what is added to it."""
    return add(x, y)


def stand_ins(leaves: Sequence[Any]) -> list[Any] | None:
    """Tensors for a function to be called with, that have the values of arguments; None where that
    has to be done on nodes, or said there what is wrong."""
    if active() or is_tracing() or current_backend() == CHECKED:
        return None
    if sees_all() or is_taped(leaves):
        return None
    tracked = [isinstance(x, LazyTensor) and x._requires_grad for x in leaves]
    if any(tracked) and not grad_enabled():
        return None
    if not all(_is_recorded(x) for x, yes in zip(leaves, tracked, strict=True) if yes):
        return None
    others = [x for x, yes in zip(leaves, tracked, strict=True) if not yes]
    if not _computed(others):
        return None
    own = fresh_leaves([argument(x, "grad") for x in others])
    if own is None:
        return None
    made, handle = iter(own), LazyTensor.handle_class
    return [
        _alias(x) if yes else handle(next(made), True)
        for x, yes in zip(leaves, tracked, strict=True)
    ]


def _is_recorded(x: LazyTensor) -> bool:
    """Whether a tensor that wants a gradient is recorded, or a leaf, and no weak number."""
    state = x._state
    if isinstance(state, TraceNode | Output):
        return not state.freed and x._type.dtype.is_inexact
    if not isinstance(state, Node) or not isinstance(state.prim, ConcreteLeaf):
        return False
    return not state.prim.freed and state.dtype.is_inexact


def _computed(leaves: Sequence[Any]) -> bool:
    """Have the values of arguments at hand; False where that is not for a transform to do."""
    waiting = [x for x in leaves if isinstance(x, LazyTensor) and not _at_hand(x)]
    if any(x._trace_node is None and not is_weak(x.leaf_or_node) for x in waiting):
        return False
    evaluate(waiting)
    return True


def _at_hand(x: LazyTensor) -> bool:
    """Whether a value needs no computing: it is known, or as `zeros` and `full` make it."""
    state = x._state
    return x.is_computed or (isinstance(state, Node) and isinstance(state.prim, Constant))


def fresh_leaves(nodes: Sequence[Node]) -> list[Node] | None:
    """Leaves with the same values and identities of their own, if all are plain constants."""
    arrays = []
    for node in nodes:
        prim = node.prim
        if not node.dtype.is_inexact or node.type.dim_names:
            return None
        if isinstance(prim, Constant):
            arrays.append(prim.filled())
            continue
        if not isinstance(prim, ConcreteLeaf):
            return None
        if prim.grad_fn is not None or leaf_handle(node) is not None:
            return None
        arrays.append(prim.array)
    return [leaf(a, node.name, node.type) for a, node in zip(arrays, nodes, strict=True)]


def release(inner: Sequence[LazyTensor]) -> None:
    """The function that got these is done: nothing gets a gradient through leaves any more."""
    for x in inner:
        if (node := _own_leaf(x)) is not None:
            node.prim.handle = None  # type: ignore[attr-defined]


def _own_leaf(x: LazyTensor) -> Node | None:
    """The leaf that was made for an argument; None: it is an alias."""
    state = x._state
    if isinstance(state, Node) and isinstance(state.prim, ConcreteLeaf):
        return state if state.prim.grad_fn is None else None
    return None


def eager_gradients(value: Any, inner: Sequence[LazyTensor]) -> tuple[bool, list[Any]] | None:
    """Whether a gradient may be asked for through the value and its gradients, and these, with
    respect to `inner`; None where that has to be found out on nodes, or said there what is
    wrong."""
    if not isinstance(value, LazyTensor) or not value._requires_grad:
        return None
    if value.shape or not value.dtype.is_float:
        return None
    found = _by_calls(value, inner) if value._trace_node is None else _in_buffer(value, inner)
    if found is None:
        return None
    tracked, slopes = found
    zero = LazyTensor.handle_class
    return tracked, [
        zero(full(0, x._type), tracked) if g is None else g
        for g, x in zip(slopes, inner, strict=True)
    ]


def _in_buffer(value: LazyTensor, inner: Sequence[LazyTensor]) -> tuple[bool, list[Any]] | None:
    """The same of what was recorded."""
    trace_node, buffer = value._trace_node, value._buffer
    if trace_node is None or value._trace_node is not trace_node:
        return None  # another thread has made nodes of it meanwhile
    if buffer.is_taped() or trace_node.freed:  # the function uses what is on a tape
        return None
    wanted = _wanted(inner, buffer)
    reached = trace_node.slots()
    if wanted is None or -1 in reached:
        return None
    own = {w.slot for w in wanted if w is not None and w.slot >= 0}
    tracked = False
    for k in reached:
        node = buffer.arrays[k]
        prim: Any = node.prim
        if prim.replaced or prim.grad_fn is not None:  # which may lead to an argument
            return None
        if k not in own:
            tracked = tracked or leaf_handle(node) is not None
    asked = [w for w in wanted if w is not None and (w.slot < 0 or w.slot in reached)]
    with LOCK:
        if tracked:
            found = trace_node.with_graph(asked, buffer.last)
        else:
            found = trace_node.differentiated(asked)[1:]
    if not buffer.open:
        buffer.reopen()
    by_node = dict(zip(asked, found, strict=True))
    results = [None if w is None else by_node.get(w) for w in wanted]
    return tracked, [None if g is None else make_handle(buffer, g, tracked) for g in results]


def _wanted(inner: Sequence[LazyTensor], buffer: TraceBuffer) -> list[TraceNode | None] | None:
    """The trace nodes of arguments in a buffer, None for those that are not used in it; None where
    one is elsewhere."""
    found: list[TraceNode | None] = []
    for x in inner:
        own = _own_leaf(x)
        if own is not None:
            found.append(buffer.slots.get(own))
        elif x._trace_node is not None and x._buffer is buffer:
            found.append(x._trace_node)
        else:
            return None
    return found


def _by_calls(value: LazyTensor, inner: Sequence[LazyTensor]) -> tuple[bool, list[Any]] | None:
    """The same of what was not recorded, but computed call by call."""
    seed = np.ones((), value.dtype.dtype)
    leaves = [_own_leaf(x) for x in inner]
    plain = _of_leaves(value, seed, leaves) if None not in leaves else None
    if plain is not None:
        return False, plain
    if not isinstance(value._state, Output):
        return None
    states = [x._state if own is None else own for x, own in zip(inner, leaves, strict=True)]
    if any(
        own is None and not isinstance(s, Output) for s, own in zip(states, leaves, strict=True)
    ):
        return None
    found = gradients_with_graph(value._state, seed, [key_of(s) for s in states], _added)
    if found is None:
        return None
    constant = {s for s in leaves if s is not None}
    return True, [
        None if g is None else handle_of(g._replace(edge=None) if g.edge in constant else g)
        for g in found
    ]


def _of_leaves(value: LazyTensor, seed: Any, inner: Sequence[Any]) -> list[Any] | None:
    """The gradients by leaves that were made for arguments, as constants; None where a gradient may
    go to others."""
    by_calls = gradients_by_calls(value, seed, inner, alone=True)
    if by_calls is not None:
        found = {x: g for x, (_, g) in by_calls.items()}
    else:
        node = value.leaf_or_node
        path = None if grad_fn_of(node) is None else backward_path(node, inner)
        if path is None or any(x not in inner for x in path.ends):
            return None
        found = gradients(node, seed, path)
    return [LazyTensor.handle_class.of(found[x]) if x in found else None for x in inner]


def outside(result: Any, tracked: bool) -> Any:
    """Outputs of the function as the caller sees them: requiring a gradient only if an argument
    did, not because the transform asked for one."""
    if tracked:
        return result
    return pytree.map(
        lambda x: x.detach() if isinstance(x, LazyTensor) and x._requires_grad else x,  # type: ignore[attr-defined]
        result,
    )
