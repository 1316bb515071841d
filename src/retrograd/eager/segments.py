"""Cuts: a long recording becomes segments, each a program of its own.

Without cuts all that is recorded until somebody looks would be one program without loops. After so
many operations what somebody holds is computed and goes on as leaves that know their grad_fn, on a
new buffer. Where a recording repeats, it is cut at a multiple of its period, so that all segments
are the same trace nodes and their programs are found; a recording that does not repeat is cut
later, and interpreted.

A cut changes no bits: it is a look at all that is held, and gradients are added up through segments
in the order in which they would be added in one program (`segment_backward.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from retrograd.eager.grad_fn import GradFn, TapeSegment, grad_fn_of, next_number
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import known_as, leaf_handle
from retrograd.eager.modes import current_backend
from retrograd.eager.program_cache import COUNTS, LOCK
from retrograd.eager.trace_buffer import TraceBuffer, recorded_here, remember
from retrograd.eager.trace_cache import TraceNode, TraceSite, kept_for_gradient
from retrograd.eager.trace_program import TraceProgram
from retrograd.errors import RetrogradError
from retrograd.ir import Node, reachable
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.tiered import Patience
from retrograd.shared import contained

LONGEST = 8192  # handles in a buffer, after which the recording is cut whether it repeats or not
REPEATS = 16  # how often a recording has to repeat to be cut before
PERIOD = 128  # the longest period that is looked for
EXECUTIONS = 8  # after which a buffer is not continued: it would keep all that was ever in it


def grow_or_split(buffer: TraceBuffer, operands: Sequence[LazyTensor]) -> bool:
    """Of a buffer that is full, more room, or a cut, after which it is closed. False where that
    fails: what is wrong comes up when somebody looks."""
    with buffer.lock:
        made = buffer.made()
        if made < buffer.limit or not buffer.open:  # another thread was here
            return True
        if not buffer.ripe:
            period = detect_period(buffer)
            buffer.ripe = period > 0
            buffer.limit = made + -made % period if period else min(2 * made, LONGEST)
            if made < buffer.limit:
                buffer.site.room = 0 if period else buffer.limit
                return True
        if not split(buffer, operands):
            return False
        buffer.site.limit = made if buffer.ripe else 0
        return True


def detect_period(buffer: TraceBuffer) -> int:
    """After how many operations a recording repeats; 0: it does not, or not often."""
    nodes = [f.node for f in buffer.recorded()]
    what = [(n.prim, n.source and (n.source.code, n.source.lasti)) for n in nodes]
    for p in range(1, PERIOD + 1):
        n = REPEATS * p
        if n + p > len(what):
            break
        if what[-n:] == what[-n - p : -p]:
            return p
    return 0


@contained
def split(buffer: TraceBuffer, operands: Sequence[LazyTensor]) -> bool:
    """Compute all that somebody holds of a buffer, and close it. Handles go on as leaves; those
    that require a gradient know their grad_fn. False if the computation fails, where nothing is
    changed."""
    with buffer.lock:
        buffer.close()
        held = buffer.live_handles()
        held += [h for h in operands if h._buffer is buffer and not any(h is x for x in held)]
        buffer.stay(held)
        site, values = buffer.site, buffer.values
        trace_nodes = dict.fromkeys([f for h in held if (f := h._trace_node) is not None])
        wanted = [f for f in trace_nodes if f not in values]
        tracked = dict.fromkeys([f for h in held if h._requires_grad and (f := h._trace_node)])
        if wanted:
            leaves = _differentiable(buffer)
            key = ("cut", current_backend(), *wanted, None, *tracked, None, *leaves, None, *values)
            found = site.plans.get(key)
            if found is None:
                with LOCK:
                    found = site.plans[key] = _plan(site, wanted, list(tracked), leaves, values)
                if site.proven:
                    found[1].compile()
            else:
                COUNTS["hits"] += 1
            outputs, plan = found
            try:
                arrays = plan.run(buffer.arrays, values, buffer.numbers)
            except RetrogradError:
                return False
            values |= zip(outputs, arrays, strict=True)
        _go_on(buffer, held, list(trace_nodes if buffer.is_taped() else tracked))
        return True


def split_buffers(buffers: Iterable[TraceBuffer], operands: Sequence[LazyTensor] = ()) -> bool:
    """Cut buffers into segments. False where a computation fails, or where their recordings overlap
    with others that a gradient may go through: segments follow one another."""
    distinct = dict.fromkeys(buffers)
    histories = recorded_here()
    if not distinct.keys() <= set(histories):  # another thread may be recording there
        return False
    times = [t for x in histories for t in _times(x)]
    for buffer in distinct:
        own = _times(buffer)
        if buffer.ordered or (own and any(own[0] < t < own[-1] and t not in own for t in times)):
            return False
    return all(split(buffer, operands) for buffer in distinct)


def _number(buffer: TraceBuffer) -> int:
    """The number of what is cut from a buffer: when it was recorded, if that was after all that it
    is computed from."""
    grad_fns = [fn for x in buffer.arrays if (fn := grad_fn_of(x)) is not None]
    last = max([fn.segment.number for fn in grad_fns], default=-1)
    return next((t for t in _times(buffer) if t > last), None) or next_number()


def _times(history: Any) -> list[int]:
    """When something was recorded that a gradient may go through."""
    if not isinstance(history, TraceBuffer):
        return [history.number]
    openings = list(history.openings)  # other threads may record here, too
    lasts = [*[last for _, last in openings[1:]], history.last]
    return [t for (t, before), last in zip(openings, lasts, strict=True) if last > before]


def _differentiable(buffer: TraceBuffer) -> list[TraceNode]:
    """The slots that a gradient may be asked for."""
    return [
        f
        for x, f in buffer.slots.items()
        if grad_fn_of(x) is not None or leaf_handle(x) is not None
    ]


def _plan(
    site: TraceSite,
    wanted: Sequence[TraceNode],
    tracked: Sequence[TraceNode],
    leaves: Sequence[TraceNode],
    values: Mapping[TraceNode, Array],
) -> tuple[list[TraceNode], TraceProgram]:
    """The program of a cut: what is held, and of what the gradient needs that which takes long."""
    known = {f.node: f for f in values}
    at_hand = {*known, *[f.node for f in wanted]}  # when the gradient is asked for
    ends = [f.node for f in tracked]
    inside = reachable([*ends, *[f.node for f in wanted]], known)
    kept = kept_for_gradient(ends, [f.node for f in leaves], set(inside), at_hand)
    outputs = list(dict.fromkeys((*wanted, *map(site.trace_node, kept))))
    return outputs, TraceProgram(site, [f.node for f in outputs], known, patience=Patience.RUNS)


def _go_on(buffer: TraceBuffer, held: Sequence[LazyTensor], tracked: Sequence[TraceNode]) -> None:
    """Let the handles of a buffer be leaves. Those of `tracked` know their grad_fn: what a gradient
    may ask for, and all that is on a tape."""
    site, values, numbers = buffer.site, buffer.values, buffer.numbers
    if numbers == site.values:
        numbers = site.values  # nearly always the same: kept once
    else:
        site.values = numbers
    buffer.stay([])
    leaves: dict[TraceNode, Node] = {}
    if tracked:
        segment = TapeSegment(
            site, buffer.arrays, numbers, values, buffer.nodes, buffer.openings, list(tracked),
            _number(buffer),
        )  # fmt: skip
        remember(segment)
        for f in tracked:
            new = leaves[f] = known_as(values[f], f.node, f.freed, f.type)
            new.prim.grad_fn = GradFn(segment, f)  # type: ignore[attr-defined]
        buffer.became(segment, leaves)
    for h in held:
        trace_node = h._trace_node
        if trace_node is None or h._buffer is not buffer:
            continue
        if trace_node in leaves:
            h._cut(trace_node, leaves[trace_node], buffer)
        else:
            h._settle(values[trace_node], trace_node, site.has_freed and -1 in trace_node.slots())
