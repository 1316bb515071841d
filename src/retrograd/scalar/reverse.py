"""The way back over tapes: each once, from the one closed last to the one closed first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from retrograd.scalar.debug import look_back, watching
from retrograd.scalar.machine import FOREIGN, LEAF
from retrograd.scalar.tape import LOCK


def run_backward(tape: Any, row: int) -> None:
    """Gradients of everything a row was computed from."""
    if tape.trace is not None:
        tape.trace.run_backward(row)
        return
    _each_tape(tape, row, 1.0, _send_custom, lambda p: p.collect())


def clear_gradients(tape: Any, row: int) -> None:
    """Gradients of zero for everything a row was computed from."""
    if tape.trace is not None:
        tape.trace.clear()

    def clear(p: Any) -> list[tuple[Any, int, float]]:
        out = []
        for i, _ in p.reached():
            if p.row(i)[0] == LEAF:
                p.leaf(i).grad = 0.0
            elif p.row(i)[0] == FOREIGN:
                out.append((*p.foreign[i], 0.0))
        p.clear()
        return out

    # A cotangent of zero goes everywhere and stays zero.
    _each_tape(tape, row, 0.0, _mark_custom, clear)


def _each_tape(
    tape: Any,
    row: int,
    g: float,
    custom: Callable[[Any, int], None],
    end: Callable[[Any], list[tuple[Any, int, float]]],
) -> None:
    with LOCK:
        tape.value(row)
        tape.close()
        seeds: dict[Any, list[tuple[int, float]]] = {tape: [(row, g)]}
        numbers = itertools.count()
        todo = [(-tape.stamp, next(numbers), tape)]
        while todo:
            tape = heapq.heappop(todo)[2]
            _through(tape, seeds.pop(tape), custom)
            for source, i, found in end(tape):
                if source not in seeds:
                    seeds[source] = []
                    heapq.heappush(todo, (-source.stamp, next(numbers), source))
                seeds[source].append((i, found))


def _through(tape: Any, seeds: list[tuple[int, float]], custom: Callable[[Any, int], None]) -> None:
    tape.begin()
    for i, g in seeds:
        tape.seed(i, g)
    start = max([i for i, _ in seeds])
    for i in sorted(tape.customs, reverse=True):
        if i <= start and tape.back(start, i + 1):
            if tape.visited(i):
                custom(tape, i)
            start = i - 1
    tape.back(start, 0)
    if watching():
        look_back(tape, start)


def _mark_custom(tape: Any, i: int) -> None:
    made = tape.customs[i]
    if made.clear is not None:
        made.clear()
    for r in made.rows:
        tape.seed(r, 0.0)


def _send_custom(tape: Any, i: int) -> None:
    """The gradient of a user's own operation: by its slopes, or by what its `_backward` adds."""
    made = tape.customs[i]
    g = tape.grad(i)
    if made.send is not None:
        made.send(g)
        return
    if made.backward is None:
        for r, slope in zip(made.rows, made.slopes or (), strict=False):
            tape.seed(r, slope * g if g else 0.0)
        return
    # What it adds to a leaf stays there. What it adds to a computed value is taken as a part of
    # that value's gradient, which is not complete yet.
    held: dict[tuple[int, int], tuple[Any, int, int, float]] = {}
    for r in made.rows:
        source, row = tape.foreign.get(r, (tape, r))
        if tape.row(r)[0] != LEAF and (id(source), row) not in held:
            held[id(source), row] = source, row, r, source.grad(row)
            source.set_grad(row, 0.0)
    made.backward()
    for source, row, r, before in held.values():
        part = source.grad(row)
        source.set_grad(row, before)
        tape.seed(r, part)
