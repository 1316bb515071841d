"""Which iterations of the last loop of a nest a mask hides, so that they need not be run.

Of `where(j <= i, f(x), c)` all elements with `j > i` are c, whatever x is. Where conditions compare
linear functions of the counters, as causal masks and windows do, the others are a range of the last
loop, whose ends are linear in the counters of the loops around it (`Bound`). A map writes c outside
of the range and computes nothing there. A row reduction leaves out what changes no result. And a
matrix product whose result only such nests read, and they only within their ranges, computes
nothing else of it, and one of a matrix that such a map wrote, with zeros elsewhere, multiplies by
nothing else of that (`mark_products`). No bit depends on any of this: what is left out is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrograd.ir import Dim, bool_, int64
from retrograd.ops import elementwise as el
from retrograd.schedule.affine_index import AffineIndex, combined, linear
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import GemmNest, LoopNest, MapNest, RowReduction, Visible, live
from retrograd.schedule.ssa import CONJUNCTION, SSAOp, SSAValue
from retrograd.tuning import TUNING

# A comparison of a difference with 0, as (factor, limit): `factor * difference <= limit`.
COMPARISONS = {el.le.name: (1, 0), el.lt.name: (1, -1), el.ge.name: (-1, 0), el.gt.name: (-1, -1)}
FAR = 1 << 40  # no program has so many elements that bounds like this are exceeded
NEGATED = {el.le.name: el.gt, el.gt.name: el.le, el.lt.name: el.ge, el.ge.name: el.lt}


@dataclass(frozen=True, slots=True)
class Bound:
    """The last loop's counter is at least `start + sum(counter * step)`, if that is `lower`; else
    it is less. `steps` are pairs of a loop and its step."""

    lower: bool
    start: int | Dim
    steps: tuple[tuple[int, int | Dim], ...]


@dataclass(frozen=True, slots=True)
class MaskedDomain:
    """Outside of the `bounds` of its last loop, each store of a nest takes a number of `fill`."""

    bounds: tuple[Bound, ...]
    fill: tuple[Any, ...]


def masked_domain(nest: LoopNest) -> MaskedDomain | None:
    """What a nest's masks hide, if that is worth a look and may be left out."""
    last = len(nest.loops) - 1
    reduces = isinstance(nest, RowReduction) and nest.kept == last
    if last < 1 or nest.vec != last or not (reduces or isinstance(nest, MapNest)):
        return None
    size = nest.loops[last]
    if not isinstance(size, Dim) and size < TUNING.masked_row_elements:
        return None
    conditions = {v.args[0]: None for v in live(nest) if v.op == el.select.name}
    bounds: list[Bound] = []
    fill: tuple[Any, ...] | None = None
    for condition in conditions:
        found = _bounds(condition, last)
        known: dict[SSAValue, Any] = {condition: False}
        numbers = tuple(_folded(s.value, known) for s in nest.stores) if found else (None,)
        if None in numbers or (fill is not None and not _same(fill, numbers)):
            continue
        bounds, fill = [*bounds, *found], numbers
    if fill is None or (reduces and not _changes_nothing(nest, fill[0])):
        return None
    return MaskedDomain(tuple(dict.fromkeys(bounds)), fill)


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def _changes_nothing(nest: LoopNest, term: Any) -> bool:
    """Whether a term has no influence on what floats are reduced to; 0 has, on a sum of -0.0, which
    the emitter sees to."""
    if not nest.stores[0].value.dtype.is_float:
        return False
    if nest.is_sum:
        return bool(term == 0)
    reductions = {"reduce_max": -math.inf, "reduce_min": math.inf}
    return nest.op in reductions and bool(term == reductions[nest.op])


def _folded(v: SSAValue, known: dict[SSAValue, Any]) -> Any:
    """The number that a value is, given what is known of conditions; None if that is not one."""
    if v not in known:
        known[v] = _number(v, known)
    return known[v]


def _number(v: SSAValue, known: dict[SSAValue, Any]) -> Any:
    if v.op is SSAOp.CONST:
        return v.attr
    if v.op == el.select.name:
        condition = _folded(v.args[0], known)
        return None if condition is None else _folded(v.args[1 if condition else 2], known)
    if v.op in (el.zmul.name, el.zdiv.name):
        first = _folded(v.args[0], known)
        return first if first is not None and first == 0 else None
    if v.op == el.exp.name:
        x = _folded(v.args[0], known)
        return v.dtype.dtype.type(0) if x is not None and x == -math.inf else None
    return None


def _bounds(condition: SSAValue, last: int) -> list[Bound]:
    """Within which bounds of the last loop a condition can hold."""
    if condition.op == CONJUNCTION and condition.dtype is bool_:
        return [b for part in condition.args for b in _bounds(part, last)]
    bound = bound_of(condition, last)
    return [] if bound is None else [bound]


def bound_of(condition: SSAValue, loop: int) -> Bound | None:
    """The bound of a loop's counter that a condition is equal to, if it is one."""
    name = condition.op
    if name == el.bitwise_not.name and condition.args[0].op in NEGATED:
        (condition,) = condition.args
        name = NEGATED[condition.op].name
    if name not in COMPARISONS:
        return None
    a, b = (_linear(x) for x in condition.args)
    if a is None or b is None:
        return None
    factor, limit = COMPARISONS[name]
    difference = combined(a, b, -1)
    steps = {k: factor * s for k, s in difference.steps.items() if s != 0}
    start = factor * difference.start - limit  # start + steps <= 0
    own = steps.pop(loop, 0)
    small = all(isinstance(x, Dim) or abs(x) < FAR for x in (start, *steps.values()))
    if own not in (1, -1) or not small:
        return None
    if own == -1:
        return Bound(True, start, tuple(steps.items()))
    return Bound(False, 1 - start, tuple((k, -s) for k, s in steps.items()))


def _linear(v: SSAValue) -> AffineIndex | None:
    """A number as a linear function of counters: of 64 bits, which such numbers do not exceed."""
    if v.dtype is not int64:
        return None
    if v.op is SSAOp.CONST:
        return AffineIndex(int(v.attr), {})
    if v.op is SSAOp.CAST:
        return _linear(v.args[0])
    signs = {el.add.name: 1, el.sub.name: -1}
    if v.op in signs:
        a, b = (_linear(x) for x in v.args)
        return None if a is None or b is None else combined(a, b, signs[v.op])
    return linear(v)


def mark_products(kernels: Iterable[Kernel]) -> None:
    """Tell matrix products which part of their results is ever used, and which part of their
    matrices has nothing but zeros."""
    readers: dict[Buffer, list[Kernel]] = {}
    kernels = list(kernels)
    zeros = _zeros(kernels)
    for kernel in kernels:
        for buffer in kernel.reads:
            readers.setdefault(buffer, []).append(kernel)
    for kernel in kernels:
        for nest in kernel.nests:
            if isinstance(nest, GemmNest):
                nest.hidden = _operand_part(nest, 0, zeros), _operand_part(nest, 1, zeros)
            if isinstance(nest, GemmNest) and nest.output.kind == "temporary":
                found = [_read_part(k, nest) for k in readers.get(nest.output, ())]
                same = bool(found) and all(part == found[0] for part in found)
                nest.visible = found[0] if same else None


def _read_part(kernel: Kernel, product: GemmNest) -> Visible | None:
    """Of each row of a product, what a kernel reads, if it is known to be a part."""
    buffer = product.output
    m, n, _ = product.mnk
    found: set[Visible] = set()
    for nest in kernel.nests:
        loads = [v for v in live(nest) if v.op is SSAOp.LOAD and v.attr is buffer]
        if buffer in nest.operands:
            return None
        domain = masked_domain(nest) if loads else None
        if loads and domain is None:
            return None
        for load in loads:
            assert domain is not None
            last = len(nest.loops) - 1
            at = linear(load.args[0])
            rows_and_columns = nest.loops[-2:] == [m, n]
            if at is None or not rows_and_columns or not _row_major(at, nest.loops):
                return None
            found.add(_visible(domain.bounds, last))
    return found.pop() if len(found) == 1 else None


def _zeros(kernels: Iterable[Kernel]) -> dict[Buffer, tuple[list[int | Dim], Visible]]:
    """Of buffers that maps write, with zeros outside of the bounds of their rows: the loops of the
    map, and the bounds. A buffer that is written twice has none."""
    found: dict[Buffer, tuple[list[int | Dim], Visible]] = {}
    written: set[Buffer] = set()
    for kernel in kernels:
        twice = written.intersection(kernel.outs)
        written.update(kernel.outs)
        for nest in kernel.nests:
            domain = masked_domain(nest) if isinstance(nest, MapNest) else None
            if domain is None:
                continue
            for store, fill in zip(nest.stores, domain.fill, strict=True):
                at = linear(store.offset)
                if fill == 0 and at is not None and _row_major(at, nest.loops):
                    visible = _visible(domain.bounds, len(nest.loops) - 1)
                    found[store.buffer] = list(nest.loops), visible
        for buffer in twice:
            found.pop(buffer, None)
    return found


def _operand_part(
    product: GemmNest, which: int, zeros: Mapping[Buffer, tuple[list[int | Dim], Visible]]
) -> Visible | None:
    """What is visible of the left or the right matrix of a product, or of that turned, if it is one
    that a map wrote."""
    if product.buffers[which] not in zeros or product.packed or product.windows is not None:
        return None
    loops, visible = zeros[product.buffers[which]]
    m, n, k = product.mnk
    offset, turned, leading = product.b if which else product.a
    rows, columns = (k, n) if which else (m, k)
    if turned:
        rows, columns = columns, rows
    plain = product.spread is None and leading.attr == columns and visible != (None, None)
    at = linear(offset)
    if not plain or at is None or loops[-2:] != [rows, columns]:
        return None
    outer, step = [n for n in loops[:-2] if n != 1], rows * columns
    steps = [(n, at.steps.get(i, 0)) for i, n in enumerate(product.loops) if n != 1]
    if at.start != 0 or [n for n, _ in steps] != outer:
        return None
    for n, own in reversed(steps):
        if own != step:
            return None
        step = step * n
    return visible


def _row_major(at: AffineIndex, loops: Sequence[int | Dim]) -> bool:
    """Whether a position is that of the element that the loops count."""
    step: int | Dim = 1
    for k in reversed(range(len(loops))):
        if at.steps.get(k, 0) != step:
            return False
        step = step * loops[k]
    return at.start == 0


def _visible(bounds: Sequence[Bound], last: int) -> Visible:
    """A lower and an upper bound of the columns, by the row; of several any one will do."""
    ends: list[tuple[int | Dim, int] | None] = [None, None]
    for bound in bounds:
        steps = dict(bound.steps)
        step = steps.pop(last - 1, 0)
        if not steps and isinstance(step, int) and step >= 0:
            which = 0 if bound.lower else 1
            if ends[which] is None or step > 0:
                ends[which] = bound.start, step
    return ends[0], ends[1]
