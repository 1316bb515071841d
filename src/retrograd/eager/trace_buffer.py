"""Trace buffers: what a thread has recorded and not yet executed, as trace nodes and the data in
their slots.

A tensor that was computed by a library function is a trace node in a buffer. Looking at it runs the
program of everything in the buffer that is needed and held by somebody; the program hangs on the
trace nodes, so a loop that repeats looks it up. Whatever asks for the nodes themselves (transforms,
tapes, graphs) gets them: the buffer is *dissolved*, its tensors go on as tensors on nodes.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from retrograd.eager import listeners
from retrograd.eager.fast_path import TraceBufferBase
from retrograd.eager.grad_fn import TapeSegment, full_history, next_number
from retrograd.eager.immediate_base import Run
from retrograd.eager.leaf import VALUES, ConcreteLeaf
from retrograd.eager.listeners import BLOCK, Listener
from retrograd.eager.modes import current_backend, is_tracing, is_unseen
from retrograd.eager.program_cache import COUNTS
from retrograd.eager.trace_cache import TraceNode, TracePart, TraceSite, fill, site_of
from retrograd.eager.trace_program import TraceProgram, co_evaluated
from retrograd.ir import Node
from retrograd.ir.source import user_place
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.background_compiler import BEHIND
from retrograd.shared import at_fork, contained, free, holding
from retrograd.tuning import TUNING

FULL = 512  # handles in a buffer after which it is looked whether to cut the recording


class RecordedTensor(Protocol):
    """What a buffer needs of the tensors recorded in it; `LazyTensor` says what is done."""

    _buffer: TraceBuffer
    _requires_grad: bool

    @property
    def _state(self) -> Any: ...

    @property
    def _trace_node(self) -> TraceNode | None: ...

    @property
    def leaf_or_node(self) -> Node: ...

    def _settle(self, array: Array, trace_node: TraceNode, freed: bool = False) -> None: ...

    def _leave(self, buffer: TraceBuffer) -> None: ...


class TraceBuffer(TraceBufferBase):
    """Arrays and numbers by slot, and the handles on what was computed from them.

    That somebody holds a handle decides only what is computed along with what is asked for.

    A buffer is full when `limit` handles were made. What is recorded for the first time asks, and
    what is known ends where that found the buffer full, so what is looked up need not.
    """

    __slots__ = (
        "__weakref__",
        "arrays",
        "computed",
        "executions",
        "lock",
        "nodes",
        "openings",
        "ripe",
        "seen",
        "site",
        "values",
    )  # fmt: skip
    lock_rank = 1  # where several are taken

    def __init__(self, site: TraceSite) -> None:
        super().__init__()
        self.site = site
        self.arrays: list[Node] = []  # leaves, by slot
        self.values: dict[TraceNode, Array] = {}  # what earlier looks have computed
        self.nodes: dict[Node, Node] = {}  # of trace nodes whose nodes were asked for
        self.limit = site.limit or site.room or FULL
        self.ripe = site.limit > 0  # whether the recording is cut then
        self.executions = 0  # how often something was computed
        self.computed = 0  # how many nodes
        self.openings: list[tuple[int, int]] = []
        self.seen = 0  # up to where `materialize` has found nothing that it would have to dissolve
        self.lock = threading.RLock()

    def slot(self, leaf: Node, freed: bool) -> TraceNode:
        """The trace node of an array in this buffer, which gets a slot at its first use."""
        found = self.slots.get(leaf)
        if found is None:
            with self.lock:
                found = self.slots.get(leaf)
                if found is None:  # no other thread was faster
                    found = self.site.leaf(len(self.arrays), leaf, freed)
                    self.arrays.append(leaf)
                    self.slots[leaf] = found
        return found

    def enter_leaf(self, h: RecordedTensor) -> bool:
        """Give the array that a handle stands for a slot, for C, which has found none; whether it
        has one now. Where somebody listens, or can edit the array, there is more to do."""
        node: Any = h._state
        prim = node.prim
        if listeners.LISTENERS or BLOCK.get() is not None:
            return False
        if not isinstance(prim, ConcreteLeaf) or prim.shared:
            return False
        self.slot(node, prim.freed)
        return True

    def is_looked_at_often(self) -> bool:
        """Whether values are looked at after every few operations: there is nothing to record."""
        return self.computed < self.executions * TUNING.looked_work

    def listener(self) -> Listener | None:
        """Whose buffer it is, if somebody's who is alive: see `tape/trace_buffer.py`."""
        return None

    def is_taped(self) -> bool:
        """Whether somebody listens to all that is recorded here."""
        return self.listener() is not None

    def constant_key(self, node: Node) -> Any:
        """By what the trace node of a constant is known."""
        return node.prim

    def note(self, node: Node, trace_node: TraceNode) -> None:
        """A constant is used as this trace node."""

    def became(self, segment: TapeSegment, leaves: Mapping[TraceNode, Node]) -> None:
        """It was cut: what handles stood for are leaves of a segment now."""

    def together(self) -> list[TraceBuffer]:
        """The buffers that become nodes when this one does."""
        return [self]

    def materialized(self) -> None:
        """It has become nodes."""

    def take_in(self, h: Any) -> bool:
        """Have a handle that is not recorded here stand for an array; whether that is possible."""
        return False

    def begin(self) -> None:
        """Record here from now on: a new opening, listed with what is behind `last`. Operations do
        not run at once any more, lest something is recorded between two of them."""
        CURRENT.run = None
        _list(self)  # not as it is made, when other threads would find half of a tape's
        opening, openings = (next_number(), self.last), self.openings
        if openings and openings[-1][1] == self.last:
            openings[-1] = opening
        else:
            openings.append(opening)
        super().begin()

    def part(self, held: Sequence[Any]) -> TracePart:
        """What has to be made for the buffer to be dissolved. Nothing more is recorded here."""
        self.close()
        self.stay([])
        outputs = [f for h in held if (f := h._trace_node) is not None] + [*self.values]
        arrays = self.arrays
        return TracePart(
            outputs, lambda k: full_history(arrays[k]), self.numbers, self.nodes, self.openings
        )

    def uncut(self, make: Callable[[], Any]) -> Any:
        """What `make` records here, as a whole: a call that does the same with each of many
        operands, as an optimizer's step, is no recording that repeats."""
        limit, self.limit = self.limit, sys.maxsize
        try:
            return make()
        finally:
            if self.made() >= limit and not self.ripe:
                limit = self.site.room = self.made() + FULL
            self.limit = limit

    def reopen(self) -> None:
        """Record here again, since what is recorded goes on from here."""
        CURRENT.buffer.close()
        CURRENT.buffer = self
        self.begin()

    def close(self) -> None:
        """Nothing more is recorded here, unless it goes on from what is here."""
        self.end()
        if CURRENT.buffer is self:
            CURRENT.buffer = NOWHERE  # so that the thread keeps no data alive


BUFFERS: set[weakref.ref[TraceBuffer]] = set()  # where something is recorded; some are gone
_PRUNE = [64]  # how many there may be before they are looked through


def _list(buffer: TraceBuffer) -> None:
    """Enter a buffer among `BUFFERS`, now and then without those that are gone. One at a time, so
    that none is lost that another thread enters."""
    if len(BUFFERS) > _PRUNE[0]:
        for ref in [ref for ref in list(BUFFERS) if ref() is None]:
            BUFFERS.discard(ref)
        _PRUNE[0] = 2 * len(BUFFERS) + 64
    BUFFERS.add(weakref.ref(buffer))


def _free() -> None:
    """In a child of fork: no buffer is locked by threads that it does not have."""
    for ref in list(BUFFERS):
        if (buffer := ref()) is not None:
            free(buffer.lock)


at_fork(in_child=_free)
NOWHERE = TraceBuffer(TraceSite())  # the buffer of what is not on one
NOW = TraceBuffer(TraceSite())  # in place of a buffer: operations run at once


class _Current(threading.local):
    buffer: TraceBuffer = NOWHERE
    run: Run | None = None  # the operations that run at once, if they do

    def __init__(self) -> None:
        # What the thread has recorded since it made nodes of all that there was.
        self.histories: list[weakref.ref[Any]] = []
        self.prune = 64  # how many there may be before they are looked through


CURRENT = _Current()


def current() -> TraceBuffer:
    """The buffer this thread records in."""
    buffer = CURRENT.buffer
    if not buffer.open:
        site = site_of(*user_place())
        if site.opens() and runs_now():
            CURRENT.run = Run(site)
            remember(CURRENT.run)
            return NOW
        buffer = _open(site)
    return buffer


def _open(site: TraceSite) -> TraceBuffer:
    """A buffer that is recorded in from now on."""
    if site.proven:
        BEHIND.forget()  # what ran will be part of the program of this
    buffer = CURRENT.buffer = TraceBuffer(site)
    buffer.begin()
    remember(buffer)
    return buffer


def runs_now() -> bool:
    """Whether operations may run at once here."""
    return (
        not listeners.LISTENERS
        and BLOCK.get() is None
        and current_backend() == "llvm"
        and not is_tracing()
        and not is_unseen()
    )


def listed_in() -> Run:
    """The run that lists a call: the one under way, unless code of others, which a collection of
    garbage may run at any time, has ended it meanwhile."""
    run = CURRENT.run
    if run is None:
        run = Run(TraceSite())
        remember(run)
    return run


def record_instead() -> None:
    """An operation cannot run at once: it is recorded, and what comes after it."""
    run = CURRENT.run
    if run is not None:
        _open(run.site)


def end_run() -> None:
    """A gradient is taken: what comes next is another recording."""
    run, CURRENT.run = CURRENT.run, None
    if run is None or run.calls < 2:  # the program of a single call is there already
        return
    run.site.ran(run.what, run.work / run.calls)


def looked() -> None:
    """Somebody looks, which ends a recording. It ends a run where much was computed since the last
    look; where somebody looks again and again there is nothing to record."""
    run = CURRENT.run
    if run is None:
        return
    if run.work - run.looked >= TUNING.looked_work:
        end_run()
    elif run.work >= TUNING.looked_runs:
        CURRENT.run = None
    else:
        run.looked = run.work


def pending() -> list[TraceBuffer]:
    """The buffers of this thread with something that a gradient may go through, in order."""
    found = [x for ref in CURRENT.histories if isinstance(x := ref(), TraceBuffer)]
    return [buffer for buffer in found if buffer.last and not buffer.ordered]


@contained
def execute(buffer: TraceBuffer, handles: Sequence[RecordedTensor]) -> None:
    """Compute what handles in a buffer stand for, and what else is held on the way."""
    with buffer.lock:
        values = buffer.values
        wanted = tuple(
            [f for h in handles if (f := h._trace_node) and h._buffer is buffer and f not in values]
        )
        held = buffer.live_handles()
        if not wanted:
            buffer.stay(held)
            return
        trace_nodes = tuple([h._trace_node for h in held])
        site = buffer.site
        key = (current_backend(), wanted, trace_nodes, tuple(values))
        found = site.plans.get(key)
        if found is None:
            known = {f.node: f for f in values}
            site.learns()
            outputs = co_evaluated(wanted, [f for f in trace_nodes if f], known, site)
            found = outputs, TraceProgram(site, [f.node for f in outputs], known)
            if site.proven:
                found[1].compile()
            site.plans[key] = found
        else:
            COUNTS["hits"] += 1
        outputs, plan = found
        buffer.executions += 1
        buffer.computed += len(plan.what.order)
        if buffer.executions >= TUNING.looks and buffer.is_looked_at_often():
            site.gives_up()
        buffer.close()
        try:
            arrays = plan.run(buffer.arrays, values, buffer.numbers)
        except BaseException:
            buffer.stay(held)
            raise
        results = dict(zip(outputs, arrays, strict=True))
        buffer.stay(_settled(buffer, held, results))
        _settled(buffer, handles, results)  # the buffer may have lost sight of one


def _settled(
    buffer: TraceBuffer, handles: Iterable[RecordedTensor], results: Mapping[TraceNode, Array]
) -> list[RecordedTensor]:
    """Give handles their values; those that stay in the buffer, since a gradient may ask for their
    history or they were not computed."""
    staying = []
    for h in handles:
        trace_node = h._trace_node
        if trace_node is None or h._buffer is not buffer:
            continue
        array = results.get(trace_node)
        stays = h._requires_grad or buffer.ordered
        if array is None or stays:
            staying.append(h)
        if array is not None:
            if stays:
                buffer.values[trace_node] = array
            else:
                h._settle(array, trace_node)
    return staying


def materialized_node(h: RecordedTensor) -> Node:
    """The node of a handle in a buffer: the buffer is dissolved."""
    buffer = h._buffer
    if h._trace_node is not None:
        materialize([buffer], [h])
    return h.leaf_or_node


def materialize(
    buffers: Iterable[TraceBuffer] = (), handles: Iterable[RecordedTensor] = ()
) -> None:
    """Let all the handles of buffers go on as handles on nodes. `handles` are some of them of which
    a buffer may have lost sight.

    The order of nodes is that of the order of sums, and has to be that in which they were recorded.
    So whatever else this thread has recorded that a gradient may go through becomes nodes, too,
    those of what was recorded before others first. It is asked for before this thread makes nodes
    that are not in a buffer.
    """
    buffers, handles = list(buffers), list(handles)
    done = False
    while not done:
        asked = dict.fromkeys([x for buffer in buffers for x in buffer.together()])
        known = recorded_here()
        recorded = [x for b in known if isinstance(b, TraceBuffer) for x in b.together()]
        all_buffers = dict.fromkeys((*asked, *recorded))
        # In one order, lest two threads wait for each other: tapes, which may have theirs, first.
        by_lock = {id(buffer.lock): buffer for buffer in all_buffers}
        ordered = sorted(by_lock.values(), key=lambda buffer: (buffer.lock_rank, id(buffer.lock)))
        job = partial(_as_nodes, asked, all_buffers, known, handles)
        done = holding([buffer.lock for buffer in ordered], job)


def _as_nodes(
    asked: Collection[TraceBuffer],
    buffers: Collection[TraceBuffer],
    known: Sequence[Any],
    handles: Iterable[RecordedTensor],
) -> bool:
    """Make nodes of those of `buffers` that are asked for, or that a gradient may go through. False
    where a tape of them, on which other threads may record, has got another one meanwhile."""
    if any(x not in buffers for buffer in buffers for x in buffer.together()):
        return False
    gone: dict[TraceBuffer, list[RecordedTensor]] = {}
    for buffer in buffers:
        if buffer not in asked and buffer.last == buffer.seen:
            continue
        buffer.seen = buffer.last
        if buffer in asked:
            buffer.close()
        held = buffer.live_handles()
        if buffer in asked or any(x._requires_grad for x in held):
            gone[buffer] = held
        else:
            buffer.stay(held)
    for h in handles:
        own = gone.get(h._buffer)  # none if another thread has changed it meanwhile
        if own is not None and h._trace_node is not None and not any(x is h for x in own):
            own.append(h)
    parts = [x.part() for x in known if not isinstance(x, TraceBuffer)]
    parts += [buffer.part(held) for buffer, held in gone.items()]
    CURRENT.histories = [ref for ref in CURRENT.histories if isinstance(ref(), Run)]
    CURRENT.histories += [weakref.ref(buffer) for buffer in buffers if buffer not in gone]
    fill(parts)
    for ref in CURRENT.histories:
        if isinstance(x := ref(), Run):
            x.forget()  # there are nodes of all of it
    for buffer, held in gone.items():
        for trace_node, array in buffer.values.items():
            VALUES[buffer.nodes[trace_node.node]] = array
        for handle in held:
            handle._leave(buffer)
    for buffer in gone:
        buffer.materialized()
    return True


def recorded_here() -> list[Any]:
    """The buffers, segments and calls of this thread that are still there."""
    found: list[Any] = []
    for ref in CURRENT.histories:
        x = ref()
        if isinstance(x, Run):
            found += x.alive()
        elif x is not None:
            found.append(x)
    return found


def remember(history: Any) -> None:
    """List what this thread has recorded."""
    histories = CURRENT.histories
    histories.append(weakref.ref(history))
    if len(histories) >= CURRENT.prune:
        histories = CURRENT.histories = [ref for ref in histories if ref() is not None]
        CURRENT.prune = 2 * len(histories) + 64
