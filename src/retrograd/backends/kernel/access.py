"""Which part of memory an iteration touches: positions as linear functions of loop counters."""

from __future__ import annotations

from dataclasses import dataclass

from retrograd.backends.kernel.body import Value
from retrograd.backends.kernel.buffer import Buffer
from retrograd.backends.kernel.nest import Nest, live
from retrograd.ir import Dim


@dataclass(frozen=True, slots=True)
class Linear:
    """`start + sum(counter * steps[loop])`."""

    start: int | Dim
    steps: dict[int, int | Dim]


def linear(v: Value, known: dict[Value, Linear | None] | None = None) -> Linear | None:
    """A position as a linear function with known factors, or None."""
    known = {} if known is None else known
    if v not in known:
        known[v] = _linear(v, known)
    return known[v]


def _linear(v: Value, known: dict[Value, Linear | None]) -> Linear | None:
    if v.op == "loop":
        return Linear(0, {v.attr: 1})
    if v.op == "size":
        return Linear(v.attr, {})
    if v.op not in ("iadd", "isub", "imul"):
        return None
    a, b = (linear(x, known) for x in v.args)
    if a is None or b is None:
        return None
    if v.op == "imul":
        if a.steps and b.steps:
            return None
        many, one = (a, b) if a.steps else (b, a)
        return Linear(many.start * one.start, {k: s * one.start for k, s in many.steps.items()})
    sign = 1 if v.op == "iadd" else -1
    steps = dict(a.steps)
    for k, s in b.steps.items():
        steps[k] = steps.get(k, 0) + sign * s
    return Linear(a.start + sign * b.start, steps)


@dataclass(frozen=True, slots=True)
class Touch:
    """An access to a buffer: iteration `i` of the outermost loop touches elements from `low + i *
    step` up to, not including, `high + i * step`. All of the buffer, where `step` is None."""

    buffer: Buffer
    step: int | Dim | None = None
    low: int | Dim = 0
    high: int | Dim = 0

    def within(self, share: int | Dim) -> bool:
        """Whether iteration `i` stays within elements `i * share` to `(i+1) * share`."""
        return self.step == share and not_negative(self.low) and not_negative(share - self.high)


def not_negative(size: int | Dim) -> bool:
    """Whether a number made of sizes is surely not negative."""
    if isinstance(size, Dim):
        return all(factor >= 0 for _, factor in size.terms)
    return size >= 0


def _span(
    position: Value, loops: list[int | Dim], extra: int | Dim = 1
) -> tuple[int | Dim, int | Dim, int | Dim] | None:
    """Step of the outermost loop, and the range that the others make of it."""
    form = linear(position)
    if form is None:
        return None
    low = high = form.start
    for k, s in form.steps.items():
        if k and not_negative(s):
            high = high + s * (loops[k] - 1)
        elif k and isinstance(s, int):
            low = low + s * (loops[k] - 1)
        elif k:
            return None
    return form.steps.get(0, 0), low, high + extra


def touches(nest: Nest) -> tuple[list[Touch], list[Touch]]:
    """What one iteration of the outermost loop reads and writes."""
    loops = list(nest.loops)
    if nest.kind == "gemm":
        return _of_product(nest)
    if nest.kind == "scatter":
        return _of_scatter(nest)
    if nest.kind in ("sort", "argsort"):
        return _of_rows(nest)
    reads = [_touch(v.attr, v.args[0], loops) for v in live(nest) if v.op == "load"]
    reads += [Touch(buffer) for buffer in nest.info.get("buffers", ())]
    writes = [_touch(s.buffer, s.offset, loops) for s in nest.stores]
    return reads, writes


def _of_rows(nest: Nest) -> tuple[list[Touch], list[Touch]]:
    """The same of sorting: a row of each buffer."""
    n = nest.info["n"].attr
    rows = nest.outer if nest.loops else 1
    written = [*(s.buffer for s in nest.stores), *nest.info["work"]]
    own = [(b, b.type.size // rows if rows != 0 else n) for b in written]
    reads = [Touch(b, n, 0, n) for b in nest.info.get("buffers", ())]
    return reads, [Touch(b, size, 0, size) for b, size in own]


def _of_scatter(nest: Nest) -> tuple[list[Touch], list[Touch]]:
    """The same of a scatter, whose positions are not known: what belongs to an iteration, or, where
    threads share the places that are written, to a place."""
    (store,), each = nest.stores, nest.info["each"]
    loads = [v for v in live(nest) if v.op == "load"]
    if "places" in nest.info:
        reads = [Touch(v.attr) for v in loads]
    else:
        reads = [_touch(v.attr, v.args[0], list(nest.loops)) for v in loads]
    own = Touch(store.buffer, each, 0, each)
    return [*reads, own], [own]


def _touch(buffer: Buffer, position: Value, loops: list[int | Dim], extra: int | Dim = 1) -> Touch:
    span = _span(position, loops, extra)
    return Touch(buffer) if span is None else Touch(buffer, *span)


def _of_product(nest: Nest) -> tuple[list[Touch], list[Touch]]:
    """The same of matrix products: by matrices, or by rows where there is one matrix."""
    info, loops = nest.info, list(nest.loops)
    m, n, k = (info[s].attr for s in "mnk")
    left, right, out = info["buffers"]
    (a, a_turned, a_lead), (b, b_turned, b_lead) = info["a"], info["b"]
    if not loops:
        start = linear(a)
        rows = Touch(left)
        if start is not None and not a_turned:
            rows = Touch(left, a_lead.attr, start.start, start.start + k)
        return [rows, Touch(right)], [Touch(out, n, 0, n)]
    a_size = _extent(k, m, a_lead.attr) if a_turned else _extent(m, k, a_lead.attr)
    b_size = _extent(n, k, b_lead.attr) if b_turned else _extent(k, n, b_lead.attr)
    reads = [_touch(left, a, loops, a_size), _touch(right, b, loops, b_size)]
    return reads, [_touch(out, info["y"], loops, m * n)]


def _extent(rows: int | Dim, columns: int | Dim, lead: int | Dim) -> int | Dim:
    return 0 if rows == 0 or columns == 0 else (rows - 1) * lead + columns
