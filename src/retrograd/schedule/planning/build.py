"""From a graph to its kernels: fusion, buffers, and the lowering of what is stored.

A block is what a plan starts from, and what is repeated or chosen by a region of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from retrograd.ir import Graph, Node, Shape, TensorType, Trait, TupleType
from retrograd.ops.identity import Item
from retrograd.ops.remat import After
from retrograd.passes.constants import is_buffer
from retrograd.passes.lowering.libcall import LibCall
from retrograd.passes.pipeline import lowered
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import Memory, item_types, region_kernel, regions_of
from retrograd.schedule.fusion import Fusion
from retrograd.schedule.horizontal_fusion import FusedMap, buffers_read, domain_of
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import LoopNest, Store, loops_over
from retrograd.schedule.lower import NodeLowering, is_map
from retrograd.schedule.lower_libcall import call_kernels
from retrograd.schedule.mapping import mapping
from retrograd.schedule.memory.aliasing import in_place, update_temporaries
from retrograd.schedule.packing import packed_before
from retrograd.schedule.ssa import ScalarBlock
from retrograd.tuning import TUNING


class PlanBuilder:
    """The kernels that compute a graph from the buffers of its inputs into those of its outputs.
    `memory` numbers what else they need."""

    lowering: type[NodeLowering] = NodeLowering
    packs = True  # matrices that a loop reads again and again are copied in the order of registers

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        memory: Memory,
        light: bool = False,
    ) -> None:
        self.source, self.graph = graph, lowered(self.prepared(graph), light)
        self.memory = memory
        self.light = light  # see `KernelPlan`
        self.buffers: dict[Node, Buffer] = dict(zip(self.graph.inputs, inputs, strict=True))
        self.kernels: list[Kernel] = []
        fusion = Fusion(self.graph)
        self.reasons = fusion.reasons
        self._items: dict[tuple[Node, int], list[Node]] = {}
        for node in self.graph.body:
            if isinstance(node.prim, Item):
                self._items.setdefault((node.inputs[0], node.attrs["index"]), []).append(node)
        copies = self._make_buffers(fusion.stored, outputs)
        self._make_kernels(fusion.stored)
        for node, buffer in copies:
            self.kernels.append(Kernel([node], [self._copy(node, buffer)], [buffer]))

    def prepared(self, graph: Graph) -> Graph:
        """The graph, without what the engine at hand has no kernels for."""
        return graph

    def _make_buffers(
        self, stored: list[Node], outputs: Sequence[Buffer]
    ) -> list[tuple[Node, Buffer]]:
        """A buffer for every stored node; returns outputs that have to be copied from elsewhere."""
        for node in self.graph.body:
            if is_buffer(node):
                self.buffers[node] = self.memory.new("constant", node.type, node)
        copies = []
        for node, buffer in zip(self.graph.outputs, outputs, strict=True):
            if node in self.buffers:
                copies.append((node, buffer))
            else:
                self._keep(node, buffer)
        for node in stored:
            if Trait.CONTROL in node.prim.traits and isinstance(node.type, TupleType):
                for i, type in enumerate(item_types(node)):
                    same = self._items.setdefault((node, i), [])
                    if not same:  # nobody reads it, but the region writes it
                        same.append(Node(Item(i), (node,), type))
                    if same[0] not in self.buffers:
                        self._keep(same[0], self.memory.new("temporary", type, same[0]))
            elif node not in self.buffers:
                self.buffers[node] = self.memory.new("temporary", node.type, node)
        return copies

    def _keep(self, node: Node, buffer: Buffer) -> None:
        """Where the value of a node is; equal items of one node are one value."""
        self.buffers[node] = buffer
        if isinstance(node.prim, Item):
            for same in self._items[node.inputs[0], node.attrs["index"]]:
                self.buffers[same] = buffer

    def _make_kernels(self, stored: list[Node]) -> None:
        """Lower the stored nodes in order. Elementwise nodes join an earlier kernel of their domain
        with which they share work, where what they need is there by then; not past a kernel that is
        in between where memory is short, as all that one kernel writes is there at once."""
        late = any(isinstance(node.prim, After) for node in self.source.nodes)
        groups: dict[Shape, list[FusedMap]] = {}
        made: dict[Buffer, int] = {}
        lowered: list[Kernel | FusedMap] = []
        for node in stored:
            if Trait.CONTROL in node.prim.traits:
                region = self._region(node)
                if self.packs:
                    lowered += packed_before(region, self.memory)
                made |= dict.fromkeys(region.outs, len(lowered))
                lowered.append(region)
                continue
            buffer = self.buffers[node]
            domain = domain_of(node)
            near = groups.setdefault(domain, []) if is_map(node) else []
            reads = buffers_read(node, self.buffers) if is_map(node) else set()
            options = [g for g in reversed(near) if not late or g.position == len(lowered) - 1]
            home = next((g for g in options if g.try_add(node, reads, made)), None)
            if home is not None:
                made[buffer] = home.position
                continue
            made[buffer] = len(lowered)
            if is_map(node):
                home = FusedMap(domain, self.buffers, len(lowered))
                home.try_add(node, reads, made)
                groups[domain] = [*near[1 - TUNING.fused_map_candidates :], home]
                lowered.append(home)
            elif isinstance(node.prim, LibCall):
                fill = self.lowering(node, self.buffers, partial(self._scratch, node)).copy_of
                kernels = call_kernels(node, self.buffers, self._temporary, fill)
                lowered += kernels
                for kernel in kernels:
                    made |= dict.fromkeys(kernel.outs, len(lowered) - 1)
            else:
                scratch = partial(self._scratch, node)
                lowering = self.lowering(node, self.buffers, scratch, self.light)
                nests = lowering.nests()
                lowered.append(Kernel([node], nests, [buffer, *lowering.spare]))
        for item in lowered:
            if isinstance(item, FusedMap):
                outs = [self.buffers[n] for n in item.nodes]
                item = Kernel(item.nodes, [item.nest()], outs)
            self.kernels.append(item)

    def _region(self, node: Node) -> Kernel:
        given = [self.buffers[x] for x in node.inputs]
        if isinstance(node.type, TupleType):
            results = [self.buffers[self._items[node, i][0]] for i in range(len(item_types(node)))]
        else:
            results = [self.buffers[node]]
        kernel = region_kernel(node, given, results, self.memory, self._inside)
        for region in regions_of(kernel):
            for block in region.blocks:
                update_temporaries(block)
            pairs = [(c.into, c.out) for c in region.carries]
            for carry, same in zip(region.carries, in_place(region.blocks[-1], pairs), strict=True):
                carry.in_place = same
        return kernel

    def _inside(
        self, graph: Graph, inputs: Sequence[Buffer], outputs: Sequence[Buffer]
    ) -> list[Kernel]:
        block = type(self)(graph, inputs, outputs, self.memory, self.light)
        self.reasons |= block.reasons
        return block.kernels

    def _temporary(self, node: Node) -> Buffer:
        self.buffers[node] = self.memory.new("temporary", node.type, node)
        return self.buffers[node]

    def _scratch(self, node: Node, type: TensorType) -> Buffer:
        """Memory that the kernel of a node works in."""
        return self.memory.new("temporary", type, node)

    def _copy(self, node: Node, buffer: Buffer) -> LoopNest:
        body = ScalarBlock()
        loops, index = loops_over(body, node.shape)
        value = IndexMapper(body, self.buffers).read(node, index)
        store = Store(buffer, body.offset(index, node.shape), value)
        return mapping(loops, body, [store])
