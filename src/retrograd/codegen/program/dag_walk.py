"""A walk through the nodes of a directed acyclic graph, as a function: see
`ops/control/dag_scan.py`.

Nodes come one after the other, in the order that `ops/toposort.py` describes, and the messages to a
node in the order of the edges; kernels for one row each are called in between. So the order of all
sums is that of the graph, and no memory is needed beside the result.

Edges and order are data, which a saved graph may have from anywhere: whatever they are, no place
beyond the arrays is read or written.

Where threads walk together, they share the nodes of a level if there is enough to do in it, which
is known when its width is; the levels in between are walked by the first one. Who computes a node
makes no difference to what it computes, so the bits are those of a walk on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit.compensated_sum import more, settled
from retrograd.codegen.op_builder import OpBuilder
from retrograd.codegen.program.region_emitter import RegionEmitter
from retrograd.codegen.types import convert, literal, load, memory_type, store
from retrograd.ir import DType, float64
from retrograd.ops.control import DagScan
from retrograd.ops.numerics.compensated_sum import BLOCK
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import ControlRegion, SlicedBuffer, Walk
from retrograd.schedule.cost_model import walk_costs
from retrograd.tuning import TUNING

FILL = "void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


def walk(w: RegionEmitter, region: ControlRegion, prim: DagScan) -> None:
    """Write the walk of one thread."""
    nodes(w, region, prim, "0", w.size(prim.nodes))


def walk_together(
    w: RegionEmitter,
    region: ControlRegion,
    prim: DagScan,
    part: str,
    own: Sequence[Buffer],
    drive: Callable[[str], None],
) -> None:
    """Write the walk of a thread that shares wide levels with others. `part` is a function that
    walks through some nodes, from a place in the order of the walk to another; `drive` writes how
    a table is run, `own` are buffers of which each thread has one."""
    t = region.walk
    assert t is not None
    n, e = w.size(prim.nodes), w.size(t.edges.type.shape[1])
    _alone(w, part, n)
    order = w.load(t.order)
    starts = _word(w, order, w.new(f"add i64 {n}, 1"))
    count = _within(w, order, "0", n)
    last = w.new(f"sub i64 {count}, 1")
    wide = _least_width(w, region, n, e)
    table = _level(w, part, own)
    levels = w.open_loop(count, 1, "0", [("i64", "0")])
    done = levels.values[0]  # nodes that are walked through, or left for now
    k = w.new(f"sub i64 {last}, {levels.counter}") if prim.reverse else levels.counter
    first, end = (_within(w, starts, i, n) for i in (k, w.new(f"add i64 {k}, 1")))
    if prim.reverse:
        first, end = w.new(f"sub i64 {n}, {end}"), w.new(f"sub i64 {n}, {first}")
    width = w.new(f"sub i64 {end}, {first}")
    share, after = w.label(), w.label()
    before = w.block
    w.branch(w.new(f"icmp sge i64 {width}, {wide}"), share, after)
    w.start_block(share)
    _walk_alone(w, part, done, first)
    for place, value in (("{first}", first), ("{nodes}", width)):
        slot = w.new(f"getelementptr i64, ptr %block, i64 {place}")
        w.line(f"store i64 {value}, ptr {slot}, align 8")
    drive(table)
    shared = w.block
    w.jump(after)
    w.start_block(after)
    left = w.new(f"phi i64 [ {done}, %{before} ], [ {end}, %{shared} ]")
    w.close_loop(levels, [left])
    _walk_alone(w, part, levels.values[0], n)


def _alone(w: RegionEmitter, part: str, n: str) -> None:
    """One thread does not look at levels."""
    alone, many = w.label(), w.label()
    w.branch(w.new("icmp eq i64 %threads, 1"), alone, many)
    w.start_block(alone)
    w.line(f"ret i64 {w.new(f'call i64 @{part}(ptr %block, i64 0, i64 {n})')}")
    w.start_block(many)


def _walk_alone(w: RegionEmitter, part: str, first: str, end: str) -> None:
    """Walk through nodes; leave with what is wrong."""
    code = w.new(f"call i64 @{part}(ptr %block, i64 {first}, i64 {end})")
    w.leave_if(w.new(f"icmp ne i64 {code}, 0"), code)


def _level(w: RegionEmitter, part: str, own: Sequence[Buffer]) -> str:
    """The table by which threads share nodes: places in the order, counted from the first one."""
    inner = FunctionBuilder(w.declare)
    slot = inner.new("load i64, ptr %slots, align 8")
    first_at = inner.new(f"getelementptr i64, ptr %block, i64 {slot}")
    first = inner.new(f"load i64, ptr {first_at}, align 8")
    begin, until = (inner.new(f"add i64 {first}, {x}") for x in ("%lo", "%hi"))
    code = inner.new(f"call i64 @{part}(ptr %block, i64 {begin}, i64 {until})")
    inner.line(f"ret i64 {code}")
    return w.module.level(inner, own)


def _least_width(w: RegionEmitter, region: ControlRegion, n: str, e: str) -> str:
    """The nodes of a level from which on threads share it, if they have as many edges as others."""
    each, edge = (max(int(cost), 1) for cost in walk_costs(region))
    work = w.new(f"add i64 {w.mul(n, str(each))}, {w.mul(e, str(edge))}")
    some = w.new(f"add i64 {work}, 1")
    return w.new(f"add i64 {w.new(f'udiv i64 {w.mul(n, str(TUNING.shared_level_ns))}, {some}')}, 2")


def nodes(w: RegionEmitter, region: ControlRegion, prim: DagScan, begin: str, until: str) -> None:
    """Write the walk through the nodes from a place in its order to another."""
    t = region.walk
    assert t is not None
    n, e = w.size(prim.nodes), w.size(t.edges.type.shape[1])
    edges, order, result = (w.load(b) for b in (t.edges, t.order, t.result))
    near = _word(w, edges, e) if prim.reverse else edges
    placed = _word(w, order, "1")
    starts, listed = _lists(w, order, n, e, prim.reverse)
    state, total = w.size(t.state.bytes), w.size(t.after.bytes)
    row = w.new(f"add i64 {state}, {total}")
    zero, nothing, spare = w.load(t.zero), w.load(t.nothing), w.load(t.spare)
    blocks = _Blocks(w, t)
    blocks.fill(nothing)
    w.declare(FILL)
    w.line(f"call void @llvm.memset.p0.i64(ptr {zero}, i8 0, i64 {total}, i1 false)")
    by_edge, by_node = ([_Rows(w, r) for r in rows] for rows in (t.by_edge, t.by_node))
    last = w.new(f"sub i64 {n}, 1")
    nodes = w.open_loop(until, 1, begin)
    w.look()
    at = w.new(f"sub i64 {last}, {nodes.counter}") if prim.reverse else nodes.counter
    v = _within(w, placed, at, last)
    own = _byte(w, result, w.mul(v, row))
    summed = _byte(w, own, state)
    w.point(t.made, own)
    w.point(t.after, summed)
    for rows in by_node:
        rows.to(v)
    first, end = (_within(w, starts, i, e) for i in (v, w.new(f"add i64 {v}, 1")))
    none, some, done = w.label(), w.label(), w.label()
    w.branch(w.new(f"icmp sge i64 {first}, {end}"), none, some)
    w.start_block(none)
    w.copy_bytes(summed, zero, total)
    w.jump(done)
    w.start_block(some)
    final, count = w.new(f"sub i64 {end}, 1"), w.new(f"sub i64 {end}, {first}")
    messages = w.open_loop(end, 1, first, [("ptr", zero)])
    edge = _within(w, listed, messages.counter, w.new(f"sub i64 {e}, 1"))
    w.point(t.before, messages.values[0])
    # Sums go back and forth between two places, and end where they belong.
    left = w.new(f"sub i64 {final}, {messages.counter}")
    odd = w.new(f"trunc i64 {left} to i1")
    after = w.new(f"select i1 {odd}, ptr {spare}, ptr {summed}")
    w.point(t.after, after)
    w.point(t.state, _byte(w, result, w.mul(_within(w, near, edge, last), row)))
    for rows in by_edge:
        rows.to(edge)
    w.run(region.blocks[0])
    taken = w.new(f"sub i64 {w.new(f'add i64 {messages.counter}, 1')}, {first}")
    even = w.new(f"icmp eq i64 {w.new(f'and i64 {taken}, {BLOCK - 1}')}, 0")
    full = w.new(f"and i1 {even}, {w.new(f'icmp slt i64 {taken}, {count}')}")
    keep, on = w.label(), w.label()
    w.branch(full, keep, on)
    w.start_block(keep)
    blocks.take(after, w.new(f"icmp eq i64 {taken}, {BLOCK}"))
    w.jump(on)
    w.start_block(on)
    w.close_loop(messages, [w.new(f"select i1 {full}, ptr {nothing}, ptr {after}")])
    several = w.label()
    w.branch(w.new(f"icmp sgt i64 {count}, {BLOCK}"), several, done)
    w.start_block(several)
    blocks.settle(summed)
    w.jump(done)
    w.start_block(done)
    w.run(region.blocks[1])
    w.close_loop(nodes)


class _Blocks:
    """The totals of blocks of messages to a node, number by number; see `schedule/loop_nest.py`."""

    def __init__(self, w: RegionEmitter, t: Walk) -> None:
        self.w, self.dtype = w, t.after.type.dtype
        self.count = w.size(t.after.type.size)
        self.totals = [w.load(b) for b in t.blocks]

    def _each(self, write: Callable[[str], None]) -> None:
        loop = self.w.open_loop(self.count)
        write(loop.counter)
        self.w.close_loop(loop)

    def _at(self, first: str, number: str, dtype: DType) -> str:
        return self.w.new(f"getelementptr {memory_type(dtype)}, ptr {first}, i64 {number}")

    def fill(self, first: str) -> None:
        """What the sum of a block begins with."""

        def write(number: str) -> None:
            minus = literal(-0.0, self.dtype)
            store(self.w, minus, self._at(first, number, self.dtype), self.dtype)

        self._each(write)

    def take(self, block: str, is_first: str) -> None:
        """A sum of a block added to the total."""
        w = self.w

        def write(number: str) -> None:
            x = load(w, self._at(block, number, self.dtype), self.dtype)
            x = convert(w, x, self.dtype, float64)
            places = [self._at(t, number, float64) for t in self.totals]
            begin = [x, literal(-0.0, float64)]
            for place, first, after in zip(places, begin, self._more(places, x), strict=False):
                new = w.new(f"select i1 {is_first}, double {first}, double {after}")
                store(w, new, place, float64)

        self._each(write)

    def settle(self, block: str) -> None:
        """The total and the last block, where that is."""
        w = self.w

        def write(number: str) -> None:
            place = self._at(block, number, self.dtype)
            x = convert(w, load(w, place, self.dtype), self.dtype, float64)
            state = self._more([self._at(t, number, float64) for t in self.totals], x)
            total = settled(OpBuilder(w, float64), *state) if len(state) == 2 else state[0]
            store(w, convert(w, total, float64, self.dtype), place, self.dtype)

        self._each(write)

    def _more(self, places: Sequence[str], x: str) -> list[str]:
        """The total, and what was rounded off, with one more block."""
        at, before = OpBuilder(self.w, float64), [load(self.w, p, float64) for p in places]
        if len(before) == 1:
            return [at.instruction("fadd", before[0], x)]
        return [*more(at, before[0], before[1], x)]


class _Rows:
    """An array whose rows a cursor points to."""

    def __init__(self, w: RegionEmitter, row: SlicedBuffer) -> None:
        self.w, self.cursor = w, row.row
        self.first, self.stride = w.load(row.whole), w.size(row.row.bytes)

    def to(self, number: str) -> None:
        self.w.point(self.cursor, _byte(self.w, self.first, self.w.mul(number, self.stride)))


def _lists(w: RegionEmitter, order: str, n: str, e: str, reverse: bool) -> tuple[str, str]:
    """Where the edges of nodes start in a list of edges, and the list: those into nodes, or out of
    them."""
    one = w.new(f"add i64 {n}, 1")
    starts = w.mul(one, "3" if reverse else "2")
    listed = w.mul(one, "4")
    if reverse:
        listed = w.new(f"add i64 {listed}, {e}")
    return _word(w, order, starts), _word(w, order, listed)


def _word(w: RegionEmitter, pointer: str, offset: str) -> str:
    return w.new(f"getelementptr i64, ptr {pointer}, i64 {offset}")


def _byte(w: RegionEmitter, pointer: str, offset: str) -> str:
    return w.new(f"getelementptr i8, ptr {pointer}, i64 {offset}")


def _within(w: RegionEmitter, pointer: str, index: str, most: str) -> str:
    """A number that is from 0 to `most`; whatever is not counts as the latter."""
    word = w.new(f"load i64, ptr {_word(w, pointer, index)}, align 8")
    return w.new(f"select i1 {w.new(f'icmp ult i64 {word}, {most}')}, i64 {word}, i64 {most}")
