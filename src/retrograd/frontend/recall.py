"""Recording on pages: operations that were recorded before are looked up, others are learned."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from types import EllipsisType
from typing import Any

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.frontend.context import grad_enabled
from retrograd.frontend.conversion import as_array
from retrograd.frontend.forms import Form
from retrograd.frontend.leaves import SPENT, Data, leaf
from retrograd.frontend.page import Page, current
from retrograd.frontend.programs import LITERAL, LOCK, is_argument
from retrograd.frontend.recorder import Operation, number_key
from retrograd.frontend.recording import Lazy, recorders
from retrograd.frontend.segments import LOOKS, cut, make_room
from retrograd.frontend.source import user_source
from retrograd.ir import Dim, DType, Node, Provenance, made_by, provenance

MISSED = object()  # in place of a result: this has to be recorded on nodes
# Stands in a form for any number. Nothing is special about it, so no rule takes it for special.
ANY_NUMBER = 0.6180339887498949
LARGEST = 2**53  # beyond, an int is not the same as a float


class _Unfit(Exception):
    """An argument that cannot be looked up by its value."""


def page_of(handles: Sequence[Lazy]) -> Page | None:
    """The page on which an operation on these is recorded, if it is recorded on one."""
    if recorders():
        return None
    page = None
    for h in handles:
        if h._form is not None:
            if page is not None and h._page is not page:
                return None
            page = h._page
    if page is None:
        page = current()
    elif not page.open:
        if page.looks > LOOKS:  # it would keep all that was ever on it
            return page_of(handles) if cut(page, handles) else None
        page.reopen()
    if page.made() >= page.limit:
        room = make_room(page, handles)
        return page if page.open else page_of(handles) if room else None
    return page


def operand(page: Page, h: Lazy) -> Form | None:
    """What a handle is on a page; None if it cannot be on this page."""
    form = h._form
    if form is not None:
        return form if h._page is page else None
    node = h._own
    assert node is not None
    found = page.slots.get(node)
    if found is None:
        prim = node.prim
        if isinstance(prim, Data):
            if prim.mark is not None:
                node = h.used()
            return page.slot(node, prim.spent)
        if node.inputs or node.op == "input" or node in SPENT or h._requires_grad:
            return None
        place = page.place
        found = place.calls.get(prim)
        if found is None:
            with LOCK:
                found = place.calls[prim] = place.form(Node(prim, (), node.type))
    return found


def hold(page: Page, form: Form, tracked: bool) -> Any:
    """A handle on a form."""
    tracked = tracked and form.floating
    if tracked and not grad_enabled():
        form, tracked = _locked(form.stop), False
    if form.slot >= 0:
        return Lazy.handle_class(page.arrays[form.slot], tracked)
    if tracked and form.serial > page.last:
        page.last = form.serial
    new = object.__new__(Lazy.handle_class)
    new._form = form
    new._page = page
    new._requires_grad = tracked
    page.add(new)
    return new


def in_order(page: Page, found: Form, given: Sequence[Form], tracked: bool) -> Form | None:
    """The form of a result at this point of a recording; None if it has yet to be learned.

    Gradients are added up in the order in which forms were learned. So that this is the order in
    which a program records, whatever was recorded from its line before, what a gradient may go
    through is on a page in the order of serials, and never twice: where the known form would have
    come before something that is there, it is the same computation `again`, learned later.
    """
    if found.serial > page.last or not (tracked and found.floating and grad_enabled()):
        return found
    if any(found is x for x in given):
        return found
    behind = found.again
    while behind is not None and behind.serial <= page.last:
        behind = behind.again
    return behind


def _locked(make: Callable[[], Form]) -> Form:
    with LOCK:
        return make()


def single(op: Operation, x: Any) -> Any:
    """Record an operation on one handle."""
    if not isinstance(x, Lazy):
        return MISSED
    page = page_of((x,))
    form = operand(page, x) if page is not None else None
    if page is None or form is None:
        return MISSED
    tracked = x._requires_grad
    found = _look(page, op, form, None, tracked, lambda: (form.node,))
    return MISSED if found is None else hold(page, found, tracked)


def pair(op: Operation, x: Lazy, other: Any) -> Any:
    """Record an operation on a handle and another or a number."""
    kind = other.__class__
    if kind is float or kind is int:
        return _with_number(op, x, other)
    if not isinstance(other, Lazy):
        return MISSED
    page = page_of((x, other))
    if page is None:
        return MISSED
    a, b = operand(page, x), operand(page, other)
    if a is None or b is None:
        return MISSED
    nodes = (b.node, a.node) if op.swapped else (a.node, b.node)
    tracked = x._requires_grad or other._requires_grad
    found = _look(page, op, a, b, tracked, lambda: nodes)
    return MISSED if found is None else hold(page, found, tracked)


def _with_number(op: Operation, x: Lazy, value: float) -> Any:
    page = page_of((x,))
    form = operand(page, x) if page is not None else None
    if page is None or form is None:
        return MISSED
    if not (op.numbers and form.takes_numbers and value not in LITERAL) or (
        value.__class__ is int and abs(value) > LARGEST
    ):
        nodes = (value, form.node) if op.swapped else (form.node, value)
        found = _look(page, op, form, number_key(value), x._requires_grad, lambda: nodes)
        return MISSED if found is None else hold(page, found, x._requires_grad)
    k = page.take()
    found = free_number(page, op, form, k, x._requires_grad)
    if found is None:
        return MISSED
    page.numbers[k] = value
    return hold(page, found, x._requires_grad)


def free_number(page: Page, op: Operation, form: Form, k: int, tracked: bool) -> Form | None:
    """The form of an operation with the number `k` of a page, whatever its value."""
    nodes = (ANY_NUMBER, form.node) if op.swapped else (form.node, ANY_NUMBER)

    def bind(node: Node) -> bool:
        bound = [c for c in node.inputs if c is not form.node and is_argument(c)]
        if len(bound) == 1:
            form.place.numbers[bound[0]] = k
        return len(bound) == 1

    return _look(page, op, form, k, tracked, lambda: nodes, bind)


def _look(
    page: Page,
    op: Operation,
    form: Form,
    other: Any,
    tracked: bool,
    nodes: Callable[[], tuple[Any, ...]],
    bind: Callable[[Node], bool] | None = None,
) -> Form | None:
    """The form of the result, made if it is new; None if it is not to be recorded on a page."""
    table = form.uses.get(op)
    first = table.get(other) if table is not None else None
    if first is not None:
        found = in_order(page, first, (form, other), tracked)
        if found is not None:
            return found
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
        last = form.place.newest
        found = form.place.form(node)
        # What it was given itself needs a handle of another kind if that is an array. Whatever else
        # there was before is no step of a recording: it is not followed by what there is `again`.
        if found.serial > last and found.slot < 0:  # arrays have serials, and are no steps
            _append(form.uses.setdefault(op, {}).setdefault(other, found), found)
        elif found.slot < 0 and (found is form or found is other):
            form.uses.setdefault(op, {})[other] = found
    return found


def _append(first: Form, found: Form) -> None:
    """Enter a form as the same computation as another, learned later."""
    while first.again is not None:
        first = first.again
    if found.serial > first.serial:
        first.again = found


# -- any library function ----------------------------------------------------------------------
class _Key:
    """Arguments as parts of a key, in which forms take the places of handles.

    No closure, which would refer to itself and keep handles alive until the next collection.
    """

    __slots__ = ("handles", "parts", "where")

    def __init__(self, f: Callable[..., Any]) -> None:
        self.parts: list[Any] = [f]
        self.handles: list[Lazy] = []
        self.where: list[int] = []  # the places of handles among the parts

    def enter(self, a: Any, array: bool) -> Any:
        """Add an argument; returns it with arrays replaced by handles."""
        if array and isinstance(a, np.ndarray | np.generic) and not isinstance(a, float):
            a = Lazy.handle_class(leaf(np.array(as_array(a))))
        if array and isinstance(a, Lazy):
            self.where.append(len(self.parts))
            self.handles.append(a)
            self.parts.append(None)
            return a
        if array and isinstance(a, list | tuple):
            self.parts.extend((list, len(a)))
            return [self.enter(x, True) for x in a]
        self.parts.append(_frozen(a))
        return a


def recall(
    f: Callable[..., Any],
    is_array: Sequence[bool],
    rest: bool,
    arrays: frozenset[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The result of a library function, looked up by the forms and the values of its arguments."""
    quick: Any = None
    try:  # of one tensor, with options: `x.sum(axis=0)`
        x = args[0]
        form, others = x._form, args[1:]
        if form is None and x._own.inputs:
            return MISSED  # it is recorded on nodes: no page knows it
        quick = others, tuple(map(type, others)), *kwargs.items(), *map(type, kwargs.values())
        page = x._page
        if page.open and page.made() < page.limit:
            found = in_order(page, form.uses[f][quick], (form,), x._requires_grad)
            if found is not None:
                return hold(page, found, x._requires_grad)
    except (AttributeError, IndexError, KeyError, TypeError):
        pass
    key = _Key(f)
    try:
        given = [
            key.enter(a, is_array[i] if i < len(is_array) else rest) for i, a in enumerate(args)
        ]
        named = {}
        for name, a in kwargs.items():
            key.parts.append(name)
            named[name] = key.enter(a, name in arrays)
    except (_Unfit, RetrogradError):
        return MISSED
    handles = key.handles
    page = page_of(handles) if handles else None
    if page is None:
        return MISSED
    tracked = False
    forms: dict[int, Form] = {}
    for i, h in zip(key.where, handles, strict=True):
        form = operand(page, h)
        if form is None:
            return MISSED
        key.parts[i] = forms[id(h)] = form
        tracked |= h._requires_grad
    call = tuple(key.parts)
    known = page.place.calls.get(call)
    if known:  # nothing is in it yet where another thread is learning the call
        first, found = known[0]
        if first > page.last or not tracked or not grad_enabled():
            return _held(page, found, tracked)
        at = bisect_right(known, page.last, key=itemgetter(0))
        if at < len(known):
            return _held(page, known[at][1], tracked)
    with LOCK:
        last = page.place.newest
        found = _learn(page, f, given, named, forms)
        if found is MISSED:
            return MISSED
        steps = [form.serial for form in _forms(found) if form.slot < 0]
        made = [serial for serial in steps if serial > last]
        # What gives nothing but what there was is no step of a recording, and has no order.
        known = page.place.calls.setdefault(call, [])
        known.append((max(made, default=math.inf), found))
        plain = all(type(a) in _PLAIN for a in (*args[1:], *kwargs.values()))
        one = isinstance(found, Form) and found.slot < 0
        if plain and quick and one and handles[0] is args[0]:
            form = forms[id(handles[0])]
            if made or found is form:
                first = form.uses.setdefault(f, {}).setdefault(quick, found)
                _append(first, found)
    return _held(page, found, tracked)


def _forms(found: Any) -> list[Form]:
    """The forms among the results of a function."""
    if isinstance(found, tuple):
        return [form for x in found[1] for form in _forms(x)]
    return [found] if isinstance(found, Form) else []


def _learn(
    page: Page, f: Callable[..., Any], args: Any, kwargs: Any, forms: dict[int, Form]
) -> Any:
    """Run a library function on the nodes of forms; the forms of what it returns."""
    here = provenance()
    if here.origin is not None:
        return MISSED

    with LOCK, made_by(Provenance(here.scope, user_source(), None)):
        try:
            result = f(
                *[_node(a, forms) for a in args],
                **{k: _node(a, forms) for k, a in kwargs.items()},
            )
        except (RetrogradError, TypeError, ValueError):
            return MISSED
        return _formed(page, result)


def _node(a: Any, forms: dict[int, Form]) -> Any:
    if isinstance(a, list):
        return [_node(x, forms) for x in a]
    return forms[id(a)].node if isinstance(a, Lazy) else a


def _formed(page: Page, result: Any) -> Any:
    if isinstance(result, tuple | list):
        return type(result), [_formed(page, r) for r in result]
    return page.place.form(result) if isinstance(result, Node) else result


def _held(page: Page, found: Any, tracked: bool) -> Any:
    if isinstance(found, Form):
        return hold(page, found, tracked)
    if isinstance(found, tuple):
        kind, items = found
        return collected(kind, [_held(page, x, tracked) for x in items])
    return found


def collected(kind: Any, items: list[Any]) -> Any:
    """A list, a tuple or a named tuple of items."""
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def replayed(
    key: Sequence[Any], handles: Sequence[Lazy], make: Callable[[], list[Lazy]]
) -> list[Lazy]:
    """What `make()` records with handles, looked up as one where it was recorded before.

    It has to be the same for equal keys, made of these handles and of numbers, and to have nothing
    to do with gradients.
    """
    try:
        parts = [_frozen(x) for x in key]
    except _Unfit:
        return make()
    page = page_of(handles)
    forms = [] if page is None else [operand(page, h) for h in handles]
    if page is None or None in forms:
        return make()
    first = page.take()  # what is recorded depends on how numbers are counted
    call = (first, *parts, *forms)
    found = page.place.calls.get(call)
    # Unless another thread takes numbers of this page at the same time, they follow one another.
    if found is not None and all(page.take() == k for k in range(first + 1, found[2] + 1)):
        results, numbers, _ = found
        for k, x in numbers.items():
            page.numbers[k] = x
        return [hold(page, f, False) for f in results]
    made = make()
    if all(h._page is page for h in made):
        numbers = page.numbers_from(first + 1)
        page.place.calls[call] = [h._form for h in made], numbers, page.take()
    return made


_PLAIN = frozenset((int, bool, str, type(None), EllipsisType))


def _frozen(a: Any) -> Any:
    """A value as part of a key: equal only to values that mean the same."""
    kind = a.__class__
    if kind in _PLAIN:
        return kind, a
    if kind is float or kind is np.float64:
        return kind, repr(a)
    if kind is tuple or kind is list:
        return (kind, *[_frozen(x) for x in a])
    if kind is slice:
        return kind, _frozen(a.start), _frozen(a.stop), _frozen(a.step)
    if isinstance(a, DType | Dim | np.dtype | type):
        return a
    raise _Unfit
