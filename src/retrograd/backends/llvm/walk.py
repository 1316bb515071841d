"""A walk through the nodes of a directed acyclic graph, as a function: see `control/dag_scan.py`.

Nodes come one after the other, in the order that `ops/dag.py` describes, and the messages to a node
in the order of the edges; kernels for one row each are called in between. So the order of all sums
is that of the graph, and no memory is needed beside the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrograd.backends.kernel.region import Region, Row
from retrograd.control import DagScan

if TYPE_CHECKING:
    from retrograd.backends.llvm.regions import RegionWriter

FILL = "void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


def walk(w: RegionWriter, region: Region, prim: DagScan) -> None:
    """Write the function."""
    t = region.walk
    assert t is not None
    n, e = w.size(prim.nodes), w.size(t.edges.type.shape[1])
    edges, order, result = (w.load(b) for b in (t.edges, t.order, t.result))
    near = _word(w, edges, e) if prim.reverse else edges
    placed = _word(w, order, "1")
    starts, listed = _lists(w, order, n, e, prim.reverse)
    state, total = w.size(t.state.bytes), w.size(t.after.bytes)
    row = w.new(f"add i64 {state}, {total}")
    zero, spare = w.load(t.zero), w.load(t.spare)
    w.declare(FILL)
    w.line(f"call void @llvm.memset.p0.i64(ptr {zero}, i8 0, i64 {total}, i1 false)")
    by_edge, by_node = ([_Rows(w, r) for r in rows] for rows in (t.by_edge, t.by_node))
    last = w.new(f"sub i64 {n}, 1")
    nodes = w.open_loop(n)
    w.look()
    at = w.new(f"sub i64 {last}, {nodes.counter}") if prim.reverse else nodes.counter
    v = _read(w, placed, at)
    own = _byte(w, result, w.mul(v, row))
    summed = _byte(w, own, state)
    w.point(t.made, own)
    w.point(t.after, summed)
    for rows in by_node:
        rows.to(v)
    first, end = _read(w, starts, v), _read(w, starts, w.new(f"add i64 {v}, 1"))
    none, some, done = w.label(), w.label(), w.label()
    w.branch(w.new(f"icmp eq i64 {first}, {end}"), none, some)
    w.start_block(none)
    w.copy_bytes(summed, zero, total)
    w.jump(done)
    w.start_block(some)
    final = w.new(f"sub i64 {end}, 1")
    messages = w.open_loop(end, 1, first, [("ptr", zero)])
    edge = _read(w, listed, messages.counter)
    w.point(t.before, messages.values[0])
    # Sums go back and forth between two places, and end where they belong.
    left = w.new(f"sub i64 {final}, {messages.counter}")
    odd = w.new(f"trunc i64 {left} to i1")
    after = w.new(f"select i1 {odd}, ptr {spare}, ptr {summed}")
    w.point(t.after, after)
    w.point(t.state, _byte(w, result, w.mul(_read(w, near, edge), row)))
    for rows in by_edge:
        rows.to(edge)
    w.run(region.blocks[0])
    w.close_loop(messages, [after])
    w.jump(done)
    w.start_block(done)
    w.run(region.blocks[1])
    w.close_loop(nodes)


class _Rows:
    """An array whose rows a cursor points to."""

    def __init__(self, w: RegionWriter, row: Row) -> None:
        self.w, self.cursor = w, row.row
        self.first, self.stride = w.load(row.whole), w.size(row.row.bytes)

    def to(self, number: str) -> None:
        self.w.point(self.cursor, _byte(self.w, self.first, self.w.mul(number, self.stride)))


def _lists(w: RegionWriter, order: str, n: str, e: str, reverse: bool) -> tuple[str, str]:
    """Where the edges of nodes start in a list of edges, and the list: those into nodes, or out of
    them."""
    one = w.new(f"add i64 {n}, 1")
    starts = w.mul(one, "3" if reverse else "2")
    listed = w.mul(one, "4")
    if reverse:
        listed = w.new(f"add i64 {listed}, {e}")
    return _word(w, order, starts), _word(w, order, listed)


def _word(w: RegionWriter, pointer: str, offset: str) -> str:
    return w.new(f"getelementptr i64, ptr {pointer}, i64 {offset}")


def _byte(w: RegionWriter, pointer: str, offset: str) -> str:
    return w.new(f"getelementptr i8, ptr {pointer}, i64 {offset}")


def _read(w: RegionWriter, pointer: str, index: str) -> str:
    return w.new(f"load i64, ptr {_word(w, pointer, index)}, align 8")
