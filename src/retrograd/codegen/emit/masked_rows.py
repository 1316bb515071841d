"""The part of a row that masks leave visible, as the range of a nest's last loop: see
`schedule/tiling/masked_domain.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.ir import Dim
from retrograd.schedule.tiling.masked_domain import Bound, MaskedDomain, masked_domain

Range = tuple[str, str]


def domain_of(w: KernelEmitter) -> MaskedDomain | None:
    """What masks hide of the nest at hand, if its rows are gone through as a whole."""
    last = len(w.nest.loops) - 1
    return None if w.light or (w.group_rows != 0 and last in w.ranges) else masked_domain(w.nest)


@contextmanager
def visible_part(w: KernelEmitter, domain: MaskedDomain, unit: int) -> Iterator[Range]:
    """The range of the last loop, for the rows at hand, and the loop set to it: from a multiple of
    `unit` on, or from the start if that is 0, up to the end of a vector."""
    last = len(w.nest.loops) - 1
    size, lanes = w.nest.loops[last], w.lanes
    length = w.size(size)
    start, end = "0", length
    for bound in domain.bounds:
        at = _outermost(w, bound)
        if not bound.lower:
            end = _extreme(w, "smin", end, at)
        elif unit:
            start = _extreme(w, "smax", start, at)
    if unit:
        start = w.new(f"and i64 {_extreme(w, 'smin', start, length)}, {-unit}")
    end = w.new(f"and i64 {w.new(f'add i64 {end}, {lanes - 1}')}, {-lanes}")
    if isinstance(size, Dim) or size % lanes:
        end = _extreme(w, "smin", end, length)
    end = _extreme(w, "smax", end, start)
    w.ranges[last] = start, end
    w.in_blocks.add(last)
    yield start, end
    w.in_blocks.discard(last)
    del w.ranges[last]


def _extreme(w: KernelEmitter, which: str, a: str, b: str) -> str:
    w.declare(f"i64 @llvm.{which}.i64(i64, i64)")
    return w.new(f"call i64 @llvm.{which}.i64(i64 {a}, i64 {b})")


def _outermost(w: KernelEmitter, bound: Bound) -> str:
    """A bound for all rows at hand: that of the first or of the last one, whichever is further."""
    grows = dict(bound.steps).get(w.nest.tile, 0) >= 0
    return w.bound(bound, w.copies - 1 if grows != bound.lower else 0)
