"""Recording on pages: operations that were recorded before are looked up, others are learned.

Here are operations of one and two operands; calls of any library function are in `call_cache.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.eager import listeners
from retrograd.eager.fast_path import Operation, number_key
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import FREED, ConcreteLeaf
from retrograd.eager.listeners import alive
from retrograd.eager.modes import current_tape, grad_enabled, is_tracing, is_unseen
from retrograd.eager.program_cache import LITERAL, LOCK, is_argument
from retrograd.eager.segments import EXECUTIONS, grow_or_split, split
from retrograd.eager.trace_buffer import TraceBuffer, current
from retrograd.eager.trace_cache import TraceNode
from retrograd.errors import RetrogradError
from retrograd.ir import Node, Provenance, made_by, provenance
from retrograd.ir.source import user_source
from retrograd.shared import contained

MISSED = object()  # in place of a result: this has to be recorded on nodes
# Stands in a form for any number. Nothing is special about it, so no rule takes it for special.
ANY_NUMBER = 0.6180339887498949
LARGEST = 2**53  # beyond, an int is not the same as a float


def page_of(handles: Sequence[LazyTensor]) -> TraceBuffer | None:
    """The page on which an operation on these is recorded, if it is recorded on one."""
    if listeners.RECORDERS or current_tape() is not None or any(h._page.ordered for h in handles):
        found = _with_tapes(handles)
        if found is not MISSED:
            return found  # type: ignore[return-value]
    page = None
    for h in handles:
        if h._form is not None:
            if page is not None and h._page is not page:
                return None
            page = h._page
    if page is None:
        page = current()
    elif not page.open:
        if page.executions > EXECUTIONS:  # it would keep all that was ever on it
            return page_of(handles) if split(page, handles) else None
        page.reopen()
    if page.made() >= page.limit:
        room = grow_or_split(page, handles)
        return page if page.open else page_of(handles) if room else None
    return page


def _with_tapes(handles: Sequence[LazyTensor]) -> TraceBuffer | object | None:
    """The same where there are tapes, or something else that is shown what is recorded. `MISSED`
    where none of them has to do with it."""
    pages = [h._page for h in handles if h._page.is_taped()]
    if is_tracing() or is_unseen():
        return None if pages or current_tape() is not None else MISSED
    for x in alive():
        if (x.sees_all and not x.on_pages) or any(
            h._form is None and x.holds(h._own) for h in handles
        ):
            return None
    tape = current_tape()
    if tape is None and pages:
        tape = pages[0].tape()  # type: ignore[attr-defined]
    return MISSED if tape is None else tape.page_of(handles, pages)


def lookup_operand(page: TraceBuffer, h: LazyTensor) -> TraceNode | None:
    """What a handle is on a page; None if it cannot be on this page."""
    form = h._form
    if form is not None and h._page is page:
        return form
    if (form is not None or page.ordered) and not page.take_in(h):
        return None
    node = h._own
    assert node is not None
    found = page.slots.get(node)
    if found is None:
        prim = node.prim
        if isinstance(prim, ConcreteLeaf):
            if prim.shared:
                node = h.node
            return page.slot(node, prim.freed)
        if node.inputs or node.op == "input" or node in FREED or h._requires_grad:
            return None
        found = constant(page, node)
    return found


def constant(page: TraceBuffer, node: Node) -> TraceNode:
    """What a node that has no operands is on a page."""
    if isinstance(node.prim, ConcreteLeaf):
        return page.slot(node, node.prim.freed)
    site, known = page.site, page.slots.get(node)
    if known is not None:
        return known
    key = page.constant_key(node)
    found: TraceNode | None = site.calls.get(key)
    if found is None:
        with LOCK:
            found = site.calls[key] = site.form(Node(node.prim, (), node.type))
    page.note(node, found)
    return found


def make_handle(page: TraceBuffer, form: TraceNode, tracked: bool) -> Any:
    """A handle on a form; `MISSED` where the page of a tape is not open any more."""
    tracked = tracked and form.floating
    if tracked and not grad_enabled():
        form, tracked = _locked(form.stop), False
    if form.slot >= 0:
        same = LazyTensor.handle_class(page.arrays[form.slot], tracked)
        if page.ordered:
            same.attach(page)
        return same
    new = LazyTensor.deferred(page, form, tracked)
    if not page.ordered:
        if tracked and form.order > page.last:
            page.last = form.order
        page.add(new)
        return new
    with page.lock:  # of a tape nothing may get lost
        if not page.open:
            return MISSED  # another thread has closed it since it was looked at
        page.last = max(page.last, form.order)
        page.add(new)
    return new


def next_in_program_order(
    page: TraceBuffer, found: TraceNode, given: Sequence[TraceNode], tracked: bool
) -> TraceNode | None:
    """The form of a result at this point of a recording; None if it has yet to be learned.

    Gradients are added up in the order in which forms were learned. So that this is the order in
    which a program records, whatever was recorded from its line before, what a gradient may go
    through is on a page in the order of learning, and never twice: where the known form would have
    come before something that is there, it is the same computation `duplicate`, learned later.
    """
    counts = page.ordered or (tracked and found.floating and grad_enabled())
    if found.order > page.last or not counts:
        return found
    if any(found is x for x in given):
        return found
    behind = found.duplicate
    while behind is not None and behind.order <= page.last:
        behind = behind.duplicate
    return behind


def _locked(make: Callable[[], TraceNode]) -> TraceNode:
    with LOCK:
        return make()


def single(op: Operation, x: Any) -> Any:
    """Record an operation on one handle."""
    if not isinstance(x, LazyTensor):
        return MISSED
    page = page_of((x,))
    form = lookup_operand(page, x) if page is not None else None
    if page is None or form is None:
        return MISSED
    tracked = x._requires_grad
    found = _look(page, op, form, None, tracked, lambda: (form.node,))
    return MISSED if found is None else make_handle(page, found, tracked)


def pair(op: Operation, x: LazyTensor, other: Any) -> Any:
    """Record an operation on a handle and another or a number."""
    kind = other.__class__
    if kind is float or kind is int:
        return _with_number(op, x, other)
    if not isinstance(other, LazyTensor):
        return MISSED
    page = page_of((x, other))
    if page is None:
        return MISSED
    a, b = lookup_operand(page, x), lookup_operand(page, other)
    if a is None or b is None:
        return MISSED
    nodes = (b.node, a.node) if op.swapped else (a.node, b.node)
    tracked = x._requires_grad or other._requires_grad
    found = _look(page, op, a, b, tracked, lambda: nodes)
    return MISSED if found is None else make_handle(page, found, tracked)


def _with_number(op: Operation, x: LazyTensor, value: float) -> Any:
    page = page_of((x,))
    form = lookup_operand(page, x) if page is not None else None
    if page is None or form is None:
        return MISSED
    if not (op.numbers and form.takes_numbers and value not in LITERAL) or (
        value.__class__ is int and abs(value) > LARGEST
    ):
        nodes = (value, form.node) if op.swapped else (form.node, value)
        found = _look(page, op, form, number_key(value), x._requires_grad, lambda: nodes)
        return MISSED if found is None else make_handle(page, found, x._requires_grad)
    k = page.take()
    found = free_number(page, op, form, k, x._requires_grad)
    if found is None:
        return MISSED
    page.numbers[k] = value
    return make_handle(page, found, x._requires_grad)


def free_number(
    page: TraceBuffer, op: Operation, form: TraceNode, k: int, tracked: bool
) -> TraceNode | None:
    """The form of an operation with the number `k` of a page, whatever its value."""
    nodes = (ANY_NUMBER, form.node) if op.swapped else (form.node, ANY_NUMBER)

    def bind(node: Node) -> bool:
        bound = [c for c in node.inputs if c is not form.node and is_argument(c)]
        if len(bound) == 1:
            form.site.numbers[bound[0]] = k
        return len(bound) == 1

    return _look(page, op, form, k, tracked, lambda: nodes, bind)


def _look(
    page: TraceBuffer,
    op: Operation,
    form: TraceNode,
    other: Any,
    tracked: bool,
    nodes: Callable[[], tuple[Any, ...]],
    bind: Callable[[Node], bool] | None = None,
) -> TraceNode | None:
    """The form of the result, made if it is new; None if it is not to be recorded on a page."""
    table = form.successors.get(op)
    first = table.get(other) if table is not None else None
    if first is not None:
        found = next_in_program_order(page, first, (form, other), tracked)
        if found is not None:
            return found
    return _learned(op, form, other, nodes, bind)


@contained
def _learned(
    op: Operation,
    form: TraceNode,
    other: Any,
    nodes: Callable[[], tuple[Any, ...]],
    bind: Callable[[Node], bool] | None,
) -> TraceNode | None:
    """The same of what is new."""
    here = provenance()
    if here.origin is not None:
        return None
    with LOCK, made_by(Provenance(here.scope, user_source(), None)):
        try:
            node = op.function(*nodes())
        except (RetrogradError, TypeError):
            return None  # it fails again where it is recorded on nodes, with the right message
        if not isinstance(node, Node) or (bind is not None and not bind(node)):
            return None
        last = form.site.newest
        found = form.site.form(node)
        # What it was given itself needs a handle of another kind if that is an array. Whatever else
        # there was before is no step of a recording: it has no `duplicate` behind it.
        if found.order > last and found.slot < 0:  # arrays have an order, and are no steps
            add_duplicate(form.successors.setdefault(op, {}).setdefault(other, found), found)
        elif found.slot < 0 and (found is form or found is other):
            form.successors.setdefault(op, {})[other] = found
    return found


def add_duplicate(first: TraceNode, found: TraceNode) -> None:
    """Enter a form as the same computation as another, learned later."""
    while first.duplicate is not None:
        first = first.duplicate
    if found.order > first.order:
        first.duplicate = found
