"""The kernel plan: a graph as a list of kernels over buffers, for emitters to print.

A kernel computes one stored node, or several of one domain, by one or a few loop nests, from
buffers to buffers. Kernels run in order. Nothing here depends on the machine or on the language
that an emitter writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from retrograd.ir import Dim, Graph, Node, Op, evaluate, spec, uint8
from retrograd.ops.control import Sized, WhileLoop
from retrograd.ops.leaf import input_node
from retrograd.ops.remat import After
from retrograd.passes.lowering.libcall import PYTHON, LibCall
from retrograd.schedule.buffer import ALIGNMENT, Buffer
from retrograd.schedule.control_regions import Memory, flat, hidden_names, length_of, regions_of
from retrograd.schedule.cost_model import nanoseconds
from retrograd.schedule.fusion import UPDATES
from retrograd.schedule.kernel import Kernel, gemms
from retrograd.schedule.memory.aliasing import take_inputs, update_temporaries
from retrograd.schedule.memory.arena import ArenaLayout, Lifetime, Time, layout
from retrograd.schedule.memory.order import freeing_first
from retrograd.schedule.memory.prefetch import fetch_ahead
from retrograd.schedule.memory.workspace import work_bytes
from retrograd.schedule.packing import packed_once
from retrograd.schedule.planning.build import PlanBuilder
from retrograd.schedule.planning.explain import SUBNORMAL, describe, describe_tile_group
from retrograd.schedule.shape_checks import Sizes, grows, rounded
from retrograd.schedule.tiling.groups import TileGroup, make_tile_groups, place_barriers
from retrograd.schedule.tiling.masked_domain import mark_products
from retrograd.schedule.tiling.remat import recompute
from retrograd.tuning import TUNING

END = 1 << 60  # after all that happens inside of a kernel
CHECKS = frozenset(("check_index", "check_call"))  # nodes of kernels that may end a run


def _takes_any_time(prim: Op) -> bool:
    """Whether nobody knows how long an operation takes: a loop without a bound, and a call of
    Python, during which other threads run, too."""
    return isinstance(prim, WhileLoop) or (
        isinstance(prim, LibCall) and prim.routine.startswith(PYTHON)
    )


def may_end(node: Node) -> bool:
    """Whether the kernel of a node may end a run by itself."""
    prim = node.prim
    bounded = isinstance(prim, WhileLoop) and prim.most is not None
    return node.op in CHECKS or bounded or isinstance(prim, Sized)


class KernelPlan:
    """The kernels of a graph, its buffers, and the lifetimes of the temporaries.

    `outputs[k]` is the buffer of the graph's k-th output; `constants` are arrays the program keeps.
    Of the inputs listed in `donate`, those that outputs may overwrite become these outputs'
    buffers: `donated` maps such outputs to inputs. A `light` plan is for little work, where it is
    the time to compile that counts: nothing is cut into blocks, contractions are loops. Results
    are the same to the bit.
    """

    def __init__(self, graph: Graph, donate: Collection[int] = (), light: bool = False) -> None:
        self.source = graph
        self.times: dict[tuple[tuple[str, int], ...], tuple[float, float]] = {}  # see `place`
        self.light = light
        self.inputs = [Buffer("input", k, x.type, x) for k, x in enumerate(graph.inputs)]
        self.outputs = [Buffer("output", k, y.type, y) for k, y in enumerate(graph.outputs)]
        memory = Memory()
        block = PlanBuilder(graph, self.inputs, self.outputs, memory, light)
        self.graph = block.graph
        self.reasons = block.reasons
        self.constants, self.temporaries = memory.constants, memory.temporaries
        self.cursors = memory.cursors
        self.kernels = block.kernels
        if len(gemms(self.kernels)) >= TUNING.packed_once_products:
            self.kernels = packed_once(self.kernels, memory)
        window = TUNING.overtaken_kernels
        if any(isinstance(node.prim, After) for node in graph.nodes):
            self.kernels, window = freeing_first(self.kernels), 0
        if any(isinstance(k.nodes[0].prim, tuple(UPDATES)) for k in self.kernels):
            update_temporaries(self.kernels)
        self.donated: dict[int, int] = {}
        if donate:
            self.donated = take_inputs(self.kernels, self.inputs, self.outputs, donate)
        alone = [TileGroup([k]) for k in self.kernels]
        self.tile_groups = alone if light else make_tile_groups(self.kernels, window)
        again = recompute(self.kernels, self.tile_groups, self.temporaries)
        if len(again) > len(self.kernels):
            self.tile_groups = make_tile_groups(again, window)
        self.kernels = [k for group in self.tile_groups for k in group.kernels]
        for group in self.tile_groups if not light else ():
            settle_region(group)
            fetch_ahead(group)
        self.threaded = any(group.shared for group in self.tile_groups)
        place_barriers(self.tile_groups)
        self.every = list(flat(self.kernels))  # those that regions run included
        if not light:
            mark_products(self.every)
        self.hidden = hidden_names(self.kernels)
        self.endless = any(_takes_any_time(n.prim) for k in self.every for n in k.nodes)
        self._dynamic = {b for k in self.every for r in regions_of(k) for b in r.dynamic}
        self.work = self._make_work()
        self.scratch = self._make_local()
        self.lifetimes = self._lifetimes()
        self.checks = [n for k in self.every for n in k.nodes if may_end(n)]
        self._sizes = Sizes(graph)
        self._made = [b.bytes for b in self.outputs if b.kind == "output"]
        self._layouts: dict[tuple[int, ...], ArenaLayout] = {}  # of small sizes
        self.grows = all(grows(life.bytes) for life in self.lifetimes)

    def _make_work(self) -> Buffer | None:
        """The memory in which matrix products copy what they read; each thread has its own."""
        products = gemms(self.every)
        if not products:
            return None
        own = input_node(spec((work_bytes(products, self._every_group),), uint8))
        self.temporaries.append(Buffer("temporary", len(self.temporaries), own.type, own))
        for nest in products:
            nest.work = self.temporaries[-1]
        return self.temporaries[-1]

    @property
    def _every_group(self) -> list[TileGroup]:
        """Those inside of regions included."""
        inner = [
            b for k in self.every for r in regions_of(k) for block in r.tile_groups for b in block
        ]
        return [*self.tile_groups, *inner]

    def _make_local(self) -> ArenaLayout:
        """Find the temporaries of which each thread has a block, and place them in its scratch."""
        every = self._every_group
        homes: dict[Buffer, TileGroup | None] = {}  # None where several tile groups touch a buffer
        for group in (b for b in every if not b.is_region):
            for buffer in group.reads | group.writes:
                homes[buffer] = group if homes.get(buffer, group) is group else None
        for kernel in (k for group in every if group.is_region for k in group.kernels):
            for region in regions_of(kernel):
                homes |= dict.fromkeys([*kernel.reads, *region.touched], None)
        homes |= dict.fromkeys(self._dynamic, None)
        offsets: dict[Buffer, int] = {}
        size = 0
        for group in every:
            own = {b: b.bytes for b in own_of_walk(group)} if group.is_region else {}
            if group.rows != 0 and group.max_tile_rows != 0:
                made = [b for b in group.writes if b.kind == "temporary" and homes[b] is group]
                own = {
                    b: group.row_bytes(b) * group.max_tile_rows for b in made if group.row_bytes(b)
                }
            times = lifetimes(list(enumerate(group.kernels)), own.__contains__)
            lives = [Lifetime(b, first, last, own[b]) for b, (first, last) in times.items()]
            placed = layout(lives, {})
            group.local = list(placed.offsets)
            offsets |= placed.offsets
            size = max(size, placed.arena)
        if self.work is not None:
            for group in every:
                if group.is_region and own_of_walk(group):
                    group.local.append(self.work)
            own_size = self.work.bytes
            assert isinstance(own_size, int)
            offsets[self.work] = size
            size += own_size
        return ArenaLayout(offsets, size)

    def _lifetimes(self) -> list[Lifetime]:
        shared = set(self.temporaries) - self.scratch.offsets.keys() - self._dynamic
        timed = list(enumerate(self.kernels))
        if self.threaded:
            timed = [(group.epoch, k) for group in self.tile_groups for k in group.kernels]
        times = lifetimes(timed, shared.__contains__)
        return [Lifetime(b, first, last, b.bytes) for b, (first, last) in times.items()]

    def layout(self, sizes: Mapping[str, int]) -> ArenaLayout:
        """Place the temporaries for the given sizes; raises `ShapeError` where they make no sense
        for an op."""
        self._sizes.check(sizes)
        enough = rounded(sizes) if self.grows else sizes
        key = tuple(enough.values())
        found = self._layouts.get(key)
        if found is None:
            found = layout(self.lifetimes, enough)
            if len(self._layouts) >= TUNING.kept_arena_layouts:
                self._layouts.clear()
            self._layouts[key] = found
        return found

    def nanoseconds(self, sizes: Mapping[str, int]) -> float:
        """A guess at the time of a call on one thread."""
        return sum(nanoseconds(k, sizes) for k in self.kernels)

    def shared_nanoseconds(self, sizes: Mapping[str, int]) -> float:
        """The part of this that threads may share."""
        times = [
            (group, nanoseconds(k, sizes))
            for group in self.tile_groups
            if group.shared
            for k in group.kernels
        ]
        return sum(
            time for group, time in times if group.rows != 0 or time >= TUNING.shared_walk_ns
        )

    @property
    def least_bytes(self) -> int:
        """Bytes that a call allocates at least; sizes must be known."""
        made = [evaluate(n, {}) for n in self._made]
        apart = self.scratch.offsets.keys() | self._dynamic
        shared = [b for b in self.temporaries if b not in apart]
        return sum(made) + max((evaluate(b.bytes, {}) for b in shared), default=0)

    def peak_bytes(
        self, sizes: Mapping[str, int], placed: ArenaLayout | None = None, threads: int = 1
    ) -> int:
        """Bytes that a call allocates: the arena, the threads' scratch, and the outputs."""
        arena = (placed or self.layout(sizes)).arena + self.scratch.arena * threads + ALIGNMENT
        return arena + sum(evaluate(n, sizes) for n in self._made)

    def arrays(self, sizes: Mapping[str, int]) -> list[tuple[int, str]]:
        """The bytes of each array that a call makes, and what it is, outputs under their names."""
        outputs = zip(self.outputs, self.source.outputs, strict=True)
        made = [*outputs, *((b, b.node) for b in self.temporaries)]
        known = {**dict.fromkeys(self.hidden, 1), **sizes}
        return [(evaluate(b.bytes, known), f"{b.kind} {node.describe()}") for b, node in made]

    def explain(
        self,
        sizes: Mapping[str, int] | None = None,
        measured: Sequence[float] | None = None,
        subnormal: Sequence[bool] | None = None,
    ) -> str:
        """The kernels in their tile groups as text; see `explain.py`. `measured` are nanoseconds,
        `subnormal` says which kernels met subnormal numbers meanwhile."""
        head = (
            f"{len(self.kernels)} kernels for {len(self.source)} nodes; buffers: "
            f"{len(self.inputs)} inputs, {len(self.outputs)} outputs, "
            f"{len(self.constants)} constants, {len(self.temporaries)} temporaries"
        )
        lines, number = [head], 0
        for group in self.tile_groups:
            if len(group.kernels) > 1 or group.shared:
                lines.append("      " + describe_tile_group(group))
            for kernel in group.kernels:
                why = sorted({self.reasons.get(n, "a copy for an output") for n in kernel.nodes})
                text = describe(kernel, sizes) + "; stored: " + ", ".join(why)
                if kernel.again:
                    text += "; computed again: that costs less than to keep it"
                if measured is not None:
                    text += f"; took {measured[number] / 1e3:.2f} us"
                if subnormal is not None and subnormal[number]:
                    text += "; met subnormal numbers"
                lines.append(f"{number:4}  {text}")
                number += 1
        if subnormal is not None and any(subnormal):
            lines.append(SUBNORMAL)
        return "\n".join(lines)


def settle_region(group: TileGroup) -> None:
    """Have threads share what a region runs, if that is worth it, or the nodes of a graph, if there
    may be enough of them."""
    if len(group.kernels) != 1:
        return
    for region in regions_of(group.kernels[0]):
        if region.walk is not None:
            fixed = all(isinstance(b.bytes, int) for b in own_of_walk(group))
            unknown = isinstance(region.walk.edges.bytes, Dim) or isinstance(length_of(region), Dim)
            group.is_region = fixed and (
                unknown or nanoseconds(group.kernels[0]) >= TUNING.shared_walk_ns
            )
            continue
        tile_groups = [make_tile_groups(block) for block in region.blocks]
        for inner in (b for inside in tile_groups for b in inside):
            settle_region(inner)
        if any(b.shared for inside in tile_groups for b in inside):
            for inside in tile_groups:
                place_barriers(inside)
            region.tile_groups, group.is_region = tile_groups, True
            region.blocks = [[k for b in inside for k in b.kernels] for inside in tile_groups]


def own_of_walk(group: TileGroup) -> list[Buffer]:
    """The memory in which a tile group that is a walk through a graph computes a node."""
    found = []
    for kernel in group.kernels:
        for region in regions_of(kernel):
            if region.walk is not None:
                made = [b for b in kernel.outs if b is not region.walk.result]
                found += [b for b in made if b.kind == "temporary"]
    return found


def lifetimes(
    timed: Sequence[tuple[int, Kernel]], which: Callable[[Buffer], bool]
) -> dict[Buffer, tuple[Time, Time]]:
    """When buffers are first written and last read, in the order of their first time.

    What a region reads or writes itself it may touch at any time from its beginning to its end;
    what its blocks leave for one another lives at times in between.
    """
    times: dict[Buffer, tuple[Time, Time]] = {}
    todo: list[tuple[Time, Kernel]] = [((time,), k) for time, k in reversed(timed)]
    while todo:
        time, kernel = todo.pop()
        inner = [timed for r in regions_of(kernel) for timed in r.timed]
        todo += [((*time, at), k) for at, k in reversed(inner)]
        own = {b for _, k in inner for b in k.outs}
        for buffer in (*kernel.outs, *kernel.reads):
            if which(buffer) and buffer not in own:
                first = times.get(buffer, (time,))[0]
                times[buffer] = first, max((*time, END), times.get(buffer, (time, time))[1])
    return times
