"""Calls of library functions: those that were recorded before are looked up by their arguments.

There is a short way, for tensors and plain options, which exists twice (see `fast_path.py`), and
one that knows all that can be told apart by its value.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from types import EllipsisType
from typing import Any

import numpy as np

from retrograd.eager.conversion import as_array, returned
from retrograd.eager.fast_path import MISSED
from retrograd.eager.immediate.call_kind import PLAIN, Unfit, frozen
from retrograd.eager.immediate.dispatch import run_arrays, run_function, run_whole
from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.eager.leaf import leaf
from retrograd.eager.modes import grad_enabled
from retrograd.eager.program_cache import LOCK
from retrograd.eager.quick_dispatch import (
    add_duplicate,
    buffer_for,
    lookup_operand,
    make_handle,
    next_in_program_order,
)
from retrograd.eager.trace_buffer import (
    CURRENT,
    NOW,
    TraceBuffer,
    end_run,
    record_instead,
    runs_now,
)
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.weak_types import is_weak
from retrograd.errors import RetrogradError
from retrograd.ir import DType, Node, Provenance, made_by, provenance
from retrograd.ir.source import user_source
from retrograd.runtime.backend import Array
from retrograd.shared import contained

# -- calls with plain options ------------------------------------------------------------------
_INNER = frozenset((int, type(None), EllipsisType))  # told from each other without their types


def known_operand(buffer: TraceBuffer, h: LazyTensor) -> TraceNode | None:
    """What a handle is in a buffer already."""
    state: Any = h._state
    if state.__class__ is TraceNode:
        return state if h._buffer is buffer else None
    return buffer.slots.get(h.leaf_or_node)


def first_handle(args: Sequence[Any]) -> LazyTensor | None:
    """The first handle among arguments, and in lists that are arguments."""
    for x in args:
        if isinstance(x, LazyTensor):
            return x
        if x.__class__ is list or x.__class__ is tuple:
            for h in x:
                if isinstance(h, LazyTensor):
                    return h
    return None


def leading(args: Sequence[Any], first: LazyTensor) -> LazyTensor:
    """The handle that says which buffer is recorded in: the first one, unless it stands for an
    array, and another one is on a tape."""
    if first._state.__class__ is not TraceNode and not first._buffer.ordered:
        for x in args:
            for h in x if x.__class__ in (list, tuple) else (x,):
                if isinstance(h, LazyTensor) and h._buffer.ordered:
                    return h
    return first


def options(
    buffer: TraceBuffer, args: tuple[Any, ...], kwargs: dict[str, Any], handles: list[LazyTensor]
) -> tuple[Any, ...] | None:
    """The arguments of a call as a key: their values, their types, and the names of the last ones;
    trace nodes are in the places of handles, which are added to `handles`. None if there are others
    than tensors and plain values."""
    every = [*args, *kwargs.values()]
    values = [entry(buffer, a, False, handles) for a in every]
    if MISSED in values:
        return None
    if len(every) == 1 and isinstance(every[0], LazyTensor):
        return (), (), ()
    return tuple(values), tuple([a.__class__ for a in every]), tuple(kwargs)


def entry(buffer: TraceBuffer, a: Any, inner: bool, handles: list[LazyTensor]) -> Any:
    """An argument, or an element of one (`inner`), as part of a key; `MISSED` if it cannot be."""
    kind = a.__class__
    if isinstance(a, LazyTensor):
        handles.append(a)
        return known_operand(buffer, a) or MISSED
    if kind in (_INNER if inner else PLAIN):
        return a
    if kind is slice:
        parts = a.start, a.stop, a.step
        return parts if all(x is None or x.__class__ is int for x in parts) else MISSED
    if inner:
        return MISSED
    if kind is float:
        return repr(a)
    if kind is DType:
        return id(a)  # there is one object of each, whose hash is computed in Python
    if kind is not list and kind is not tuple:
        return MISSED
    items = tuple([entry(buffer, x, True, handles) for x in a])
    return MISSED if MISSED in items else items


# -- any library function ----------------------------------------------------------------------
class _Key:
    """Arguments as parts of a key, in which trace nodes take the places of handles.

    No closure, which would refer to itself and keep handles alive until the next collection.
    """

    __slots__ = ("handles", "parts", "where")

    def __init__(self, f: Callable[..., Any]) -> None:
        self.parts: list[Any] = [f]
        self.handles: list[LazyTensor] = []
        self.where: list[int] = []  # the places of handles among the parts

    def enter(self, a: Any, array: bool) -> Any:
        """Add an argument; returns it with arrays replaced by handles."""
        if array and isinstance(a, np.ndarray | np.generic) and not isinstance(a, float):
            if returned(a):
                raise Unfit
            a = LazyTensor.handle_class(leaf(np.array(as_array(a))))
        if array and isinstance(a, LazyTensor):
            self.where.append(len(self.parts))
            self.handles.append(a)
            self.parts.append(None)
            return a
        if array and isinstance(a, list | tuple):
            self.parts.extend((list, len(a)))
            return [self.enter(x, True) for x in a]
        self.parts.append(frozen(a))
        return a


def lookup_call(
    f: Callable[..., Any],
    is_array: Sequence[bool],
    rest: bool,
    arrays: frozenset[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The result of a library function, looked up by the trace nodes and the values of its
    arguments."""
    if CURRENT.run is not None and runs_now():
        result = run_function(f, is_array, rest, arrays, args, kwargs)
        if result is not MISSED:
            return result
        record_instead()
    if (found := _seen(f, args, kwargs)) is not None:
        return found
    key = _Key(f)
    try:
        given = [
            key.enter(a, is_array[i] if i < len(is_array) else rest) for i, a in enumerate(args)
        ]
        named = {}
        for name, a in kwargs.items():
            key.parts.append(name)
            named[name] = key.enter(a, name in arrays)
    except (Unfit, RetrogradError):
        return MISSED
    handles = key.handles
    buffer = buffer_for(handles) if handles else None
    if buffer is None:
        return MISSED
    if buffer is NOW:
        return lookup_call(f, is_array, rest, arrays, args, kwargs)
    tracked = False
    trace_nodes: dict[int, TraceNode] = {}
    for i, h in zip(key.where, handles, strict=True):
        trace_node = lookup_operand(buffer, h)
        if trace_node is None:
            return MISSED
        key.parts[i] = trace_nodes[id(h)] = trace_node
        tracked |= h._requires_grad
    call = tuple(key.parts)
    known = buffer.site.calls.get(call)
    if known:  # nothing is in it yet where another thread is learning the call
        first, found = known[0]
        if first > buffer.last or not (buffer.ordered or (tracked and grad_enabled())):
            return _held(buffer, found, tracked)
        at = bisect_right(known, buffer.last, key=itemgetter(0))
        if at < len(known):
            return _held(buffer, known[at][1], tracked)
    with LOCK:
        last = buffer.site.newest
        found = _learn(buffer, f, given, named, trace_nodes)
        if found is MISSED:
            return MISSED
        steps = [trace_node.order for trace_node in _trace_nodes(found) if trace_node.slot < 0]
        made = [order for order in steps if order > last]
        # What gives nothing but what there was is no step of a recording, and has no order.
        known = buffer.site.calls.setdefault(call, [])
        known.append((max(made, default=math.inf), found))
        if (
            isinstance(found, TraceNode)
            and found.slot < 0
            and (made or found in trace_nodes.values())
        ):
            _remember(buffer, f, args, kwargs, found)
    return _held(buffer, found, tracked)


def _seen(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call with tensors and plain options, if there was one like it; this is the
    short way, which exists twice, see `fast_path.py`."""
    x = first_handle(args)
    if x is None:
        return None
    lead = leading(args, x)
    buffer = lead._buffer
    if lead._state.__class__ is not TraceNode and not buffer.ordered:
        buffer = CURRENT.buffer
    trace_node = known_operand(buffer, x)
    table = trace_node.successors.get(f) if trace_node is not None and buffer.open else None
    if trace_node is None or table is None or buffer.made() >= buffer.limit:
        return None
    given: list[LazyTensor] = []
    found = table.get(options(buffer, args, kwargs, given))
    if found is None:
        return None
    tracked = any(h._requires_grad for h in given)
    trace_nodes = [
        trace_node for h in given if (trace_node := known_operand(buffer, h)) is not None
    ]
    found = next_in_program_order(buffer, found, trace_nodes, tracked)
    result = None if found is None else make_handle(buffer, found, tracked)
    return None if result is MISSED else result


def _remember(
    buffer: TraceBuffer,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    found: TraceNode,
) -> None:
    """Let `_seen` find the result of a call."""
    x = first_handle(args)
    trace_node = known_operand(buffer, x) if x is not None else None
    key = options(buffer, args, kwargs, []) if trace_node is not None else None
    if trace_node is not None and key is not None:
        add_duplicate(trace_node.successors.setdefault(f, {}).setdefault(key, found), found)


def _trace_nodes(found: Any) -> list[TraceNode]:
    """The trace nodes among the results of a function."""
    if isinstance(found, tuple):
        return [trace_node for x in found[1] for trace_node in _trace_nodes(x)]
    return [found] if isinstance(found, TraceNode) else []


@contained
def _learn(
    buffer: TraceBuffer,
    f: Callable[..., Any],
    args: Any,
    kwargs: Any,
    trace_nodes: dict[int, TraceNode],
) -> Any:
    """Run a library function on nodes over slots; the trace nodes of what it returns."""
    here = provenance()
    if here.origin is not None:
        return MISSED
    buffer.site.learns()
    with LOCK, made_by(Provenance(here.scope, user_source(f), None)):
        try:
            result = f(
                *[_node(a, trace_nodes) for a in args],
                **{k: _node(a, trace_nodes) for k, a in kwargs.items()},
            )
        except (RetrogradError, TypeError, ValueError):
            return MISSED
        return _as_trace_nodes(buffer, result)


def _node(a: Any, trace_nodes: dict[int, TraceNode]) -> Any:
    if isinstance(a, list):
        return [_node(x, trace_nodes) for x in a]
    return trace_nodes[id(a)].node if isinstance(a, LazyTensor) else a


def _as_trace_nodes(buffer: TraceBuffer, result: Any) -> Any:
    if isinstance(result, tuple | list):
        return type(result), [_as_trace_nodes(buffer, r) for r in result]
    return buffer.site.trace_node(result) if isinstance(result, Node) else result


def _held(buffer: TraceBuffer, found: Any, tracked: bool) -> Any:
    if isinstance(found, TraceNode):
        return make_handle(buffer, found, tracked)
    if isinstance(found, tuple):
        kind, items = found
        handles = [_held(buffer, x, tracked) for x in items]
        return MISSED if any(x is MISSED for x in handles) else collected(kind, handles)
    return found


def collected(kind: Any, items: list[Any]) -> Any:
    """A list, a tuple or a named tuple of items."""
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def computed(
    key: Sequence[Any],
    handles: Sequence[LazyTensor],
    make: Callable[[Sequence[LazyTensor]], list[LazyTensor]],
) -> list[Array] | None:
    """What `make` computes of tensors whose values are all at hand, as `replayed`, but at once;
    None where there is something to record.

    Tensors that stand for nodes, as gradients through transforms do, are computed first: on nodes
    nothing is looked up, so that all of this would be made anew each time."""
    if not runs_now():
        return None
    waiting = [h for h in handles if h._known() is None]
    if any(h._trace_node is None for h in waiting):
        evaluate(waiting)
    arrays = []
    for h in handles:
        array = h._known()
        if array is None or is_weak(h._state):
            return None
        arrays.append(array)
    try:
        parts = [frozen(x) for x in key]
    except Unfit:
        return None
    end_run()
    return run_arrays(parts, arrays, make)


def replayed(
    key: Sequence[Any],
    handles: Sequence[LazyTensor],
    make: Callable[[Sequence[LazyTensor]], list[LazyTensor]],
) -> list[LazyTensor]:
    """What `make` computes of handles, as one operation, looked up where it was recorded before.

    It has to be the same for equal keys, made of these handles and of numbers, to have nothing to
    do with gradients, and to hold no arrays: it may be kept.
    """
    try:
        parts = [frozen(x) for x in key]
    except Unfit:
        return make(handles)
    buffer = NOW if CURRENT.run is not None and runs_now() else buffer_for(handles)
    if buffer is NOW:
        whole = run_whole(parts, handles, make)
        return make(handles) if whole is MISSED else whole
    if buffer is None:
        return make(handles)
    trace_nodes = [lookup_operand(buffer, h) for h in handles]
    if None in trace_nodes:
        return make(handles)
    first = buffer.take()  # what is recorded depends on how numbers are counted
    call = (first, *parts, *trace_nodes)
    found = buffer.site.calls.get(call)
    # Unless another thread takes numbers of this buffer at the same time, they follow one another.
    if found is not None and all(buffer.take() == k for k in range(first + 1, found[2] + 1)):
        results, numbers, _ = found
        for k, x in numbers.items():
            buffer.numbers[k] = x
        return [make_handle(buffer, f, False) for f in results]
    made: list[LazyTensor] = buffer.uncut(lambda: make(handles))
    if all(h._buffer is buffer for h in made):
        numbers = buffer.numbers_from(first + 1)
        buffer.site.calls[call] = [h._trace_node for h in made], numbers, buffer.take()
    return made
