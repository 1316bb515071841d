"""`TapeBuffer`, a trace buffer that a `Tape` owns: what is recorded on a tape, by the recorder that
everything is recorded by.

A tape has buffers of its own, one after the other. A handle that is on a tape leads to the tape's
buffer also where it stands for an array, so the fast recorder serves it as it serves others. Two
things differ from the buffer of a thread: it remembers all trace nodes that were recorded in it, in
their order, each once; and its handles stay in it when they are computed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from retrograd.eager.grad_fn import TapeSegment, full_history, grad_fn_of
from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.eager.leaf import VALUES, ConcreteLeaf, leaf_handle
from retrograd.eager.listeners import Listener
from retrograd.eager.modes import TAPED
from retrograd.eager.segments import split
from retrograd.eager.trace_buffer import TraceBuffer
from retrograd.eager.trace_cache import TraceNode, TracePart, TraceSite
from retrograd.errors import RetrogradError
from retrograd.ir import Node


class BufferOwner(Protocol):
    """The buffers of a tape, in their order."""

    listed: list[TapeBuffer]

    def buffer_of_segment(self, segment: Any) -> TapeBuffer | None: ...


class BufferedListener(Listener):
    """A tape, as its buffers know it: it is told when they become nodes."""

    __slots__ = ("buffers", "lock")

    lock: Any
    buffers: BufferOwner | None

    def became_nodes(self, buffer: TapeBuffer) -> None:
        """A buffer has become nodes, so it goes on with these."""


class TapeBuffer(TraceBuffer):
    """A buffer of a tape. `entered` are trace nodes of leaves and constants that are entries
    whether they are used or not, each behind the number of trace nodes that were recorded
    before."""

    __slots__ = ("constants", "entered", "flags", "own", "owner", "results", "segment", "tape")
    lock_rank = 0

    def __init__(self, site: TraceSite, tape: BufferedListener, owner: BufferOwner) -> None:
        super().__init__(site)
        self.tape: Callable[[], BufferedListener | None] = weakref.ref(tape)
        self.owner: Callable[[], BufferOwner | None] = weakref.ref(owner)
        self.lock = tape.lock  # one for all its buffers, since they become nodes together
        self.ordered = True
        self.entered: list[tuple[int, TraceNode]] = []
        # Those that were given, with what they are here.
        self.constants: list[tuple[Node, TraceNode]] = []
        self.flags: list[bool] = []  # of slots: whether what was given requires a gradient
        self.segment: TapeSegment | None = None  # what became of it, where it was cut,
        self.results: Mapping[TraceNode, Node] = {}  # and the leaves that handles stand for since
        self.own: set[Node] = set()  # arrays that are leaves and results of the tape

    def listener(self) -> Listener | None:
        """The tape. A buffer whose tape is gone, or goes on with nodes, is one like any other."""
        tape = self.tape() if self.ordered else None
        if tape is None:
            self.ordered = False
        return tape

    def is_stale(self) -> bool:
        """Whether the tape was reset since."""
        tape, owner = self.tape(), self.owner()
        return tape is not None and (owner is None or owner is not tape.buffers)

    def begin(self) -> None:
        super().begin()
        TAPED.add(self)

    def end(self) -> None:
        super().end()
        TAPED.discard(self)

    def slot(self, leaf: Node, freed: bool) -> TraceNode:
        with self.lock:
            found = super().slot(leaf, freed)
            if len(self.flags) < len(self.arrays):
                wanted = leaf_handle(leaf) is not None or grad_fn_of(leaf) is not None
                self.flags.append(wanted and leaf.dtype.is_inexact)
            return found

    def constant_key(self, node: Node) -> Any:
        """Each constant is an entry of its own."""
        return node.prim, len(self.constants)

    def note(self, node: Node, trace_node: TraceNode) -> None:
        with self.lock:
            self.slots[node] = trace_node
            self.nodes[trace_node.node] = node
            self.constants.append((node, trace_node))

    def given(self) -> list[Node]:
        """Arrays, by slot, and then constants."""
        return [*self.arrays, *[node for node, _ in self.constants]]

    def became(self, segment: TapeSegment, leaves: Mapping[TraceNode, Node]) -> None:
        self.segment, self.results = segment, leaves

    def enter(self, what: TraceNode) -> None:
        """Note an entry that is there whether it is used or not."""
        self.entered.append((self.made(), what))

    def take_in(self, h: LazyTensor) -> bool:
        """Have a handle from elsewhere stand for an array, as the entry of what was computed
        elsewhere does; one of an earlier buffer of the tape goes on here."""
        try:
            if h._trace_node is not None and h._requires_grad:
                return not h._buffer.is_taped() and split(h._buffer, [h]) and h._trace_node is None
            if h._trace_node is not None or h.leaf_or_node.inputs:
                if h._buffer.is_taped() or h._requires_grad:
                    return False
                evaluate([h])
        except RetrogradError:
            return False  # it comes up where somebody looks
        if (
            h._buffer.ordered
            and h._buffer is not self
            and isinstance(h.leaf_or_node.prim, ConcreteLeaf)
        ):
            h.attach(self)
            self.own.add(h.leaf_or_node)
        return h._trace_node is None

    def handle_of(self, node: Node) -> LazyTensor:
        """A handle on what a node over slots stands for here, which is no entry."""
        trace_node = self.site.trace_node(node)
        if trace_node.slot >= 0:
            return LazyTensor.handle_class(self.arrays[trace_node.slot])
        return LazyTensor.deferred(self, trace_node, False)

    # -- as nodes -------------------------------------------------------------------------------
    def together(self) -> list[TraceBuffer]:
        tape = self.tape()
        if tape is None or not self.ordered:
            return [self]
        current = tape.buffers.listed if tape.buffers is not None else []
        return [self, *[buffer for buffer in current if buffer is not self]]

    def part(self, held: Sequence[LazyTensor]) -> TracePart:
        """All that was recorded."""
        part = super().part(held)
        trace_nodes = dict.fromkeys((*self.recorded(), *[f for _, f in self.entered]))
        return part._replace(outputs=[*trace_nodes, *part.outputs], array=self._array)

    def node_of(self, node: Node) -> Node:
        """The node that stands for a node over slots, once there is one."""
        slot = self.site.trace_node(node).slot
        return self.nodes[node] if slot < 0 else self._array(slot)

    def own_nodes(self) -> list[Node]:
        """Nodes of what is on the tape, but not of what was given."""
        slots = {f.node for f in self.slots.values()}
        made = [made for node, made in self.nodes.items() if node not in slots]
        return made + [full_history(x) for x in self.own]

    def _array(self, k: int) -> Node:
        """The node of what is in a slot."""
        leaf = self.arrays[k]
        grad_fn = grad_fn_of(leaf)
        owner = self.owner()
        buffer = (
            None if grad_fn is None or owner is None else owner.buffer_of_segment(grad_fn.segment)
        )
        if grad_fn is None or buffer is None:
            return full_history(leaf)
        return buffer.nodes[grad_fn.output.node]  # buffers become nodes in their order

    def materialized(self) -> None:
        """It is nodes from here on, and so is the tape."""
        for trace_node, leaf in self.results.items():
            prim: ConcreteLeaf = leaf.prim  # type: ignore[assignment]
            prim.whole = self.nodes[trace_node.node]
            VALUES[prim.whole] = prim.array
        tape = self.tape()
        if self.ordered and tape is not None:
            tape.became_nodes(self)
        self.ordered = False
