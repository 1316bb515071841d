"""Cuts: a long recording becomes segments, each a program of its own.

Without cuts all that is recorded until somebody looks would be one program without loops. After so
many operations what somebody holds is computed and goes on as leaves that know their past, on a new
page. Where a recording repeats, it is cut at a multiple of its period, so that all segments are one
form and their programs are found; a recording that does not repeat is cut later, and interpreted.

A cut changes no bits: it is a look at all that is held, and gradients are added up through segments
in the order in which they would be added in one program (`segment_backward.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrograd.autodiff import pullback
from retrograd.eager.grad_fn import GradFn, TapeSegment, past_of
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import known_as, leaf_handle
from retrograd.eager.modes import current_backend
from retrograd.eager.program_cache import COUNTS, LOCK
from retrograd.eager.trace_buffer import TraceBuffer, remember
from retrograd.eager.trace_cache import TraceNode, TraceSite
from retrograd.eager.trace_program import TraceProgram
from retrograd.errors import RetrogradError
from retrograd.ir import Node, Trait
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array
from retrograd.shared import contained

LONGEST = 8192  # handles on a page, after which the recording is cut whether it repeats or not
REPEATS = 16  # how often a recording has to repeat to be cut before
PERIOD = 128  # the longest period that is looked for
EXECUTIONS = 8  # after which a page is not continued: it would keep all that was ever on it


def grow_or_split(page: TraceBuffer, operands: Sequence[LazyTensor]) -> bool:
    """Of a page that is full, more room, or a cut, after which it is closed. False where that
    fails: what is wrong comes up when somebody looks."""
    with page.lock:
        made = page.made()
        if made < page.limit or not page.open:  # another thread was here
            return True
        if not page.ripe:
            period = detect_period(page)
            page.ripe = period > 0
            page.limit = made + -made % period if period else min(2 * made, LONGEST)
            if made < page.limit:
                page.site.room = 0 if period else page.limit
                return True
        if not split(page, operands):
            return False
        page.site.limit = made if page.ripe else 0
        return True


def detect_period(page: TraceBuffer) -> int:
    """After how many operations a recording repeats; 0: it does not, or not often."""
    nodes = [f.node for f in page.recorded()]
    what = [(n.prim, n.source and (n.source.code, n.source.lasti)) for n in nodes]
    for p in range(1, PERIOD + 1):
        n = REPEATS * p
        if n + p > len(what):
            break
        if what[-n:] == what[-n - p : -p]:
            return p
    return 0


@contained
def split(page: TraceBuffer, operands: Sequence[LazyTensor]) -> bool:
    """Compute all that somebody holds of a page, and close it. Handles go on as leaves; those that
    require a gradient know their past. False if the computation fails, where nothing is changed."""
    with page.lock:
        page.close()
        held = page.live_handles()
        held += [h for h in operands if h._page is page and not any(h is x for x in held)]
        page.stay(held)
        site, values = page.site, page.values
        forms = dict.fromkeys([f for h in held if (f := h._form) is not None])
        wanted = [f for f in forms if f not in values]
        tracked = dict.fromkeys([f for h in held if h._requires_grad and (f := h._form)])
        if wanted:
            leaves = _differentiable(page)
            key = ("cut", current_backend(), *wanted, None, *tracked, None, *leaves, None, *values)
            found = site.plans.get(key)
            if found is None:
                with LOCK:
                    found = site.plans[key] = _plan(site, wanted, list(tracked), leaves, values)
            else:
                COUNTS["hits"] += 1
            outputs, plan = found
            try:
                arrays = plan.run(page.arrays, values, page.numbers)
            except RetrogradError:
                return False
            values |= zip(outputs, arrays, strict=True)
        _go_on(page, held, list(forms if page.is_taped() else tracked))
        return True


def _differentiable(page: TraceBuffer) -> list[TraceNode]:
    """The slots that a gradient may be asked for."""
    return [
        f for x, f in page.slots.items() if past_of(x) is not None or leaf_handle(x) is not None
    ]


def _plan(
    site: TraceSite,
    wanted: Sequence[TraceNode],
    tracked: Sequence[TraceNode],
    leaves: Sequence[TraceNode],
    values: Mapping[TraceNode, Array],
) -> tuple[list[TraceNode], TraceProgram]:
    """The program of a cut: what is held, and of what the gradient needs that which takes long."""
    known = {f.node: f for f in values}
    at_hand = {*known, *[f.node for f in wanted]}  # when the gradient is asked for
    ends = [f.node for f in tracked]
    starts = [input_node(n.type) for n in ends]
    found = pullback(ends, starts, [f.node for f in leaves])
    forward = {n for f in (*wanted, *tracked) for n in _below(f.node, known)}
    todo = [g for g in found if g is not None]
    seen, kept = set(todo), []
    for node in todo:
        for x in node.inputs:
            if x in seen:
                continue
            seen.add(x)
            if x in forward and Trait.KEPT in x.prim.traits and x not in at_hand:
                kept.append(site.form(x))
            elif x not in at_hand:
                todo.append(x)
    outputs = list(dict.fromkeys((*wanted, *kept)))
    return outputs, TraceProgram(site, [f.node for f in outputs], known, patient=True)


def _below(node: Node, known: dict[Node, TraceNode]) -> list[Node]:
    """What a node is computed from, itself included, down to what is known."""
    todo, seen = [node], {node}
    for n in todo:
        for x in n.inputs:
            if x not in seen and x not in known:
                seen.add(x)
                todo.append(x)
    return todo


def _go_on(page: TraceBuffer, held: Sequence[LazyTensor], tracked: Sequence[TraceNode]) -> None:
    """Let the handles of a page be leaves. Those of `tracked` know their past: what a gradient may
    ask for, and all that is on a tape."""
    site, values, numbers = page.site, page.values, page.numbers
    if numbers == site.values:
        numbers = site.values  # nearly always the same: kept once
    else:
        site.values = numbers
    page.stay([])
    leaves: dict[TraceNode, Node] = {}
    if tracked:
        segment = TapeSegment(
            site, page.arrays, numbers, values, page.nodes, page.openings, list(tracked)
        )
        remember(segment)
        for f in tracked:
            new = leaves[f] = known_as(values[f], f.node, f.freed, f.type)
            new.prim.past = GradFn(segment, f)  # type: ignore[attr-defined]
        page.became(segment, leaves)
    for h in held:
        form = h._form
        if form is None or h._page is not page:
            continue
        if form in leaves:
            h._cut(leaves[form], page)
        else:
            h._settle(values[form], form, site.has_freed and -1 in form.slots())
