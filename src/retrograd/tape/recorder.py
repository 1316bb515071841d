"""Recording on a tape: in buffers, by the recorder that everything is recorded by, and on nodes
where somebody asks for these, or what is recorded has to do with them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextvars import Token
from typing import Any

import numpy as np

from retrograd.eager.grad_fn import grad_fn_of
from retrograd.eager.lazy_tensor import LazyTensor, leaf
from retrograd.eager.listeners import BLOCK, add_listener, listening, registered
from retrograd.eager.quick_dispatch import constant
from retrograd.eager.trace_buffer import materialize
from retrograd.errors import StaleTapeError
from retrograd.ir import Node
from retrograd.ops.identity import StopGradient
from retrograd.shared import own_lock
from retrograd.tape.buffered import TapeBuffers
from retrograd.tape.entry import Entry, wants_gradient
from retrograd.tape.trace_buffer import BufferedListener, TapeBuffer


class TapeRecord(BufferedListener):
    """What a tape records. It begins with buffers, which cost little; once nodes are asked for, it
    goes on with nodes, and is shown every result that no buffer has seen, until it is reset."""

    def __init__(self) -> None:
        self.lock = own_lock()
        # None: it goes on with nodes, in `_entries`.
        self.buffers: TapeBuffers | None = TapeBuffers(self)
        self._views: dict[int, Entry] = {}  # entries in buffers that somebody has looked at
        self._entries: list[Entry] = []
        self._ids: dict[Node, int] = {}
        self._stale: weakref.WeakSet[Node] = weakref.WeakSet()
        self._others: weakref.WeakSet[Node] = weakref.WeakSet()  # known not to touch this tape
        self._start = leaf(np.zeros(())).id  # nothing that was made before is on this tape
        self._tokens: list[Token[Any]] = []
        self._finished = False

    def _buffer(self) -> TapeBuffer | None:
        """The buffer in which is recorded; None where the tape has to go on with nodes."""
        watched = any(not isinstance(x, TapeRecord) for x in registered())
        return None if self.buffers is None or watched else self.buffers.open()

    def buffer_for(
        self, handles: Sequence[LazyTensor], buffers: Sequence[Any]
    ) -> TapeBuffer | None:
        """The buffer in which an operation on these handles is recorded, of which `buffers` are on
        tapes; None where it has to be recorded on nodes, or is refused there."""
        with self.lock:
            if self._finished or self.buffers is None:
                return None
            if any(buffer.owner() is not self.buffers for buffer in buffers):
                return None
            return self.buffers.open(handles)

    def _entry(self, i: int) -> Entry:
        """The entry of an id."""
        with self.lock:
            if self.buffers is None:
                return self._entries[i]
            found = self._views.get(i)
            if found is None:
                found = self._views[i] = self.buffers.entry(i)
            return found

    def go_on_with_nodes(self) -> None:
        """Have entries with nodes from now on. Never with the lock: buffers of other tapes may
        become nodes with those of this one, and all their locks are taken in one order."""
        buffers = self.buffers
        if buffers is not None and buffers.listed:
            materialize(buffers.listed)  # which calls `became_nodes`
            return
        with self.lock:
            if buffers is not None and buffers is self.buffers:
                self._take_entries(buffers)

    def became_nodes(self, buffer: TapeBuffer) -> None:
        """A buffer has become nodes: the tape goes on with nodes. Those of before `reset()` are
        noted, for they are not to be used."""
        with self.lock:
            if buffer.is_stale():
                self._stale.update(buffer.own_nodes())
                add_listener(self)
            if self.buffers is not None:
                self._take_entries(self.buffers)

    def _take_entries(self, buffers: TapeBuffers) -> None:
        """Have the entries of buffers, all of which are nodes now."""
        self.buffers = None
        for i in range(len(buffers)):
            entry = self._views.get(i) or buffers.entry(i)
            entry.become(buffers.node(i))
            self._entries.append(entry)
            self._ids[entry.node] = i
        self._views.clear()
        for table in buffers.listed:
            table.ordered = False
        add_listener(self)

    def record(self, result: Node) -> None:
        """Append a node and what it was computed from, if it belongs here."""
        while not self._recorded(result):
            self.go_on_with_nodes()

    def _recorded(self, result: Node) -> bool:
        """The same; False where the tape has to go on with nodes first."""
        if result in self._ids:
            return True
        with self.lock:
            new, given, touched = self._reach(result)
            if self.buffers is not None and self.sees_all and not self._finished:
                buffer = None if result.inputs else self._buffer()
                if buffer is not None:
                    buffer.enter(constant(buffer, result))
                return buffer is not None
            if not touched and not self.sees_all:
                self._others.update(new)
                return True
            self._check_open(result.describe())
            self._check_others(result, new)
            for node in sorted({*new, *given}, key=lambda n: n.id):
                self._append(node, node in given and wants_gradient(node), node in given)
            return True

    def pass_over(self, result: Node) -> None:
        """Note that a node, and what it was computed from, is no part of this recording: it stands
        for something that was computed elsewhere, though it was made just now.

        One that leads here after all was computed while another thread made nodes of this tape: it
        is recorded when somebody asks for it. Without the lock: any thread says so, while it has
        those of buffers that become nodes, for which one that has this tape's may be waiting.
        """
        seen, todo, new = {result}, [result], []
        while todo:
            node = todo.pop()
            entry = self._known(node)
            if node in self._stale or (entry is not None and not entry.is_given):
                return
            if entry is not None or node in self._others:
                continue
            new.append(node)
            made = [x for x in node.inputs if x not in seen and x.id >= self._start]
            seen.update(made)
            todo += made
        self._others.update(new)

    def _known(self, node: Node) -> Entry | None:
        """The entry of a node, if it has one: also without the lock, as an entry is there before
        its id, and `reset()` begins with another table of ids before it has other entries."""
        entries = self._entries
        i = self._ids.get(node)
        return None if i is None else entries[i]

    @property
    def sees_all(self) -> bool:
        """Whether this is the tape that records all that happens here."""
        return BLOCK.get() is self

    @property
    def is_buffered(self) -> bool:
        """Whether what is recorded on it is in its buffers."""
        return self.buffers is not None

    def holds(self, node: Node) -> bool:
        """Whether it has the node of a leaf of this tape or of what was computed on it, now or
        before `reset()`."""
        if grad_fn_of(node) is not None:
            node = node.prim.whole or node  # type: ignore[attr-defined]
        entry = self._known(node)
        return node in self._stale if entry is None else not entry.is_given

    @property
    def count(self) -> int:
        """How many entries there are."""
        with self.lock:
            return len(self._entries if self.buffers is None else self.buffers)

    def _check_open(self, what: str) -> None:
        if self._finished:
            raise StaleTapeError(
                f"{what} cannot be recorded: the tape was finished with {self.count} entries; "
                "reset() it, or compute with copies: rg.tensor(x.numpy())"
            )

    def _check_others(self, result: Node, new: Sequence[Node]) -> None:
        """Before anything is recorded: no operand is on another tape."""
        for other in listening():
            if other is self:
                continue
            for x in dict.fromkeys([x for n in new for x in (n, *n.inputs)]):
                if other.holds(x):
                    raise StaleTapeError(
                        f"{result.describe()} combines tensors of two tapes: {x.describe()} is on "
                        "another one; record both on one"
                    )

    def _reach(self, result: Node) -> tuple[list[Node], set[Node], bool]:
        """Nodes below that are not on the tape yet; those of them that come from elsewhere, where
        the way down ends; and whether one on the tape was met."""
        seen, given, todo, touched = {result}, set(), [result], False
        new = []
        if not result.inputs:
            given.add(result)
        while todo:
            node = todo.pop()
            if node in self._stale:
                raise StaleTapeError(
                    f"{result.describe()} uses a tensor of this tape from before reset(); make the "
                    "leaf again"
                )
            new.append(node)
            for x in node.inputs:
                entry = self._known(x)
                if entry is not None:
                    touched = touched or not entry.is_given
                elif x not in seen:
                    seen.add(x)
                    if x not in self._stale and (
                        not x.inputs or x.id < self._start or x in self._others
                    ):
                        given.add(x)
                    else:
                        todo.append(x)
        return new, given, touched

    def _append(self, node: Node, requires_grad: bool, is_given: bool = False) -> None:
        parents = () if is_given else tuple([self._ids[x] for x in node.inputs])
        inherited = node.type.is_inexact and not isinstance(node.prim, StopGradient)
        wanted = requires_grad or (
            inherited and any(self._entries[p].requires_grad for p in parents)
        )
        entry = Entry(len(self._entries), node, parents, wanted, is_given)
        self._entries.append(entry)
        self._ids[node] = entry.id
