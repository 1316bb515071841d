"""The entries of a buffer of a tape, derived from the trace nodes that were recorded on it.

What a program records again is the same trace nodes, so its layout and the programs of its gradient
are found again, too: they hang on the site of the buffer, under the trace nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.autodiff import Cotangents, walk
from retrograd.eager.modes import current_backend
from retrograd.eager.program_cache import LOCK
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.trace_program import TraceProgram
from retrograd.ir import Node, TupleType
from retrograd.ops.complex import conj
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import input_node
from retrograd.runtime.executors.tiered import Patience
from retrograd.tape.trace_buffer import TapeBuffer

PLANS = 64  # programs of a layout; beyond, all are forgotten


class Reverse(NamedTuple):
    """The program of the gradients of a buffer: what its results belong to."""

    entries: list[int]
    slots: list[int]
    plan: TraceProgram


class EntryLayout:
    """The entries of a buffer, numbered from 0. `nodes` are nodes over slots; entries that are
    given have the number of what is given in `slots`, others -1. Parents below 0 are given, and
    entries of earlier buffers: -1 is number 0."""

    def __init__(
        self, buffer: TapeBuffer, trace_nodes: Sequence[TraceNode], new: Sequence[int]
    ) -> None:
        self.site = buffer.site
        self.nodes: list[Node] = []
        self.slots: list[int] = []
        self.parents: list[tuple[int, ...]] = []
        self.where: dict[Node, int] = {}
        self._wanted: dict[Any, list[bool]] = {}
        self._reverse: dict[Any, Reverse] = {}
        given = [buffer.slots[x].node for x in buffer.given()]
        self._old = {node: k for k, node in enumerate(given)}
        for rank, k in enumerate(new):
            self._old[given[k]] = -1 - rank  # new ones, in their order
        self._new = list(new)
        entered = list(buffer.entered)
        for i, trace_node in enumerate(trace_nodes):
            while entered and entered[0][0] <= i:
                self._add(entered.pop(0)[1].node)
            self._add(trace_node.node)
        for _, what in entered:
            self._add(what.node)
        self.several = any(isinstance(n.type, TupleType) for n in self.nodes)

    def _add(self, node: Node) -> None:
        """Enter a node and what is below it that is not there yet: arrays first."""
        if node in self.where or self._old.get(node, -1) >= 0:
            return
        found, todo = {node}, [node]
        for n in todo:
            for x in n.inputs:
                if x not in found and x not in self.where and self._old.get(x, -1) < 0:
                    found.add(x)
                    todo.append(x)
        old = self._old
        for n in sorted(todo, key=lambda n: (n not in old, -old[n] if n in old else n.id)):
            self.where[n] = len(self.nodes)
            self.nodes.append(n)
            self.slots.append(self._new[-1 - old[n]] if n in old else -1)
            self.parents.append(
                tuple([self.where[x] if x in self.where else -1 - old[x] for x in n.inputs])
            )

    def wanted(self, flags: tuple[bool, ...]) -> list[bool]:
        """Which entries require a gradient, if these slots do."""
        found = self._wanted.get(flags)
        if found is None:
            found = []
            for node, slot, parents in zip(self.nodes, self.slots, self.parents, strict=True):
                inherits = node.type.is_inexact and not isinstance(node.prim, StopGradient)
                above = [found[p] if p >= 0 else flags[-1 - p] for p in parents]
                found.append(flags[slot] if slot >= 0 else inherits and any(above))
            self._wanted[flags] = found
        return found

    def reverse(
        self,
        flags: tuple[bool, ...],
        seeded: tuple[int, ...],
        incoming: tuple[int, ...],
        values: Mapping[TraceNode, Any],
    ) -> Reverse:
        """The program of the gradient from cotangents of the entries `seeded`, added to those of
        the slots `incoming` of earlier buffers. It finds them under ("entry", i) and ("slot",
        k)."""
        key = (current_backend(), flags, seeded, incoming, tuple(values))
        found = self._reverse.get(key)
        if found is None:
            with LOCK:
                if len(self._reverse) >= PLANS:
                    self._reverse.clear()
                found = self._reverse[key] = self._pulled(flags, seeded, incoming, values)
        return found

    def _pulled(
        self,
        flags: tuple[bool, ...],
        seeded: Sequence[int],
        incoming: Sequence[int],
        values: Mapping[TraceNode, Any],
    ) -> Reverse:
        wanted = self.wanted(flags)
        above = {k: x for x, k in self._old.items() if k >= 0 and flags[k]}  # of earlier buffers
        known: dict[Node, Any] = {f.node: f for f in values}
        found = Cotangents()
        ends = [("entry", i, self.nodes[i]) for i in seeded]
        for what, i, node in (*ends, *[("slot", k, above[k]) for k in incoming]):
            start = input_node(node.type)
            known[start] = (what, i)
            found.add(node, conj(start))
        takes = {n for n, yes in zip(self.nodes, wanted, strict=True) if yes} | {*above.values()}
        path = [node for node in self.nodes if node in takes and node.inputs]
        for _ in walk(path, found, takes.__contains__):
            pass
        entries = [i for i, n in enumerate(self.nodes) if n in found.of and n in takes]
        slots = [k for k, x in above.items() if x in found.of]
        nodes = [self.nodes[i] for i in entries] + [above[k] for k in slots]
        found.settle(nodes)
        results = [
            StopGradient()(conj(found.of[n])) for n in nodes
        ]  # what is given may be among them
        return Reverse(
            entries, slots, TraceProgram(self.site, results, known, patience=Patience.RUNS)
        )


def layout_of(
    buffer: TapeBuffer, trace_nodes: tuple[TraceNode, ...], new: tuple[int, ...]
) -> EntryLayout:
    """The layout of a buffer in which these trace nodes are recorded, and these slots are
    entries."""
    constants = tuple([trace_node for _, trace_node in buffer.constants])
    key = ("tape", trace_nodes, new, tuple(buffer.entered), len(buffer.arrays), constants)
    found: EntryLayout | None = buffer.site.plans.get(key)
    if found is None:
        with LOCK:
            found = buffer.site.plans[key] = EntryLayout(buffer, trace_nodes, new)
    return found
