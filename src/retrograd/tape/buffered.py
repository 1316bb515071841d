"""A tape on pages: its entries, derived when somebody looks, and their gradients, found by form."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from retrograd.eager.grad_fn import TapeSegment, past_of
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import leaf_handle
from retrograd.eager.modes import current_tape
from retrograd.eager.segments import EXECUTIONS, grow_or_split, split
from retrograd.eager.trace_buffer import CURRENT, remember
from retrograd.eager.trace_cache import site_of
from retrograd.ir import Node
from retrograd.ir.source import user_place
from retrograd.runtime.backend import Array
from retrograd.tape.entry import Entry
from retrograd.tape.entry_layout import EntryLayout, layout_of
from retrograd.tape.trace_buffer import Listener, TapePage


class Sheet(NamedTuple):
    """A page with its entries, which are numbered from `base`."""

    number: int
    page: TapePage
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


class Pages:
    """The pages of a tape."""

    def __init__(self, tape: Listener) -> None:
        self._tape = weakref.ref(tape)
        self.pages: list[TapePage] = []
        self._sheets: list[Sheet] = []
        self._ids: dict[Node, int] = {}  # of arrays
        self._segments: dict[TapeSegment, Sheet] = {}

    # -- recording ------------------------------------------------------------------------------
    def open(self, handles: Sequence[LazyTensor] = ()) -> TapePage | None:
        """The page on which is recorded now; None where one that is full cannot be computed."""
        tape = self._tape()
        assert tape is not None
        page = self.pages[-1] if self.pages else None
        if page is not None and page.segment is None:
            if not page.open:
                if page.executions > EXECUTIONS:
                    if not split(page, handles):
                        return None
                else:
                    page.begin()
            if page.open and page.made() >= page.limit and not grow_or_split(page, handles):
                return None
        if page is None or page.segment is not None or not page.open:
            page = TapePage(site_of(*user_place()), tape, self)
            self.pages.append(page)
            page.begin()
            remember(page)
        if current_tape() is tape and CURRENT.page is not page:
            CURRENT.page.close()
            CURRENT.page = page
        return page

    # -- entries --------------------------------------------------------------------------------
    def sheets(self) -> list[Sheet]:
        """The pages with their entries."""
        if self._sheets:
            last = self._sheets[-1]
            if last.recorded != _recorded(last.page):
                self._forget()
        while len(self._sheets) < len(self.pages):
            self._derive(self.pages[len(self._sheets)])
        if self._sheets:
            self._enter_segment(self._sheets[-1])
        return self._sheets

    def _enter_segment(self, sheet: Sheet) -> None:
        """A page that was cut is known by its segment."""
        if sheet.page.segment is not None:
            self._segments[sheet.page.segment] = sheet

    def _forget(self) -> None:
        """The last sheet is not up to date."""
        last = self._sheets.pop()
        for x in last.new:
            del self._ids[x]
        if last.page.segment is not None:
            self._segments.pop(last.page.segment, None)

    def _derive(self, page: TapePage) -> None:
        before = self._sheets[-1] if self._sheets else None
        base = 0
        if before is not None:
            base = before.base + len(before.layout.nodes)
            self._enter_segment(before)
        recorded, given = _recorded(page), page.given()
        ids = [self._id_of(x) for x in given]
        new = sorted([k for k, i in enumerate(ids) if i < 0], key=lambda k: given[k].id)
        layout = layout_of(page, tuple(page.recorded()), tuple(new))
        entered = []
        for i, k in enumerate(layout.slots):
            if k >= 0:
                entered.append(given[k])
                ids[k] = self._ids[given[k]] = base + i
        flags = [
            self.requires_grad(i) if 0 <= i < base else k < len(page.flags) and page.flags[k]
            for k, i in enumerate(ids)
        ]
        self._sheets.append(
            Sheet(
                len(self._sheets), page, layout, base, recorded, given, ids, tuple(flags), entered
            )
        )

    def _id_of(self, x: Node) -> int:
        """The entry of an array; -1: it is none yet."""
        past = past_of(x)
        sheet = None if past is None else self._segments.get(past.segment)
        if past is None or sheet is None:
            return self._ids.get(x, -1)
        return sheet.base + sheet.layout.where[past.form.node]

    def page_of_segment(self, segment: Any) -> TapePage | None:
        """The page that a segment was."""
        return next((page for page in self.pages if page.segment is segment), None)

    def __len__(self) -> int:
        sheets = self.sheets()
        return sheets[-1].base + len(sheets[-1].layout.nodes) if sheets else 0

    def at(self, i: int) -> tuple[Sheet, int]:
        """Where an entry is: its page, and its number there."""
        return self._at(self.sheets(), i)

    def _at(self, sheets: list[Sheet], i: int) -> tuple[Sheet, int]:
        sheet = sheets[bisect_right(sheets, i, key=attrgetter("base")) - 1]
        while i - sheet.base >= len(sheet.layout.nodes):  # of pages without entries
            sheet = sheets[sheet.number - 1]
        return sheet, i - sheet.base

    def entry(self, i: int) -> Entry:
        """An entry, to be looked at."""
        sheet, k = self.at(i)
        layout, page = sheet.layout, sheet.page
        node, slot = layout.nodes[k], layout.slots[k]
        given = not node.inputs and (slot < 0 or sheet.given[slot] not in page.own)
        parents = [sheet.base + p if p >= 0 else sheet.ids[-1 - p] for p in layout.parents[k]]
        return Entry(i, node, tuple(parents), sheet.wanted[k], given, page)

    def node(self, i: int) -> Node:
        """The node of an entry, once there is one."""
        sheet, k = self.at(i)
        return sheet.page.node_of(sheet.layout.nodes[k])

    def requires_grad(self, i: int) -> bool:
        """Whether an entry requires a gradient."""
        sheet, k = self._at(self._sheets, i)
        return sheet.wanted[k]

    def id_of(self, h: LazyTensor) -> int:
        """The entry of a handle; -1: it has none."""
        sheets = self.sheets()
        form = h._form
        if form is None:
            return self._id_of(h._own)
        for sheet in reversed(sheets):
            if sheet.page is h._page:
                if form.slot >= 0:
                    return sheet.ids[form.slot]
                return sheet.base + sheet.layout.where[form.node]
        return -1

    # -- gradients ------------------------------------------------------------------------------
    def suit(self) -> bool:
        """Whether gradients can be computed by pages: no operation has several results."""
        return not any(s.layout.several for s in self.sheets())

    def leaves(self) -> dict[int, LazyTensor] | None:
        """The handles of entries that get gradients from `backward()`. None where it has to go
        further than this tape, or to what has another value by now."""
        found = {}
        for sheet in self.sheets():
            for i, k in enumerate(sheet.layout.slots):
                if not 0 <= k < len(sheet.page.arrays):
                    continue
                prim: Any = sheet.page.arrays[k].prim
                if prim.past is not None or prim.replaced or prim.freed:
                    return None
                if (handle := leaf_handle(sheet.page.arrays[k])) is not None:
                    found[sheet.base + i] = handle
        return found

    def gradients_of(
        self, leaves: Mapping[int, LazyTensor], start: Mapping[int, Array]
    ) -> list[tuple[LazyTensor, Array]]:
        """The gradients of some entries, with their handles."""
        found = self.gradients(start)
        return [(h, g) for i, h in leaves.items() if (g := found[i]) is not None]

    def gradients(self, start: Mapping[int, Array]) -> list[Array | None]:
        """The gradient of each entry, from cotangents of some: entries that require one."""
        sheets = self.sheets()
        pending: list[dict[int, Array]] = [{} for _ in sheets]
        for i, g in start.items():
            sheet, k = self._at(sheets, i)
            pending[sheet.number][k] = g
        result: list[Array | None] = [None] * len(self)
        for sheet in reversed(sheets):
            if pending[sheet.number]:
                self._through(sheet, pending, result)
        return result

    def _through(
        self, sheet: Sheet, pending: list[dict[int, Array]], result: list[Array | None]
    ) -> None:
        """Through one page: enter gradients of its entries in `result`, and replace those of
        entries of earlier pages in `pending`."""
        page, base = sheet.page, sheet.base
        above = {
            k: self._at(self._sheets, i)
            for k, i in enumerate(sheet.ids)
            if 0 <= i < base and sheet.flags[k]
        }
        known: dict[Any, Array] = {
            ("slot", k): pending[s.number][i]
            for k, (s, i) in above.items()
            if i in pending[s.number]
        }
        incoming = tuple([k for _, k in known])
        given = pending[sheet.number]
        seeded = tuple(sorted(given))
        values = dict(page.values)
        entries, slots, plan = sheet.layout.reverse(sheet.flags, seeded, incoming, values)
        known |= {("entry", i): given[i] for i in seeded}
        found = plan.run(page.arrays, {**values, **known}, page.numbers)
        for i, g in zip(entries, found, strict=False):
            result[base + i] = g
        for k, g in zip(slots, found[len(entries) :], strict=True):
            s, i = above[k]
            pending[s.number][i] = g


def _recorded(page: TapePage) -> tuple[int, ...]:
    """How much is on a page."""
    return page.made(), len(page.entered), len(page.arrays), len(page.constants)
