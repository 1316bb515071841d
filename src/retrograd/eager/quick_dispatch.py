"""Eager dispatch of unary and binary operations: those recorded before are looked up in the trace
cache, others are learned.

Here are operations of one and two operands; calls of any library function are in `call_cache.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.eager import listeners
from retrograd.eager.fast_path import MISSED, Operation, number_key
from retrograd.eager.immediate.dispatch import run_pair, run_single
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import FREED, ConcreteLeaf
from retrograd.eager.listeners import BLOCK, registered
from retrograd.eager.modes import grad_enabled, is_tracing, is_unseen
from retrograd.eager.program_cache import ANY_NUMBER, LOCK, is_argument, is_free
from retrograd.eager.segments import EXECUTIONS, grow_or_split, split, split_buffers
from retrograd.eager.trace_buffer import (
    CURRENT,
    NOW,
    TraceBuffer,
    current,
    pending,
    record_instead,
    runs_now,
)
from retrograd.eager.trace_cache import TraceNode, TraceSite
from retrograd.errors import RetrogradError
from retrograd.ir import Node, Provenance, Trait, made_by, provenance
from retrograd.ir.source import user_source
from retrograd.shared import contained


def buffer_for(handles: Sequence[LazyTensor]) -> TraceBuffer | None:
    """The buffer in which an operation on these is recorded, if it is recorded in one."""
    buffer, mixed, heard = None, False, bool(listeners.LISTENERS) or BLOCK.get() is not None
    for h in handles:
        own = h._buffer
        heard = heard or own.ordered
        if h._state.__class__ is TraceNode:
            mixed = mixed or (buffer is not None and own is not buffer)
            buffer = own
    if heard and (found := _with_listeners(handles)) is not MISSED:
        return found  # type: ignore[return-value]
    if mixed:
        buffers = [h._buffer for h in handles if h._trace_node is not None]
        return buffer_for(handles) if split_buffers(buffers, handles) else None
    if buffer is None:
        buffer = current()
        if buffer is NOW and not split_buffers(pending()):
            CURRENT.run = None
            return None
    elif not buffer.open:
        if buffer.executions > EXECUTIONS:  # it would keep all that was ever in it
            return buffer_for(handles) if split(buffer, handles) else None
        buffer.reopen()
    if buffer.made() >= buffer.limit:
        room = grow_or_split(buffer, handles)
        return buffer if buffer.open else buffer_for(handles) if room else None
    return buffer


def begin_run() -> bool:
    """Whether operations run at once from here on: C asks where nothing is recorded at the moment,
    which begins a recording if they do not."""
    if CURRENT.buffer.open or not runs_now() or current() is not NOW:
        return False
    if split_buffers(pending()):
        return True
    CURRENT.run = None
    return False


def _with_listeners(handles: Sequence[LazyTensor]) -> TraceBuffer | object | None:
    """The same where somebody listens. `MISSED`
    where none of them has to do with it."""
    buffers = [h._buffer for h in handles if h._buffer.is_taped()]
    if is_tracing() or is_unseen():
        return None if buffers or BLOCK.get() is not None else MISSED
    for x in registered():
        if (x.sees_all and not x.is_buffered) or any(
            h._trace_node is None and x.holds(h.leaf_or_node) for h in handles
        ):
            return None
    listener = BLOCK.get()
    if listener is None and buffers:
        listener = buffers[0].listener()
    return MISSED if listener is None else listener.buffer_for(handles, buffers)


def lookup_operand(buffer: TraceBuffer, h: LazyTensor) -> TraceNode | None:
    """What a handle is in a buffer; None if it cannot be in this buffer."""
    state: Any = h._state
    deferred = state.__class__ is TraceNode
    if deferred and h._buffer is buffer:
        return state
    if (deferred or buffer.ordered) and not buffer.take_in(h):
        return None
    node = state if state.__class__ is Node else h.leaf_or_node
    found = buffer.slots.get(node)
    if found is None:
        prim = node.prim
        if isinstance(prim, ConcreteLeaf):
            if prim.shared:
                node = h.node
            return buffer.slot(node, prim.freed)
        if node.inputs or Trait.INPUT in node.prim.traits or node in FREED or h._requires_grad:
            return None
        found = constant(buffer, node)
    return found


def constant(buffer: TraceBuffer, node: Node) -> TraceNode:
    """What a node that has no operands is in a buffer."""
    if isinstance(node.prim, ConcreteLeaf):
        return buffer.slot(node, node.prim.freed)
    site, known = buffer.site, buffer.slots.get(node)
    if known is not None:
        return known
    key = buffer.constant_key(node)
    found: TraceNode | None = site.calls.get(key)
    if found is None:
        with LOCK:
            found = site.calls[key] = site.trace_node(Node(node.prim, (), node.type))
    buffer.note(node, found)
    return found


def make_handle(buffer: TraceBuffer, trace_node: TraceNode, tracked: bool) -> Any:
    """A handle on a trace node; `MISSED` where the buffer of a tape is not open any more."""
    tracked = tracked and trace_node.floating
    if tracked and not grad_enabled():
        trace_node, tracked = _locked(trace_node.stop), False
    if trace_node.slot >= 0:
        same = LazyTensor.handle_class(buffer.arrays[trace_node.slot], tracked)
        if buffer.ordered:
            same.attach(buffer)
        return same
    new = LazyTensor.deferred(buffer, trace_node, tracked)
    if not buffer.ordered:
        if tracked and trace_node.order > buffer.last:
            buffer.last = trace_node.order
        buffer.add(new)
        return new
    with buffer.lock:  # of a tape nothing may get lost
        if not buffer.open:
            return MISSED  # another thread has closed it since it was looked at
        buffer.last = max(buffer.last, trace_node.order)
        buffer.add(new)
    return new


def next_in_program_order(
    buffer: TraceBuffer, found: TraceNode, given: Sequence[TraceNode], tracked: bool
) -> TraceNode | None:
    """The trace node of a result at this point of a recording; None if it has yet to be learned.

    Gradients are added up in the order in which trace nodes were learned. So that this is the order
    in which a program records, whatever was recorded from its line before, what a gradient may go
    through is in a buffer in the order of learning, and never twice: where the known trace node
    would have come before something that is there, it is the same computation `duplicate`, learned
    later."""
    counts = buffer.ordered or (tracked and found.floating and grad_enabled())
    if found.order > buffer.last or not counts:
        return found
    if any(found is x for x in given):
        return found
    behind = found.duplicate
    while behind is not None and behind.order <= buffer.last:
        behind = behind.duplicate
    return behind


def _locked(make: Callable[[], TraceNode]) -> TraceNode:
    with LOCK:
        return make()


def single(op: Operation, x: Any) -> Any:
    """Record an operation on one handle."""
    if not isinstance(x, LazyTensor):
        return MISSED
    if CURRENT.run is not None and runs_now():
        if (result := run_single(op, x)) is not MISSED:
            return result
        record_instead()
    buffer = buffer_for((x,))
    if buffer is NOW:
        return single(op, x)
    trace_node = lookup_operand(buffer, x) if buffer is not None else None
    if buffer is None or trace_node is None:
        return MISSED
    tracked = x._requires_grad
    found = _look(buffer, op, trace_node, None, tracked, (trace_node.node,))
    return MISSED if found is None else make_handle(buffer, found, tracked)


def pair(op: Operation, x: LazyTensor, other: Any) -> Any:
    """Record an operation on a handle and another or a number."""
    kind = other.__class__
    if CURRENT.run is not None and runs_now():
        if (result := run_pair(op, x, other)) is not MISSED:
            return result
        record_instead()
    if kind is float or kind is int:
        return _with_number(op, x, other)
    if not isinstance(other, LazyTensor):
        return MISSED
    buffer = buffer_for((x, other))
    if buffer is NOW:
        return pair(op, x, other)
    if buffer is None:
        return MISSED
    a, b = lookup_operand(buffer, x), lookup_operand(buffer, other)
    if a is None or b is None:
        return MISSED
    nodes = (b.node, a.node) if op.swapped else (a.node, b.node)
    tracked = x._requires_grad or other._requires_grad
    found = _look(buffer, op, a, b, tracked, nodes)
    return MISSED if found is None else make_handle(buffer, found, tracked)


def _with_number(op: Operation, x: LazyTensor, value: float) -> Any:
    buffer = buffer_for((x,))
    if buffer is NOW:
        return pair(op, x, value)
    trace_node = lookup_operand(buffer, x) if buffer is not None else None
    if buffer is None or trace_node is None:
        return MISSED
    tracked = x._requires_grad
    if not (op.numbers and trace_node.takes_numbers and is_free(value)):
        nodes = (value, trace_node.node) if op.swapped else (trace_node.node, value)
        found = _look(buffer, op, trace_node, number_key(value), tracked, nodes)
        return MISSED if found is None else make_handle(buffer, found, tracked)
    k = buffer.take()
    found = free_number(buffer, op, trace_node, k, tracked)
    if found is None:
        return MISSED
    buffer.numbers[k] = value
    return make_handle(buffer, found, tracked)


def free_number(
    buffer: TraceBuffer, op: Operation, trace_node: TraceNode, k: int, tracked: bool
) -> TraceNode | None:
    """The trace node of an operation with the number `k` of a buffer, whatever its value."""
    node = trace_node.node
    nodes = (ANY_NUMBER, node) if op.swapped else (node, ANY_NUMBER)
    return _look(buffer, op, trace_node, k, tracked, nodes, k)


def _look(
    buffer: TraceBuffer,
    op: Operation,
    trace_node: TraceNode,
    other: Any,
    tracked: bool,
    nodes: tuple[Any, ...],
    number: int | None = None,
) -> TraceNode | None:
    """The trace node of the result, made if it is new; None if it is not to be recorded in a
    buffer. `nodes` are the operands of the function, of which one stands for `number`."""
    table = trace_node.successors.get(op)
    found = table.get(other) if table is not None else None
    if found is not None:
        if found.order > buffer.last:
            return found
        found = next_in_program_order(buffer, found, (trace_node, other), tracked)
        if found is not None:
            return found
    return _learned(op, trace_node, other, nodes, number)


def _bind(site: TraceSite, node: Node, operand: Node, number: int) -> bool:
    """Note which constant of a node stands for a number of the recording, if one does."""
    bound = [c for c in node.inputs if c is not operand and is_argument(c)]
    if len(bound) == 1:
        site.numbers[bound[0]] = number
    return len(bound) == 1


@contained
def _learned(
    op: Operation,
    trace_node: TraceNode,
    other: Any,
    nodes: tuple[Any, ...],
    number: int | None,
) -> TraceNode | None:
    """The same of what is new."""
    here = provenance()
    if here.origin is not None:
        return None
    trace_node.site.learns()
    with LOCK, made_by(Provenance(here.scope, user_source(op.function), None)):
        try:
            node = op.function(*nodes)
        except (RetrogradError, TypeError):
            return None  # it fails again where it is recorded on nodes, with the right message
        if not isinstance(node, Node):
            return None
        if number is not None and not _bind(trace_node.site, node, trace_node.node, number):
            return None
        last = trace_node.site.newest
        found = trace_node.site.trace_node(node)
        # What it was given itself needs a handle of another kind if that is an array. Whatever else
        # there was before is no step of a recording: it has no `duplicate` behind it.
        if found.order > last and found.slot < 0:  # arrays have an order, and are no steps
            add_duplicate(trace_node.successors.setdefault(op, {}).setdefault(other, found), found)
        elif found.slot < 0 and (found is trace_node or found is other):
            trace_node.successors.setdefault(op, {})[other] = found
    return found


def add_duplicate(first: TraceNode, found: TraceNode) -> None:
    """Enter a trace node as the same computation as another, learned later."""
    while first.duplicate is not None:
        first = first.duplicate
    if found.order > first.order:
        first.duplicate = found
