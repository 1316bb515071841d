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
from collections.abc import Callable, Iterable, Mapping, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING

import numpy as np

from retrograd.backends import Array, Program, on_real
from retrograd.backends.interpret import InterpretedProgram
from retrograd.errors import IndexRangeError
from retrograd.frontend.context import current_backend
from retrograd.frontend.forms import Form, Place, filled, place_of
from retrograd.frontend.leaves import VALUES
from retrograd.frontend.programs import COUNTS, needed, program_for, with_arguments
from retrograd.frontend.source import user_place
from retrograd.ir import Node, product
from retrograd.ops.elementwise import ELEMENTWISE

if TYPE_CHECKING:
    from retrograd.frontend.recording import Lazy

LOOKS = 8  # after which a page is not continued: it would keep all that was ever on it
LONGEST = 8192  # operations a page takes in; longer recordings go on as nodes, at no more memory
SWEEP = 1024  # handles or arrays on a page after which it is looked who still needs them


class Page:
    """Arrays and numbers by slot, and the handles on what was computed from them.

    `handles` lists them strongly, so that making one costs little; that somebody else holds one
    is seen by its reference count. It decides only what is computed along with what is asked for.
    """

    __slots__ = (
        "__weakref__", "arrays", "handles", "keep", "kept", "limit", "lock", "looks", "nodes",
        "numbers", "open", "place", "slots", "take", "values",
    )  # fmt: skip

    keep: Callable[[Lazy], None]

    def __init__(self, place: Place) -> None:
        self.place = place
        self.open = True  # whether a thread records here
        self.arrays: list[Node] = []  # leaves, by slot
        self.slots: dict[Node, Form] = {}
        self.numbers: dict[int, float] = {}
        self.take = itertools.count().__next__  # the number of the next number
        self.handles: list[Lazy] = []
        self.keep = self.handles.append
        self.kept: list[weakref.ref[Lazy]] = []  # handles that an earlier look left here
        self.values: dict[Form, Array] = {}  # what earlier looks have computed
        self.nodes: dict[Node, Node] = {}  # of forms whose nodes were asked for
        self.limit = SWEEP
        self.looks = 0  # how often something was computed
        self.lock = threading.RLock()
        _list(self)

    def slot(self, leaf: Node, spent: bool) -> Form:
        """The form of an array on this page, which gets a slot at its first use."""
        found = self.slots.get(leaf)
        if found is None:
            with self.lock:
                found = self.place.leaf(len(self.arrays), leaf, spent)
                self.arrays.append(leaf)
                self.slots[leaf] = found
        return found

    def alive(self) -> list[Lazy]:
        """The handles that somebody holds, in the order of their making."""
        made, self.handles = self.handles, []
        if self.open:
            self.keep = self.handles.append
        old = [h for h in [ref() for ref in self.kept] if h is not None and h._page is self]
        return old + [h for h in made if getrefcount(h) > ALONE and h._page is self]

    def close(self) -> None:
        """Nothing more is recorded here, unless it goes on from what is here."""
        self.open = False
        self.keep = _refuse
        if CURRENT.page is self:
            CURRENT.page = NOWHERE  # so that the thread keeps no data alive

    def forget(self) -> None:
        """Let go of handles that nobody else holds; start afresh where there are none."""
        held = self.alive()
        if held:
            self.kept = [weakref.ref(h) for h in held]
            self.limit = 2 * max(len(held), len(self.arrays), SWEEP)
        else:
            self.close()


def _refuse(handle: Lazy) -> None:
    """Nothing is recorded on a page that is closed."""
    raise KeyError


def _count_alone() -> int:
    """The reference count that `alive` sees of a handle that only the page holds."""
    made = [object()]
    return [getrefcount(h) for h in made if getrefcount(h)][0]  # noqa: RUF015 - as `alive` does


ALONE = _count_alone()
PAGES: list[weakref.ref[Page]] = []  # those there are, and some that are gone
_PRUNE = [64]  # how long the list may grow before it is looked through


def _list(page: Page) -> None:
    """Enter a page into the list of pages, now and then without those that are gone."""
    if len(PAGES) > _PRUNE[0]:
        PAGES[:] = [ref for ref in PAGES if ref() is not None]
        _PRUNE[0] = 2 * len(PAGES) + 64
    PAGES.append(weakref.ref(page))


NOWHERE = Page(Place())  # the page of what is not on one
NOWHERE.open, NOWHERE.keep = False, _refuse


class _Current(threading.local):
    page: Page = NOWHERE


CURRENT = _Current()


def current() -> Page:
    """The page this thread records on."""
    page = CURRENT.page
    if page.open and (len(page.handles) > page.limit or len(page.arrays) > page.limit):
        page.forget()
    if not page.open:
        page = CURRENT.page = Page(place_of(*user_place()))
    return page


def reopen(page: Page) -> None:
    """Record on a page that was left, since what is recorded goes on from there."""
    CURRENT.page.close()
    CURRENT.page, page.open = page, True
    page.keep = page.handles.append


class Plan:
    """A program for a page: where its arguments are, and what it computes."""

    __slots__ = (
        "arguments", "done", "ends", "free", "known", "outputs", "program", "scalars", "slots",
        "what",
    )  # fmt: skip

    def __init__(
        self, place: Place, wanted: Sequence[Form], alive: Iterable[Form], known: Iterable[Form]
    ) -> None:
        nodes = {f.node: f for f in known}
        leaves = {f.node: f for f in place.leaves.values()}

        def at_hand(node: Node) -> Form | None:
            return nodes.get(node) or leaves.get(node)

        self.outputs = _along(list(wanted), list(alive), at_hand)
        what = self.what = needed([f.node for f in self.outputs], at_hand)
        free = place.numbers
        self.slots = [leaves[x].slot for x in what.inputs if x not in nodes]
        self.known = [nodes[x] for x in what.inputs if x in nodes]
        what.inputs.sort(key=lambda x: x in nodes)  # arrays of slots first; the sort is stable
        self.program: Program
        self.ends = [f.node for f in self.outputs]
        self.program, self.scalars = program_for(what, self.ends, free)
        scalars = self.scalars
        # Numbers: those of the recording are looked at in every run, the others never change.
        self.free = [
            (i, place.numbers[c], c.dtype.dtype.type) for i, c in enumerate(scalars) if c in free
        ]
        self.arguments: list[Array] = [c.prim.value for c in scalars]  # type: ignore[attr-defined]
        self.done: dict[int, float] = {}

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The values of the outputs."""
        try:
            return self.program(arrays)
        except IndexRangeError:
            # The program may have been made for another line of the user's that does the same.
            graph = with_arguments(self.what.inputs, self.scalars, self.ends)
            on_real(graph, InterpretedProgram)(arrays)
            raise

    def numbers(self, given: dict[int, float]) -> list[Array]:
        """The arguments that are numbers."""
        if self.done != given:
            arguments = list(self.arguments)
            with np.errstate(all="ignore"):
                for i, k, kind in self.free:
                    arguments[i] = np.asarray(kind(given[k]))
            self.arguments, self.done = arguments, dict(given)
        return self.arguments


def _along(
    wanted: list[Form], alive: list[Form], at_hand: Callable[[Node], Form | None]
) -> list[Form]:
    """What is computed when some forms are wanted, of those that somebody holds: what is on the
    way, the loss a gradient came from and the gradients of a loss, and what takes next to nothing
    more, such as a running total, which would grow if nobody looked at it."""
    outputs = dict.fromkeys(wanted)
    while True:
        on_the_way = set(needed([f.node for f in outputs], at_hand).order)
        losses = {f.loss for f in outputs}
        new = [
            f
            for f in alive
            if f not in outputs
            and at_hand(f.node) is None
            and (f.node in on_the_way or f in losses or f.loss in outputs)
        ]
        if not new:
            break
        outputs |= dict.fromkeys(new)
    for f in alive:
        if f not in outputs and at_hand(f.node) is None:
            more = [n for n in needed([f.node], at_hand).order if n not in on_the_way]
            if len(more) <= 4 and all(_is_little(n) for n in more):
                outputs[f] = None
    return list(outputs)


def _is_little(node: Node) -> bool:
    """Whether a node takes next to no time, and cannot fail."""
    sizes = [product(x.shape) for x in (node, *node.inputs)]
    return all(isinstance(n, int) and n <= 64 for n in sizes) and node.op in ELEMENTWISE


def flush(page: Page, handles: Sequence[Lazy]) -> None:
    """Compute what handles on a page stand for, and what else is held on the way."""
    with page.lock:
        values = page.values
        wanted = tuple(
            [f for h in handles if (f := h._form) and h._page is page and f not in values]
        )
        held = page.alive()
        if not wanted:
            page.kept = [weakref.ref(h) for h in held]
            return
        forms = tuple([h._form for h in held])
        key = (current_backend(), wanted, forms, tuple(values))
        plan = page.place.plans.get(key)
        if plan is None:
            plan = Plan(page.place, wanted, [f for f in forms if f], values)
            page.place.plans[key] = plan
        else:
            COUNTS["hits"] += 1
        arrays = page.arrays
        given = [arrays[k].prim.array for k in plan.slots]  # type: ignore[attr-defined]
        given += [values[f] for f in plan.known]
        given += plan.numbers(page.numbers)
        page.looks += 1
        page.close()
        try:
            results = dict(zip(plan.outputs, plan.run(given), strict=True))
        except BaseException:
            page.kept = [weakref.ref(h) for h in held]
            raise
        page.kept = _settled(page, held, results)
        _settled(page, handles, results)  # the page may have lost sight of one


def _settled(
    page: Page, handles: Iterable[Lazy], results: Mapping[Form, Array]
) -> list[weakref.ref[Lazy]]:
    """Give handles their values; those that stay on the page, since a gradient may ask for their
    history or they were not computed."""
    staying = []
    for h in handles:
        form = h._form
        if form is None or h._page is not page:
            continue
        array = results.get(form)
        if array is None or h._requires_grad:
            staying.append(weakref.ref(h))
        if array is not None:
            if h._requires_grad:
                page.values[form] = array
            else:
                h._settle(array, form)
    return staying


def materialise(h: Lazy) -> Node:
    """The node of a handle on a page: the page is dissolved, and all its handles go on as handles
    on nodes."""
    page = h._page
    with page.lock:
        if h._form is None:  # another thread was faster
            return h._own
        held = page.alive()
        page.close()
        page.kept = []
        if not any(x is h for x in held):
            held.append(h)
        forms = [f for x in held if (f := x._form) is not None]
        filled([*forms, *page.values], page.arrays, page.numbers, page.nodes)
        for form, array in page.values.items():
            VALUES[page.nodes[form.node]] = array
        for x in held:
            x._leave(page)
    return h._own
