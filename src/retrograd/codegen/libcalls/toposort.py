"""Routines that work on the structure of graphs."""

from __future__ import annotations

from retrograd.codegen.libcalls.builder import LibCallBuilder, Size, routine
from retrograd.passes.lowering.linalg import ORDER

WRONG = "1"  # an edge to nowhere, or a cycle: `ops.dag` finds out which


@routine(ORDER)
def order(w: LibCallBuilder) -> None:
    """What `ops/toposort.py` describes, by counting, and then taking nodes whose predecessors are
    all taken, level after level; sizes: nodes n, edges e. Linear in both."""
    (edges, y), (n, e) = w.data, w.sizes
    source, target = edges, w.at(edges, e)
    placed = w.at(y, 1)
    level = w.at(placed, n)
    into = w.at(level, w.add(n, 1))
    out_of = w.at(into, w.add(n, 1))
    in_edge = w.at(out_of, w.add(n, 1))
    out_edge = w.at(in_edge, e)
    ends = ((source, out_of, out_edge), (target, into, in_edge))
    _count(w, n, e, ends)
    _sort(w, n, e, ends)
    ready = _begin(w, n, into, placed)
    levels = _levels(w, ready, placed, level, out_of, out_edge, target, n)
    w.put(levels, y, 0)
    _sort_levels(w, n, levels, placed, level)
    with w.loop(w.add(n, 1), w.add(levels, 1)) as k:
        w.put(str(n), level, k)
    w.line("ret i64 0")


def _count(w: LibCallBuilder, n: Size, e: Size, ends: tuple[tuple[str, str, str], ...]) -> None:
    """How many edges each node has, into and out of it."""
    with w.loop(n) as v:
        for _, start, _ in ends:
            w.put("0", start, v)
    with w.loop(e) as k:
        found = [(w.get(end, k), start) for end, start, _ in ends]
        for v, _ in found:
            w.leave_if(w.new(f"icmp uge i64 {v}, {n}"), WRONG)
        for v, start in found:
            w.put(w.new(f"add i64 {w.get(start, v)}, 1"), start, v)


def _sort(w: LibCallBuilder, n: Size, e: Size, ends: tuple[tuple[str, str, str], ...]) -> None:
    """Counts become the places behind each node's edges, and while the edges are put there, from
    the last to the first, where they start."""
    loop = w.open_loop(str(n), 1, "0", [("i64", "0")] * len(ends))
    totals = []
    for (_, start, _), total in zip(ends, loop.values, strict=True):
        totals.append(w.new(f"add i64 {total}, {w.get(start, loop.counter)}"))
        w.put(totals[-1], start, loop.counter)
    w.close_loop(loop, totals)
    for _, start, _ in ends:
        w.put(str(e), start, n)
    last = w.sub(e, 1)
    with w.loop(e) as k:
        at = w.sub(last, k)
        for end, start, listed in ends:
            v = w.get(end, at)
            place = w.new(f"sub i64 {w.get(start, v)}, 1")
            w.put(place, start, v)
            w.put(str(at), listed, place)


def _begin(w: LibCallBuilder, n: Size, into: str, placed: str) -> str:
    """Place the nodes without predecessors; for the others, how many edges they wait for. Returns
    how many were placed."""
    loop = w.open_loop(str(n), 1, "0", [("i64", "0")])
    v, (count,) = loop.counter, loop.values
    waiting = w.new(f"sub i64 {w.get(into, w.add(v, 1))}, {w.get(into, v)}")
    w.put(waiting, w.work, v)
    w.put(v, placed, count)  # what is written behind the last one is overwritten later
    free = w.new(f"icmp eq i64 {waiting}, 0")
    w.close_loop(loop, [w.new(f"add i64 {count}, {w.new(f'zext i1 {free} to i64')}")])
    return loop.values[0]


def _levels(
    w: LibCallBuilder, ready: str, placed: str, level: str, out_of: str, out_edge: str, target: str,
    n: Size,
) -> str:  # fmt: skip
    """Place all others, a level at a time, and note the level of each; returns the number of
    levels. Whoever is not placed is on a cycle, or behind one."""
    cells = [w.reserve("i64", 8) for _ in range(3)]
    head, tail, number = cells
    for cell, value in zip(cells, ("0", ready, "0"), strict=True):
        w.line(f"store i64 {value}, ptr {cell}")
    w.put("0", level, 0)
    again, inside, done = w.label(), w.label(), w.label()
    w.jump(again)
    w.start_block(again)
    first, end = (w.new(f"load i64, ptr {cell}") for cell in (head, tail))
    w.branch(w.new(f"icmp ult i64 {first}, {end}"), inside, done)
    w.start_block(inside)
    following = w.add(w.new(f"load i64, ptr {number}"), 1)
    with w.loop(end, first) as i:
        v = w.get(placed, i)
        with w.loop(w.get(out_of, w.add(v, 1)), w.get(out_of, v)) as k:
            after = w.get(target, w.get(out_edge, k))
            left = w.new(f"sub i64 {w.get(w.work, after)}, 1")
            w.put(left, w.work, after)
            with w.when(w.new(f"icmp eq i64 {left}, 0")):
                place = w.new(f"load i64, ptr {tail}")
                w.put(after, placed, place)
                w.put(str(following), w.work, after)
                w.line(f"store i64 {w.add(place, 1)}, ptr {tail}")
    w.line(f"store i64 {end}, ptr {head}")
    w.line(f"store i64 {following}, ptr {number}")
    w.put(end, level, following)
    w.jump(again)
    w.start_block(done)
    w.leave_if(w.new(f"icmp ne i64 {end}, {n}"), WRONG)
    return w.new(f"load i64, ptr {number}")


def _sort_levels(w: LibCallBuilder, n: Size, levels: str, placed: str, level: str) -> None:
    """The nodes of each level by number: those that are close to one another in memory come one
    after the other."""
    with w.loop(n) as v:  # where a level starts moves on to where the next one does
        k = w.get(w.work, v)
        place = w.get(level, k)
        w.put(v, placed, place)
        w.put(str(w.add(place, 1)), level, k)
    with w.loop(levels) as k:
        back = w.sub(w.sub(levels, 1), k)
        w.put(w.get(level, back), level, w.add(back, 1))
    w.put("0", level, 0)
