"""A tape in buffers: its entries, derived when somebody looks, and their gradients, found by trace
node.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from retrograd.eager.grad_fn import TapeSegment, grad_fn_of
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import leaf_handle
from retrograd.eager.listeners import block_listener
from retrograd.eager.segments import EXECUTIONS, grow_or_split, split
from retrograd.eager.trace_buffer import CURRENT, remember
from retrograd.eager.trace_cache import site_of
from retrograd.ir import Node
from retrograd.ir.source import user_place
from retrograd.runtime.backend import Array
from retrograd.tape.entry import Entry
from retrograd.tape.entry_layout import EntryLayout, layout_of
from retrograd.tape.trace_buffer import BufferedListener, TapeBuffer


class EntryTable(NamedTuple):
    """A buffer with its entries, which are numbered from `base`."""

    number: int
    buffer: TapeBuffer
    layout: EntryLayout
    base: int
    recorded: tuple[int, ...]  # how much was there
    given: list[Node]  # by slot, and constants
    ids: list[int]  # the entries of these; -1: none
    flags: tuple[bool, ...]  # whether they require a gradient
    new: list[Node]  # those that are entries here

    @property
    def wanted(self) -> list[bool]:
        """Which entries require a gradient."""
        return self.layout.wanted(self.flags)


class TapeBuffers:
    """The buffers of a tape."""

    def __init__(self, tape: BufferedListener) -> None:
        self._tape = weakref.ref(tape)
        self.listed: list[TapeBuffer] = []
        self._tables: list[EntryTable] = []
        self._ids: dict[Node, int] = {}  # of arrays
        self._segments: dict[TapeSegment, EntryTable] = {}

    # -- recording ------------------------------------------------------------------------------
    def open(self, handles: Sequence[LazyTensor] = ()) -> TapeBuffer | None:
        """The buffer in which is recorded now; None where one that is full cannot be computed."""
        tape = self._tape()
        assert tape is not None
        buffer = self.listed[-1] if self.listed else None
        if buffer is not None and buffer.segment is None:
            if not buffer.open:
                if buffer.executions > EXECUTIONS:
                    if not split(buffer, handles):
                        return None
                else:
                    buffer.begin()
            if buffer.open and buffer.made() >= buffer.limit and not grow_or_split(buffer, handles):
                return None
        if buffer is None or buffer.segment is not None or not buffer.open:
            buffer = TapeBuffer(site_of(*user_place()), tape, self)
            self.listed.append(buffer)
            buffer.begin()
            remember(buffer)
        if block_listener() is tape and CURRENT.buffer is not buffer:
            CURRENT.buffer.close()
            CURRENT.buffer = buffer
        return buffer

    # -- entries --------------------------------------------------------------------------------
    def tables(self) -> list[EntryTable]:
        """The buffers with their entries."""
        if self._tables:
            last = self._tables[-1]
            if last.recorded != _recorded(last.buffer):
                self._forget()
        while len(self._tables) < len(self.listed):
            self._derive(self.listed[len(self._tables)])
        if self._tables:
            self._enter_segment(self._tables[-1])
        return self._tables

    def _enter_segment(self, table: EntryTable) -> None:
        """A buffer that was cut is known by its segment."""
        if table.buffer.segment is not None:
            self._segments[table.buffer.segment] = table

    def _forget(self) -> None:
        """The last table is not up to date."""
        last = self._tables.pop()
        for x in last.new:
            del self._ids[x]
        if last.buffer.segment is not None:
            self._segments.pop(last.buffer.segment, None)

    def _derive(self, buffer: TapeBuffer) -> None:
        before = self._tables[-1] if self._tables else None
        base = 0
        if before is not None:
            base = before.base + len(before.layout.nodes)
            self._enter_segment(before)
        recorded, given = _recorded(buffer), buffer.given()
        ids = [self._id_of(x) for x in given]
        new = sorted([k for k, i in enumerate(ids) if i < 0], key=lambda k: given[k].id)
        layout = layout_of(buffer, tuple(buffer.recorded()), tuple(new))
        entered = []
        for i, k in enumerate(layout.slots):
            if k >= 0:
                entered.append(given[k])
                ids[k] = self._ids[given[k]] = base + i
        flags = [
            self.requires_grad(i) if 0 <= i < base else k < len(buffer.flags) and buffer.flags[k]
            for k, i in enumerate(ids)
        ]
        self._tables.append(
            EntryTable(
                len(self._tables), buffer, layout, base, recorded, given, ids, tuple(flags), entered
            )
        )

    def _id_of(self, x: Node) -> int:
        """The entry of an array; -1: it is none yet."""
        grad_fn = grad_fn_of(x)
        table = None if grad_fn is None else self._segments.get(grad_fn.segment)
        if grad_fn is None or table is None:
            return self._ids.get(x, -1)
        return table.base + table.layout.where[grad_fn.output.node]

    def buffer_of_segment(self, segment: Any) -> TapeBuffer | None:
        """The buffer that a segment was."""
        return next((buffer for buffer in self.listed if buffer.segment is segment), None)

    def __len__(self) -> int:
        tables = self.tables()
        return tables[-1].base + len(tables[-1].layout.nodes) if tables else 0

    def at(self, i: int) -> tuple[EntryTable, int]:
        """Where an entry is: its buffer, and its number there."""
        return self._at(self.tables(), i)

    def _at(self, tables: list[EntryTable], i: int) -> tuple[EntryTable, int]:
        table = tables[bisect_right(tables, i, key=attrgetter("base")) - 1]
        while i - table.base >= len(table.layout.nodes):  # of buffers without entries
            table = tables[table.number - 1]
        return table, i - table.base

    def entry(self, i: int) -> Entry:
        """An entry, to be looked at."""
        table, k = self.at(i)
        layout, buffer = table.layout, table.buffer
        node, slot = layout.nodes[k], layout.slots[k]
        given = not node.inputs and (slot < 0 or table.given[slot] not in buffer.own)
        parents = [table.base + p if p >= 0 else table.ids[-1 - p] for p in layout.parents[k]]
        return Entry(i, node, tuple(parents), table.wanted[k], given, buffer)

    def node(self, i: int) -> Node:
        """The node of an entry, once there is one."""
        table, k = self.at(i)
        return table.buffer.node_of(table.layout.nodes[k])

    def requires_grad(self, i: int) -> bool:
        """Whether an entry requires a gradient."""
        table, k = self._at(self._tables, i)
        return table.wanted[k]

    def id_of(self, h: LazyTensor) -> int:
        """The entry of a handle; -1: it has none."""
        tables = self.tables()
        trace_node = h._trace_node
        if trace_node is None:
            return self._id_of(h.leaf_or_node)
        for table in reversed(tables):
            if table.buffer is h._buffer:
                if trace_node.slot >= 0:
                    return table.ids[trace_node.slot]
                return table.base + table.layout.where[trace_node.node]
        return -1

    # -- gradients ------------------------------------------------------------------------------
    def suit(self) -> bool:
        """Whether gradients can be computed by buffers: no operation has several results."""
        return not any(s.layout.several for s in self.tables())

    def leaves(self) -> dict[int, LazyTensor] | None:
        """The handles of entries that get gradients from `backward()`. None where it has to go
        further than this tape, or to what has another value by now."""
        found = {}
        for table in self.tables():
            for i, k in enumerate(table.layout.slots):
                if not 0 <= k < len(table.buffer.arrays):
                    continue
                prim: Any = table.buffer.arrays[k].prim
                if prim.grad_fn is not None or prim.replaced or prim.freed:
                    return None
                if (handle := leaf_handle(table.buffer.arrays[k])) is not None:
                    found[table.base + i] = handle
        return found

    def gradients_of(
        self, leaves: Mapping[int, LazyTensor], start: Mapping[int, Array]
    ) -> list[tuple[LazyTensor, Array]]:
        """The gradients of some entries, with their handles."""
        found = self.gradients(start)
        return [(h, g) for i, h in leaves.items() if (g := found[i]) is not None]

    def gradients(self, start: Mapping[int, Array]) -> list[Array | None]:
        """The gradient of each entry, from cotangents of some: entries that require one."""
        tables = self.tables()
        pending: list[dict[int, Array]] = [{} for _ in tables]
        for i, g in start.items():
            table, k = self._at(tables, i)
            pending[table.number][k] = g
        result: list[Array | None] = [None] * len(self)
        for table in reversed(tables):
            if pending[table.number]:
                self._through(table, pending, result)
        return result

    def _through(
        self, table: EntryTable, pending: list[dict[int, Array]], result: list[Array | None]
    ) -> None:
        """Through one buffer: enter gradients of its entries in `result`, and replace those of
        entries of earlier buffers in `pending`."""
        buffer, base = table.buffer, table.base
        above = {
            k: self._at(self._tables, i)
            for k, i in enumerate(table.ids)
            if 0 <= i < base and table.flags[k]
        }
        known: dict[Any, Array] = {
            ("slot", k): pending[s.number][i]
            for k, (s, i) in above.items()
            if i in pending[s.number]
        }
        incoming = tuple([k for _, k in known])
        given = pending[table.number]
        seeded = tuple(sorted(given))
        values = dict(buffer.values)
        entries, slots, plan = table.layout.reverse(table.flags, seeded, incoming, values)
        known |= {("entry", i): given[i] for i in seeded}
        found = plan.run(buffer.arrays, {**values, **known}, buffer.numbers)
        for i, g in zip(entries, found, strict=False):
            result[base + i] = g
        for k, g in zip(slots, found[len(entries) :], strict=True):
            s, i = above[k]
            pending[s.number][i] = g


def _recorded(buffer: TapeBuffer) -> tuple[int, ...]:
    """How much is in a buffer."""
    return buffer.made(), len(buffer.entered), len(buffer.arrays), len(buffer.constants)
