"""Regions: kernels that run other kernels, again and again or one lot of two.

An operation that holds graphs becomes one kernel, whose `RegionNest` says what its blocks
of kernels are, and which memory they work in. Graphs inside are planned like any other. Their
buffers are numbered with those of the plan around them, so one block of slots serves all.

What changes from one step of a loop to the next is where a *cursor* points: a buffer without memory
of its own, the slot of which the loop sets. A carry has two of them, into and out of a step, which
change places after it; what is gone through has one, moved on by a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrograd.ir import Dim, Graph, Node, TensorType, TupleType, float64
from retrograd.ops.control import Cond, DagScan, Scan, Sized, WhileLoop
from retrograd.ops.leaf import input_node
from retrograd.passes import optimize
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel, rename
from retrograd.schedule.loop_nest import LoopNest
from retrograd.schedule.ssa import ScalarBlock


@dataclass(slots=True)
class Carry:
    """What a step gives to the next: it starts as `first`, and ends in `last`; `spare` is the other
    memory that the cursors point to in turn, unless a step can write over what it reads."""

    first: Buffer
    last: Buffer
    spare: Buffer
    into: Buffer
    out: Buffer
    in_place: bool = False


@dataclass(slots=True)
class SlicedBuffer:
    """A buffer that is gone through row by row, and the cursor on the row at hand."""

    whole: Buffer
    row: Buffer


@dataclass(slots=True)
class Walk:
    """Through the nodes of a graph: structure, the result, and cursors. `state` is that which a
    message is made of, `made` the one that the cell makes. A message reads the sum so far at
    `before` and writes it at `after`, which in the end is where the result has it."""

    edges: Buffer
    order: Buffer
    result: Buffer
    state: Buffer
    made: Buffer
    before: Buffer
    after: Buffer
    zero: Buffer  # where sums start
    nothing: Buffer  # where the sums of later blocks start
    spare: Buffer  # where sums are in between
    blocks: list[Buffer]  # the totals of blocks of messages, see `loop_nest.py`
    by_edge: list[SlicedBuffer]
    by_node: list[SlicedBuffer]

    def rename(self, new: Callable[[Any], Any]) -> None:
        self.edges, self.order, self.result = map(new, (self.edges, self.order, self.result))
        for row in (*self.by_edge, *self.by_node):
            row.whole = new(row.whole)


@dataclass(slots=True)
class ControlRegion:
    """What a control operation runs. `blocks` are lists of kernels: of a scan and of a `sized` one,
    of a loop the condition and the body, of a choice both branches."""

    node: Node
    blocks: list[list[Kernel]] = field(default_factory=list)
    carries: list[Carry] = field(default_factory=list)
    rows: list[SlicedBuffer] = field(default_factory=list)
    condition: Buffer | None = None  # what says which branch, or whether there is another step
    count: Buffer | None = None  # the number of steps, or the size that becomes known
    dynamic: list[Buffer] = field(default_factory=list)  # whose size depends on that
    tile_groups: list[list[Any]] = field(
        default_factory=list
    )  # of each block, where threads share them
    walk: Walk | None = None

    @property
    def touched(self) -> list[Buffer]:
        """What the loop itself reads and writes, beside the kernels inside."""
        found = [b for b in (self.condition, self.count) if b is not None]
        found += [row.whole for row in self.rows]
        return found + [b for c in self.carries for b in (c.last, c.spare)]

    def take_turns(self, places: dict[Buffer, Any]) -> None:
        """Of a program that runs step by step: what came out of a step goes into the next."""
        for c in self.carries:
            if not c.in_place:
                places[c.into], places[c.out] = places[c.out], places[c.into]

    @property
    def timed(self) -> list[tuple[int, Kernel]]:
        """The kernels inside with the times at which they run."""
        found: list[tuple[int, Kernel]] = []
        start = 0
        for number, block in enumerate(self.blocks):
            if self.tile_groups:
                found += [(start + b.epoch, k) for b in self.tile_groups[number] for k in b.kernels]
                start = found[-1][0] + 1 if found else 0
            else:
                found += [(start + i, k) for i, k in enumerate(block)]
                start += len(block)
        return found

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        """Replace buffers by others."""

        def new(b: Any) -> Any:
            return renamed.get(b, b)

        for carry in self.carries:
            carry.first, carry.last = new(carry.first), new(carry.last)
        for row in self.rows:
            row.whole = new(row.whole)
        self.condition, self.count = new(self.condition), new(self.count)
        if self.walk is not None:
            self.walk.rename(new)


@dataclass(slots=True, eq=False, kw_only=True)
class RegionNest(LoopNest):
    """No loops of its own: runs the kernels of a region, which is given `buffers`."""

    kind = "region"

    buffers: list[Buffer]
    region: ControlRegion

    @property
    def outer(self) -> int | Dim:
        return 0

    @property
    def operands(self) -> list[Buffer]:
        return self.buffers

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        self.region.rename(renamed)
        for block in self.region.blocks:
            for kernel in block:
                rename(kernel, renamed)
        self.buffers = [renamed.get(b, b) for b in self.buffers]


def regions_of(kernel: Kernel) -> list[ControlRegion]:
    return [nest.region for nest in kernel.nests if isinstance(nest, RegionNest)]


def flat(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """Kernels, each followed by those that it runs."""
    todo = list(reversed(kernels))
    while todo:
        kernel = todo.pop()
        yield kernel
        for region in regions_of(kernel):
            for block in reversed(region.blocks):
                todo += reversed(block)


class Memory:
    """Where buffers are numbered, for a plan and all regions in it."""

    def __init__(self) -> None:
        self.constants: list[Buffer] = []
        self.temporaries: list[Buffer] = []
        self.cursors: list[Buffer] = []
        self._lists = {
            "constant": self.constants,
            "temporary": self.temporaries,
            "cursor": self.cursors,
        }

    def new(self, kind: str, type: TensorType, node: Node | None = None) -> Buffer:
        listed = self._lists[kind]
        buffer = Buffer(kind, len(listed), type, node or input_node(type))
        listed.append(buffer)
        return buffer


Make = Callable[[Graph, Sequence[Buffer], Sequence[Buffer]], list[Kernel]]


def region_kernel(
    node: Node, given: Sequence[Buffer], results: Sequence[Buffer], memory: Memory, make: Make
) -> Kernel:
    """The kernel of a control operation. `make` plans a graph between buffers."""
    region = ControlRegion(node)
    prim = node.prim
    if isinstance(prim, Scan):
        _scan(region, prim, given, results, memory, make)
    elif isinstance(prim, WhileLoop):
        _loop(region, prim, given, results, memory, make)
    elif isinstance(prim, Cond):
        region.condition = given[0]
        region.blocks = [make(graph, given[1:], results) for graph in (prim.then, prim.other)]
    elif isinstance(prim, DagScan):
        _walk(region, prim, given, results[0], memory, make)
    else:
        assert isinstance(prim, Sized)
        _sized(region, prim, given, results, memory, make)
    inside = [b for k in flat([k for block in region.blocks for k in block]) for b in k.outs]
    spare = [c.spare for c in region.carries]
    if region.walk is not None:
        spare += [region.walk.zero, region.walk.nothing, region.walk.spare, *region.walk.blocks]
    outs = [*results, *(b for b in (*inside, *spare) if b.kind == "temporary")]
    body = ScalarBlock()
    nest = RegionNest([], body, buffers=list(given), region=region)
    return Kernel([node], [nest], list(dict.fromkeys(outs)))


def _carries(
    region: ControlRegion,
    firsts: Sequence[Buffer],
    lasts: Sequence[Buffer],
    memory: Memory,
) -> None:
    for first, last in zip(firsts, lasts, strict=True):
        t = first.type
        spare = memory.new("temporary", t)
        into, out = memory.new("cursor", t), memory.new("cursor", t)
        region.carries.append(Carry(first, last, spare, into, out))


def _rows(region: ControlRegion, wholes: Sequence[Buffer], memory: Memory) -> list[Buffer]:
    rows = []
    for whole in wholes:
        row = memory.new("cursor", whole.type.with_shape(whole.type.shape[1:]))
        region.rows.append(SlicedBuffer(whole, row))
        rows.append(row)
    return rows


def _scan(
    region: ControlRegion, prim: Scan, given: Sequence[Buffer], results: Sequence[Buffer],
    memory: Memory, make: Make,
) -> None:  # fmt: skip
    constants, carries, xs = prim.parts(given)
    _carries(region, carries, results[: prim.carries], memory)
    into, out = [c.into for c in region.carries], [c.out for c in region.carries]
    x_rows = _rows(region, xs, memory)
    y_rows = _rows(region, results[prim.carries :], memory)
    region.blocks = [make(prim.body, [*constants, *into, *x_rows], [*out, *y_rows])]


def _loop(
    region: ControlRegion, prim: WhileLoop, given: Sequence[Buffer], results: Sequence[Buffer],
    memory: Memory, make: Make,
) -> None:  # fmt: skip
    constants = list(given[: prim.constants])
    _carries(region, given[prim.constants :], results[:-1], memory)
    into, out = [c.into for c in region.carries], [c.out for c in region.carries]
    region.condition = memory.new("temporary", prim.test.outputs[0].type)
    region.count = results[-1]
    region.blocks = [
        make(prim.test, [*constants, *into], [region.condition]),
        make(prim.body, [*constants, *into], out),
    ]


def _sized(
    region: ControlRegion, prim: Sized, given: Sequence[Buffer], results: Sequence[Buffer],
    memory: Memory, make: Make,
) -> None:  # fmt: skip
    region.count = given[0]
    before = len(memory.temporaries)
    region.blocks = [make(prim.body, given[1:], results)]
    made = memory.temporaries[before:]
    taken = {
        b
        for k in flat(region.blocks[0])
        for inner in regions_of(k)
        for b in inner.dynamic
    }  # fmt: skip
    region.dynamic = [b for b in made if prim.dim in b.type.dim_names and b not in taken]


def _walk(
    region: ControlRegion, prim: DagScan, given: Sequence[Buffer], result: Buffer,
    memory: Memory, make: Make,
) -> None:  # fmt: skip
    parts = prim.split(given)
    message, cell = prim.one_by_one()
    total, state = message.inputs[0].type, message.inputs[1].type
    numbers = 2 if total.dtype is float64 else 1
    by_edge, by_node = (
        [
            SlicedBuffer(b, memory.new("cursor", b.type.with_shape((1, *b.type.shape[1:]))))
            for b in group
        ]
        for group in (parts.edge, parts.node)
    )
    region.walk = walk = Walk(
        parts.edges, parts.order, result,
        memory.new("cursor", state), memory.new("cursor", state),
        memory.new("cursor", total), memory.new("cursor", total),
        memory.new("temporary", total), memory.new("temporary", total),
        memory.new("temporary", total),
        [memory.new("temporary", total.with_dtype(float64)) for _ in range(numbers)],
        by_edge, by_node,
    )  # fmt: skip
    edge_rows, node_rows = ([row.row for row in rows] for rows in (by_edge, by_node))
    sent = [walk.before, walk.state, *edge_rows, *parts.message]
    region.blocks = [
        make(optimize(message), sent, [walk.after]),
        make(optimize(cell), [walk.after, *node_rows, *parts.cell], [walk.made]),
    ]


def hidden_names(kernels: Sequence[Kernel]) -> list[str]:
    """Names of sizes that become known while the kernels run."""
    found: dict[str, None] = {}
    for kernel in flat(kernels):
        for region in regions_of(kernel):
            if isinstance(region.node.prim, Sized):
                found[region.node.prim.dim] = None
    return list(found)


def length_of(region: ControlRegion) -> int | Dim | None:
    """How often the blocks are run; None where nobody knows."""
    prim = region.node.prim
    if isinstance(prim, Scan):
        return prim.length
    if isinstance(prim, DagScan):
        return prim.nodes
    return None if isinstance(prim, WhileLoop) else 1


def item_types(node: Node) -> tuple[TensorType, ...]:
    assert isinstance(node.type, TupleType)
    return node.type.items
