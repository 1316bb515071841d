"""Pages: what a thread records between two looks, as forms and the data in their slots.

A tensor that was computed by a library function is a form on a page. Looking at it runs the program
of everything on the page that is needed and held by somebody; the program hangs on the forms, so a
loop that repeats looks it up. Whatever asks for the nodes themselves (transforms, tapes, graphs)
gets them: the page is *dissolved*, its tensors go on as tensors on nodes.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from retrograd.eager.fast_path import TraceBufferBase
from retrograd.eager.grad_fn import TapeSegment, full_history
from retrograd.eager.leaf import VALUES
from retrograd.eager.modes import current_backend
from retrograd.eager.program_cache import COUNTS
from retrograd.eager.trace_cache import TraceNode, TracePart, TraceSite, fill, site_of
from retrograd.eager.trace_program import TraceProgram, co_evaluated
from retrograd.ir import Node
from retrograd.ir.source import user_place
from retrograd.runtime.backend import Array
from retrograd.shared import at_fork, contained, free

FULL = 512  # handles on a page after which it is looked whether to cut the recording


class Handle(Protocol):
    """What a buffer needs of the tensors recorded in it; `LazyTensor` says what is done."""

    _form: TraceNode | None
    _page: TraceBuffer
    _own: Node
    _requires_grad: bool

    def _settle(self, array: Array, form: TraceNode, freed: bool = False) -> None: ...

    def _leave(self, page: TraceBuffer) -> None: ...


class TraceBuffer(TraceBufferBase):
    """Arrays and numbers by slot, and the handles on what was computed from them.

    That somebody holds a handle decides only what is computed along with what is asked for.

    A page is full when `limit` handles were made. What is recorded for the first time asks, and
    what is known ends where that found the page full, so what is looked up need not.
    """

    __slots__ = (
        "__weakref__",
        "arrays",
        "executions",
        "lock",
        "nodes",
        "openings",
        "ripe",
        "seen",
        "site",
        "values",
    )  # fmt: skip

    def __init__(self, site: TraceSite) -> None:
        super().__init__()
        self.site = site
        self.arrays: list[Node] = []  # leaves, by slot
        self.values: dict[TraceNode, Array] = {}  # what earlier looks have computed
        self.nodes: dict[Node, Node] = {}  # of forms whose nodes were asked for
        self.limit = site.limit or site.room or FULL
        self.ripe = site.limit > 0  # whether the recording is cut then
        self.executions = 0  # how often something was computed
        self.openings: list[tuple[int, int]] = []
        self.seen = 0  # up to where `materialize` has found nothing that it would have to dissolve
        self.lock = threading.RLock()
        _list(self)

    def slot(self, leaf: Node, freed: bool) -> TraceNode:
        """The form of an array on this page, which gets a slot at its first use."""
        found = self.slots.get(leaf)
        if found is None:
            with self.lock:
                found = self.slots.get(leaf)
                if found is None:  # no other thread was faster
                    found = self.site.leaf(len(self.arrays), leaf, freed)
                    self.arrays.append(leaf)
                    self.slots[leaf] = found
        return found

    def is_taped(self) -> bool:
        """Whether it is a page of a tape that is alive: see `tape/trace_buffer.py`."""
        return False

    def constant_key(self, node: Node) -> Any:
        """By what the form of a constant is known."""
        return node.prim

    def note(self, node: Node, form: TraceNode) -> None:
        """A constant is used as this form."""

    def became(self, segment: TapeSegment, leaves: Mapping[TraceNode, Node]) -> None:
        """It was cut: what handles stood for are leaves of a segment now."""

    def together(self) -> list[TraceBuffer]:
        """The pages that become nodes when this one does."""
        return [self]

    def materialized(self) -> None:
        """It has become nodes."""

    def take_in(self, h: Any) -> bool:
        """Have a handle that is not recorded here stand for an array; whether that is possible."""
        return False

    def begin(self) -> None:
        """Record here from now on: a new opening, listed with what is behind `last`."""
        opening, openings = (_NEXT_TIME(), self.last), self.openings
        if openings and openings[-1][1] == self.last:
            openings[-1] = opening
        else:
            openings.append(opening)
        super().begin()

    def part(self, held: Sequence[Any]) -> TracePart:
        """What has to be made for the page to be dissolved. Nothing more is recorded here."""
        self.close()
        self.stay([])
        forms = [form for h in held if (form := h._form) is not None]
        arrays = self.arrays
        return TracePart(
            [*forms, *self.values], lambda k: full_history(arrays[k]), self.numbers, self.nodes,
            self.openings,
        )  # fmt: skip

    def reopen(self) -> None:
        """Record here again, since what is recorded goes on from here."""
        CURRENT.page.close()
        CURRENT.page = self
        self.begin()

    def close(self) -> None:
        """Nothing more is recorded here, unless it goes on from what is here."""
        self.end()
        if CURRENT.page is self:
            CURRENT.page = NOWHERE  # so that the thread keeps no data alive


PAGES: set[weakref.ref[TraceBuffer]] = set()  # those there are, and some that are gone
_NEXT_TIME = itertools.count().__next__
_PRUNE = [64]  # how many there may be before they are looked through


def _list(page: TraceBuffer) -> None:
    """Enter a page among the pages, now and then without those that are gone. One at a time, so
    that none is lost that another thread enters."""
    if len(PAGES) > _PRUNE[0]:
        for ref in [ref for ref in list(PAGES) if ref() is None]:
            PAGES.discard(ref)
        _PRUNE[0] = 2 * len(PAGES) + 64
    PAGES.add(weakref.ref(page))


def _free() -> None:
    """In a child of fork: no page is locked by threads that it does not have."""
    for ref in list(PAGES):
        if (page := ref()) is not None:
            free(page.lock)


at_fork(in_child=_free)
NOWHERE = TraceBuffer(TraceSite())  # the page of what is not on one


class _Current(threading.local):
    page: TraceBuffer = NOWHERE

    def __init__(self) -> None:
        # What the thread has recorded since it made nodes of all that there was.
        self.histories: list[weakref.ref[TraceBuffer | TapeSegment]] = []


CURRENT = _Current()


def current() -> TraceBuffer:
    """The page this thread records on."""
    page = CURRENT.page
    if not page.open:
        page = CURRENT.page = TraceBuffer(site_of(*user_place()))
        page.begin()
        remember(page)
    return page


@contained
def execute(page: TraceBuffer, handles: Sequence[Handle]) -> None:
    """Compute what handles on a page stand for, and what else is held on the way."""
    with page.lock:
        values = page.values
        wanted = tuple(
            [f for h in handles if (f := h._form) and h._page is page and f not in values]
        )
        held = page.live_handles()
        if not wanted:
            page.stay(held)
            return
        forms = tuple([h._form for h in held])
        site = page.site
        key = (current_backend(), wanted, forms, tuple(values))
        found = site.plans.get(key)
        if found is None:
            known = {f.node: f for f in values}
            outputs = co_evaluated(wanted, [f for f in forms if f], known, site)
            found = outputs, TraceProgram(site, [f.node for f in outputs], known)
            site.plans[key] = found
        else:
            COUNTS["hits"] += 1
        outputs, plan = found
        page.executions += 1
        page.close()
        try:
            arrays = plan.run(page.arrays, values, page.numbers)
        except BaseException:
            page.stay(held)
            raise
        results = dict(zip(outputs, arrays, strict=True))
        page.stay(_settled(page, held, results))
        _settled(page, handles, results)  # the page may have lost sight of one


def _settled(
    page: TraceBuffer, handles: Iterable[Handle], results: Mapping[TraceNode, Array]
) -> list[Handle]:
    """Give handles their values; those that stay on the page, since a gradient may ask for their
    history or they were not computed."""
    staying = []
    for h in handles:
        form = h._form
        if form is None or h._page is not page:
            continue
        array = results.get(form)
        stays = h._requires_grad or page.ordered
        if array is None or stays:
            staying.append(h)
        if array is not None:
            if stays:
                page.values[form] = array
            else:
                h._settle(array, form)
    return staying


def materialized_node(h: Handle) -> Node:
    """The node of a handle on a page: the page is dissolved."""
    page = h._page
    if h._form is not None:
        materialize([page], [h])
    return h._own


def materialize(pages: Iterable[TraceBuffer] = (), handles: Iterable[Handle] = ()) -> None:
    """Let all the handles of pages go on as handles on nodes. `handles` are some of them of which a
    page may have lost sight.

    The order of nodes is that of the order of sums, and has to be that in which they were recorded.
    So whatever else this thread has recorded that a gradient may go through becomes nodes, too,
    those of what was recorded before others first. It is asked for before this thread makes nodes
    that are not on a page.
    """
    asked = dict.fromkeys([x for page in pages for x in page.together()])
    known = [x for ref in CURRENT.histories if (x := ref()) is not None]
    recorded = [x for page in known if isinstance(page, TraceBuffer) for x in page.together()]
    all_pages = dict.fromkeys((*asked, *recorded))
    with ExitStack() as locks:
        for page in sorted(all_pages, key=id):  # in one order, lest two threads wait for each other
            locks.enter_context(page.lock)
        gone: dict[TraceBuffer, list[Handle]] = {}
        for page in all_pages:
            if page not in asked and page.last == page.seen:
                continue
            page.seen = page.last
            if page in asked:
                page.close()
            held = page.live_handles()
            if page in asked or any(x._requires_grad for x in held):
                gone[page] = held
            else:
                page.stay(held)
        for h in handles:
            if h._form is not None and not any(x is h for x in gone[h._page]):
                gone[h._page].append(h)
        parts = [x.part() for x in known if isinstance(x, TapeSegment)]
        parts += [page.part(held) for page, held in gone.items()]
        CURRENT.histories = [weakref.ref(page) for page in all_pages if page not in gone]
        fill(parts)
        for page, held in gone.items():
            for form, array in page.values.items():
                VALUES[page.nodes[form.node]] = array
            for handle in held:
                handle._leave(page)
        for page in gone:
            page.materialized()


def remember(history: TraceBuffer | TapeSegment) -> None:
    """List what this thread has recorded."""
    histories = CURRENT.histories
    histories.append(weakref.ref(history))
    if len(histories) % 64 == 0:
        CURRENT.histories = [ref for ref in histories if ref() is not None]
