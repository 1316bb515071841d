"""Pages of a tape: what is recorded on a tape, in the form in which everything is recorded.

A tape has pages of its own, one after the other. A handle that is on a tape leads to the tape's
page also where it stands for an array, so the fast recorder serves it as it serves others. Two
things differ from the page of a thread: it remembers all forms that were recorded on it, in their
order, each once; and its handles stay on it when they are computed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from retrograd.eager.grad_fn import TapeSegment, full_history, past_of
from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.eager.leaf import VALUES, ConcreteLeaf, leaf_handle
from retrograd.eager.modes import TAPED
from retrograd.eager.segments import split
from retrograd.eager.trace_buffer import TraceBuffer
from retrograd.eager.trace_cache import TraceNode, TracePart, TraceSite
from retrograd.errors import RetrogradError
from retrograd.ir import Node


class BufferOwner(Protocol):
    """The buffers of a tape, in their order."""

    pages: list[TapePage]

    def page_of_segment(self, segment: Any) -> TapePage | None: ...


class Listener(Protocol):
    """A tape, as its buffers know it: it is told when they become nodes."""

    lock: Any

    @property
    def pages(self) -> BufferOwner | None: ...

    def go_on_with_nodes(self, gone: TapePage | None = None) -> None: ...


class TapePage(TraceBuffer):
    """A page of a tape. `entered` are forms of leaves and constants that are entries whether they
    are used or not, each behind the number of forms that were recorded before."""

    __slots__ = ("constants", "entered", "flags", "own", "owner", "results", "segment", "tape")

    def __init__(self, site: TraceSite, tape: Listener, owner: BufferOwner) -> None:
        super().__init__(site)
        self.tape: Callable[[], Listener | None] = weakref.ref(tape)
        self.owner: Callable[[], BufferOwner | None] = weakref.ref(owner)
        self.lock = tape.lock  # one for all its pages, since they become nodes together
        self.ordered = True
        self.entered: list[tuple[int, TraceNode]] = []
        self.constants: list[
            tuple[Node, TraceNode]
        ] = []  # that were given, with what they are here
        self.flags: list[bool] = []  # of slots: whether what was given requires a gradient
        self.segment: TapeSegment | None = None  # what became of it, where it was cut,
        self.results: Mapping[TraceNode, Node] = {}  # and the leaves that handles stand for since
        self.own: set[Node] = set()  # arrays that are leaves and results of the tape

    def is_taped(self) -> bool:
        """Whether the tape is alive. A page without one is a page like any other."""
        if self.ordered and self.tape() is None:
            self.ordered = False
        return self.ordered

    def is_stale(self) -> bool:
        """Whether the tape was reset since."""
        tape, owner = self.tape(), self.owner()
        return tape is not None and (owner is None or owner is not tape.pages)

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
                wanted = leaf_handle(leaf) is not None or past_of(leaf) is not None
                self.flags.append(wanted and leaf.dtype.is_inexact)
            return found

    def constant_key(self, node: Node) -> Any:
        """Each constant is an entry of its own."""
        return node.prim, len(self.constants)

    def note(self, node: Node, form: TraceNode) -> None:
        with self.lock:
            self.slots[node] = form
            self.nodes[form.node] = node
            self.constants.append((node, form))

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
        elsewhere does; one of an earlier page of the tape goes on here."""
        try:
            if h._form is not None and h._requires_grad:
                return not h._page.is_taped() and split(h._page, [h]) and h._form is None
            if h._form is not None or h._own.inputs:
                if h._page.is_taped() or h._requires_grad:
                    return False
                evaluate([h])
        except RetrogradError:
            return False  # it comes up where somebody looks
        if h._page.ordered and h._page is not self and isinstance(h._own.prim, ConcreteLeaf):
            h.attach(self)
            self.own.add(h._own)
        return h._form is None

    def handle_of(self, node: Node) -> LazyTensor:
        """A handle on what a node over slots stands for here, which is no entry."""
        form = self.site.form(node)
        if form.slot >= 0:
            return LazyTensor.handle_class(self.arrays[form.slot])
        return LazyTensor.deferred(self, form, False)

    # -- as nodes -------------------------------------------------------------------------------
    def together(self) -> list[TraceBuffer]:
        tape = self.tape()
        if tape is None or not self.ordered:
            return [self]
        current = tape.pages.pages if tape.pages is not None else []
        return [self, *[page for page in current if page is not self]]

    def part(self, held: Sequence[LazyTensor]) -> TracePart:
        """All that was recorded."""
        part = super().part(held)
        forms = dict.fromkeys((*self.recorded(), *[f for _, f in self.entered]))
        return part._replace(outputs=[*forms, *part.outputs], array=self._array)

    def node_of(self, node: Node) -> Node:
        """The node that stands for a node over slots, once there is one."""
        slot = self.site.form(node).slot
        return self.nodes[node] if slot < 0 else self._array(slot)

    def own_nodes(self) -> list[Node]:
        """Nodes of what is on the tape, but not of what was given."""
        slots = {f.node for f in self.slots.values()}
        made = [made for node, made in self.nodes.items() if node not in slots]
        return made + [full_history(x) for x in self.own]

    def _array(self, k: int) -> Node:
        """The node of what is in a slot."""
        leaf = self.arrays[k]
        past = past_of(leaf)
        owner = self.owner()
        page = None if past is None or owner is None else owner.page_of_segment(past.segment)
        if past is None or page is None:
            return full_history(leaf)
        return page.nodes[past.form.node]  # pages become nodes in their order

    def materialized(self) -> None:
        """It is nodes from here on, and so is the tape."""
        for form, leaf in self.results.items():
            prim: ConcreteLeaf = leaf.prim  # type: ignore[assignment]
            prim.whole = self.nodes[form.node]
            VALUES[prim.whole] = prim.array
        tape = self.tape()
        if self.ordered and tape is not None:
            tape.go_on_with_nodes(self)
        self.ordered = False
