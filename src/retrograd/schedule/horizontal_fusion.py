"""Horizontal fusion: stored nodes of one domain, siblings, become one nest with several stores."""

from __future__ import annotations

from collections.abc import Mapping

from retrograd.ir import Node, Shape
from retrograd.ops.shape import Reshape
from retrograd.passes.lowering.axis_groups import reshape_root
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.fusion import in_turn, side_by_side
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.loop_nest import LoopNest, Store, loops_over
from retrograd.schedule.mapping import mapping
from retrograd.schedule.ssa import INDEXING, ScalarBlock, SSAOp, SSAValue
from retrograd.tuning import TUNING


class FusedMap:
    """Elementwise nests of one domain, grown node by node into one nest with a store for each.

    Taking in a node pays where it shares loads or results with those that are there.
    """

    def __init__(self, domain: Shape, stored: Mapping[Node, Buffer], position: int) -> None:
        self.domain = domain
        self.position = position  # among the kernels
        self.stored = stored
        self.nodes: list[Node] = []
        self.stores: list[Store] = []
        self.body = body = ScalarBlock()
        self._loops, self._index = loops_over(body, domain)
        self._offset = body.offset(self._index, domain)
        self._reader = IndexMapper(body, stored)
        self._seen: set[SSAValue] = set()
        self._touched: set[Buffer] = set()

    def try_add(self, node: Node, reads: set[Buffer], made: Mapping[Buffer, int]) -> bool:
        """Add a node; False, and nothing is changed, where that is not possible or does not pay.

        `reads` are the buffers it is computed from, `made` the positions of the kernels that write
        buffers. Most refusals follow from these alone.
        """
        if domain_of(node) != self.domain or len(self._seen) > TUNING.fused_map_values:
            return False
        if self.nodes and reads.isdisjoint(self._touched):
            return False
        if any(made.get(b, -1) > self.position for b in reads):
            return False
        stores = self._stores(node)
        outs = {s.buffer for s in self.stores}
        fresh: set[SSAValue] = set()
        todo = [s.value for s in stores]
        shares = not self._seen.isdisjoint(todo)
        while todo:
            v = todo.pop()
            if v in self._seen or v in fresh:
                shares |= v in self._seen and (v.op is SSAOp.LOAD or v.op not in INDEXING)
                continue
            # What another node of the group writes is not in memory yet at every index.
            if v.op is SSAOp.LOAD and v.attr in outs:
                return False
            fresh.add(v)
            todo.extend(v.args)
        if self.nodes and not shares:
            return False
        self._seen |= fresh
        self._touched |= reads
        self._touched.add(self.stored[node])
        self.nodes.append(node)
        self.stores += stores
        return True

    def _stores(self, node: Node) -> list[Store]:
        """What writes a node: a store, or one for each part of a concat."""
        buffer, index, body = self.stored[node], self._index, self.body
        if not side_by_side(node):
            return [Store(buffer, self._offset, self._reader.compute(node, index))]
        if in_turn(node):
            index = (*index, body.size(0))
        found, axis, start = [], node.attrs["axis"], 0
        for x in node.inputs:
            place = (*index[:axis], body.add(index[axis], body.size(start)), *index[axis + 1 :])
            value = self._reader.read(x, index)
            found.append(Store(buffer, body.offset(place, node.shape), value))
            start = start + x.shape[axis]
        return found

    def nest(self) -> LoopNest:
        """The nest of all that was taken."""
        return mapping(self._loops, self.body, self.stores)


def domain_of(node: Node) -> Shape:
    """What a nest that stores a node goes through."""
    if not side_by_side(node):
        return node.shape
    shape = node.inputs[0].shape
    return shape[:-1] if in_turn(node) else shape


def buffers_read(node: Node, stored: Mapping[Node, Buffer]) -> set[Buffer]:
    """The buffers that a node is computed from."""
    found: set[Buffer] = set()
    seen, todo = {node}, [node]
    while todo:
        for x in todo.pop().inputs:
            if x in seen:
                continue
            seen.add(x)
            buffer = stored.get(x)
            if buffer is None and isinstance(x.prim, Reshape):
                buffer = stored.get(reshape_root(x.inputs[0], stored))
            if buffer is None:
                todo.append(x)
            else:
                found.add(buffer)
    return found
