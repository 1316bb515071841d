"""The history of leaves that were computed: segments of long recordings, calls of compiled
functions.

Not the graph of an ordinary recording, which is that of its trace nodes.

A recording that grows long is cut (`segments.py`). What somebody holds of it is computed and goes
on as a leaf; where a gradient may ask for its history, the leaf knows its `GradFn`: the segment,
and the trace node that it was there. Gradients go through segments one at a time
(`segment_backward.py`). Whoever asks for nodes gets the nodes of the whole history: such leaves are
seen in buffers only.

What a compiled function returned has a `JitCall` as its grad_fn, where a gradient may ask: the
graph that was compiled, and what it was given. Nodes are made of it when somebody does.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.eager.immediate_base import OutputBase
from retrograd.eager.leaf import VALUES, ConcreteLeaf
from retrograd.eager.program_cache import LOCK
from retrograd.eager.trace_cache import TraceNode, TracePart, TraceSite, fill
from retrograd.ir import Graph, Node, provenance, substitute
from retrograd.ir.source import user_source
from retrograd.runtime.backend import Array

next_number = itertools.count().__next__


class TapeSegment:
    """What was recorded in a buffer up to a cut. Later cuts have higher numbers, and a segment is
    computed from results of lower ones only."""

    __slots__ = (
        "__weakref__", "arrays", "nodes", "number", "numbers", "openings", "site", "tracked",
        "values",
    )  # fmt: skip

    def __init__(
        self,
        site: TraceSite,
        arrays: list[Node],
        numbers: dict[int, float],
        values: dict[TraceNode, Array],
        nodes: dict[Node, Node],
        openings: list[tuple[int, int]],
        tracked: list[TraceNode],
        number: int,
    ) -> None:
        self.site = site
        self.arrays = arrays
        self.numbers = numbers
        self.values = values  # what is at hand of it, so that nobody computes it again
        self.nodes = nodes  # of trace nodes whose nodes were asked for
        self.openings = openings
        self.tracked = tracked  # what leaves stand for that have this grad_fn
        self.number = number

    def part(self) -> TracePart:
        """What would have to be made for all that leaves stand for."""
        arrays = self.arrays
        return TracePart(
            self.tracked, lambda k: full_history(arrays[k]), self.numbers, self.nodes, self.openings
        )

    def unfold(self) -> None:
        """Make the nodes of what leaves stand for."""
        fill([self.part()])

    def made(self, trace_node: TraceNode) -> Node:
        """The node of one of them."""
        return self.nodes[trace_node.node]


class JitCall:
    """A call of a compiled function. Numbered like segments."""

    __slots__ = ("__weakref__", "arrays", "depth", "graph", "number", "outputs", "sizes")

    def __init__(self, graph: Graph, arrays: Sequence[Node], sizes: Mapping[str, int]) -> None:
        self.graph = graph  # as it was traced
        self.arrays = list(arrays)  # nodes of its arguments
        self.sizes = sizes
        self.outputs: list[Node] = []
        grad_fns = [grad_fn.segment for x in arrays if (grad_fn := grad_fn_of(x)) is not None]
        # How many calls, each with results of the one before, lead to this one.
        self.depth: int = 1 + max([x.depth for x in grad_fns if isinstance(x, JitCall)], default=0)
        self.number = next_number()

    def unfold(self) -> None:
        """Make the nodes of the results."""
        graph = self.graph.bind(self.sizes)
        given = [full_history(x) for x in self.arrays]
        self.outputs = substitute(graph.outputs, dict(zip(graph.inputs, given, strict=True)))

    def made(self, k: int) -> Node:
        """The node of result number k."""
        return self.outputs[k]


class GradFn(NamedTuple):
    """How the value of a leaf was computed: which trace node of a segment it is, or result of a
    call."""

    segment: Any  # TapeSegment | JitCall | Call
    output: Any  # TraceNode | int


class Output(OutputBase):
    """A result of a call that has run: its array, the call if a gradient may go back through it
    (else None), and which of its results it is. Who asks gets a leaf for it, always the same."""

    __slots__ = ()

    array: Array
    call: Any
    index: int
    freed: bool  # backward() has gone through it: no gradient does again
    where: Any  # scope and line, where there is no call
    _leaf: Node | None

    @classmethod
    def of(cls, array: Array, call: Any, index: int, freed: bool) -> Output:
        """A result of a call here; one that no gradient goes back through knows where that was."""
        new = cls()
        new.array, new.call, new.index, new.freed, new._leaf = array, call, index, freed, None
        new.where = None if call is not None else (provenance().scope, user_source())
        return new

    def without_history(self) -> Output:
        """The same after `backward()`."""
        new = type(self)()
        new.array, new.call, new.index, new.freed, new._leaf = self.array, None, 0, True, None
        call = self.call
        new.where = self.where if call is None else (call.scope, call.source)
        return new

    @property
    def leaf(self) -> Node:
        """The leaf that stands for it among nodes."""
        if self._leaf is None:
            with LOCK:
                if self._leaf is None:
                    prim, call = ConcreteLeaf(self.array, None, self.freed), self.call
                    where = self.where
                    if call is not None:
                        prim.grad_fn = GradFn(call, self.index)
                        where = call.scope, call.source
                    self._leaf = Node(prim, (), prim.type, *where)
        found = self._leaf
        assert found is not None
        return found


def grad_fn_of(node: Node) -> GradFn | None:
    """How a leaf was computed, if it was, and a gradient may ask."""
    return getattr(node.prim, "grad_fn", None)


def full_history(leaf: Node) -> Node:
    """The node that stands for a leaf where nodes are asked for: the leaf itself, unless it has a
    grad_fn."""
    if grad_fn_of(leaf) is None:
        return leaf
    if leaf.prim.whole is None:  # type: ignore[attr-defined]
        with LOCK:
            _unfold([leaf])
    found: Node = leaf.prim.whole  # type: ignore[attr-defined]
    return found


def _unfold(todo: list[Node]) -> None:
    """Make the nodes of leaves with a grad_fn, and of those that they were computed from."""
    seen = set(todo)
    found: dict[Any, list[Node]] = {}
    for leaf in todo:  # the list grows while the loop goes through it
        segment = leaf.prim.grad_fn.segment  # type: ignore[attr-defined]
        new = segment not in found
        found.setdefault(segment, []).append(leaf)
        for x in segment.arrays if new else ():
            if grad_fn_of(x) is not None and x not in seen and x.prim.whole is None:
                seen.add(x)
                todo.append(x)
    for segment, leaves in sorted(found.items(), key=lambda item: item[0].number):
        segment.unfold()
        for x in leaves:
            prim: Any = x.prim
            prim.whole = node = segment.made(prim.grad_fn.output)
            VALUES[node] = prim.array
