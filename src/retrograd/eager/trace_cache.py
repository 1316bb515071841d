"""Trace nodes: computations without data, each made once and recognised from then on.

What a program records again and again, such as a step of a training loop, is the same computation
on other data. A *trace node* is one value of it: a node over numbered slots in place of arrays.
Trace nodes are found through the trace nodes they are computed from, so recording an operation that
was recorded before is a look into a table; types, broadcasting, the user's line, the gradient and
the program hang on the trace node and were worked out the first time.

Slots are numbered by first use. Without that `x * y` and `x * x` would look alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate
from operator import itemgetter
from types import CodeType
from typing import Any, NamedTuple, Protocol

from retrograd.autodiff import pullback, seeds
from retrograd.eager.fast_path import TraceNodeBase
from retrograd.ir import Node, Provenance, TensorType, Trait, full, made_by
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import Leaf, input_node
from retrograd.shared import trim
from retrograd.tuning import TUNING


class Slot(Leaf):
    """A graph input that stands for an array of a recording. Compared by identity."""

    name = "input"
    traits = frozenset({Trait.INPUT, Trait.FREE})

    def __init__(self, type: TensorType) -> None:
        self.type = type

    def infer(self, *types: TensorType) -> TensorType:
        return self.type


class TraceNode(TraceNodeBase):
    """One value of a recorded computation: a node over slots, and what is known about it."""

    __slots__ = (
        "freed",
        "gradients",
        "loss",
        "node",
        "reach",
        "site",
        "slot",
        "stopped",
        "type",
        "value_and_grads",
        "with_graphs",
        "without_history",
    )  # fmt: skip

    def __init__(self, site: TraceSite, node: Node, slot: int = -1, freed: bool = False) -> None:
        self.site = site
        self.node = node
        self.type = node.type
        self.floating = node.dtype.is_inexact
        self.takes_numbers = node.dtype.dtype.kind == "f"
        self.slot = slot  # the number of the array it stands for; -1: it is computed
        self.freed = freed  # backward() went through it: no gradient does again
        self.loss: TraceNode | None = (
            None  # of a gradient: the freed trace node of what it is the gradient of
        )
        self.successors: dict[Any, dict[Any, TraceNode]] = {}
        self.duplicate: TraceNode | None = None
        self.order = node.id
        self.stopped: TraceNode | None = None
        self.without_history: TraceNode | None = None  # what it turns into when backward() is done
        self.reach: tuple[int, ...] | None = None
        self.gradients: dict[Any, tuple[TraceNode | None, ...]] = {}
        self.value_and_grads: dict[Any, tuple[TraceNode | None, ...]] = {}  # see `differentiated`
        # The same with the order of what came before: see `with_graph`.
        self.with_graphs: dict[Any, list[tuple[int, tuple[TraceNode | None, ...]]]] = {}

    def stop(self) -> TraceNode:
        """The same value as a constant to differentiation."""
        if self.stopped is None:
            self.stopped = self.site.trace_node(_after(self.node))
        return self.stopped

    def free_history(self) -> TraceNode:
        """The same value as a constant that no gradient may be asked to go through."""
        if self.without_history is None:
            made = TraceNode(self.site, _after(self.node), freed=True)
            self.site.trace_nodes[made.node] = made  # whoever finds the trace node finds it there
            self.site.has_freed = True
            self.without_history = made
        return self.without_history

    def slots(self) -> tuple[int, ...]:
        """The slots a gradient can reach from here, ascending; a freed trace node among what it is
        computed from is entered as -1."""
        if self.reach is None:
            found, seen, todo = set(), {self.node}, [self.node]
            for node in todo:
                for x in node.inputs:
                    if x in seen:
                        continue
                    seen.add(x)
                    trace_node = self.site.trace_nodes.get(x)
                    if trace_node is not None and trace_node.freed:
                        found.add(-1)
                    if trace_node is not None and trace_node.slot >= 0:
                        found.add(trace_node.slot)
                    elif not isinstance(x.prim, StopGradient) and x.type.is_inexact:
                        todo.append(x)
            self.reach = tuple(sorted(found))
        return self.reach

    def gradient(
        self, wanted: Sequence[TraceNode], seed: TraceNode | None
    ) -> tuple[TraceNode | None, ...]:
        """The trace nodes of the gradient with respect to slots; None: there is no gradient."""
        key = (*wanted, seed)
        found = self.gradients.get(key)
        if found is None:
            start = seeds([self.node]) if seed is None else [seed.node]
            nodes, loss = self._pulled(start, wanted), self.free_history()
            found = tuple([None if g is None else self._gradient(g, loss) for g in nodes])
            self.gradients[key] = found
        return found

    def differentiated(self, wanted: Sequence[TraceNode]) -> tuple[TraceNode | None, ...]:
        """The value as a constant, through which no gradient goes, and its gradients as above: what
        a transform gives."""
        key = tuple(wanted)
        found = self.value_and_grads.get(key)
        if found is None:
            nodes, value = self._pulled(seeds([self.node]), wanted), self.stop()
            found = (value, *[None if g is None else self._gradient(g, value) for g in nodes])
            self.value_and_grads[key] = found
        return found

    def with_graph(self, wanted: Sequence[TraceNode], last: int) -> tuple[TraceNode | None, ...]:
        """Gradients as above, through which gradients go, as steps of a recording behind `last`:
        see `next_in_program_order`."""
        for first, found in self.with_graphs.get(tuple(wanted), ()):
            if first >= last:
                return found
        first = self.site.newest
        nodes = self._pulled(seeds([self.node]), wanted)
        found = tuple([None if g is None else self.site.trace_node(g) for g in nodes])
        self.with_graphs.setdefault(tuple(wanted), []).append((first, found))
        return found

    def _pulled(self, start: Sequence[Node], wanted: Sequence[TraceNode]) -> list[Node | None]:
        return pullback([self.node], start, [w.node for w in wanted])

    def _gradient(self, g: Node, loss: TraceNode) -> TraceNode:
        trace_node = self.site.trace_node(StopGradient()(g))  # it is a constant to what uses it
        trace_node.loss = loss
        return trace_node


def _after(node: Node) -> Node:
    with made_by(Provenance(node.scope, node.source, node.origin)):
        return StopGradient()(node)


def kept_for_gradient(
    ends: Sequence[Node], wanted: Sequence[Node], inside: Set[Node], at_hand: Collection[Node]
) -> list[Node]:
    """What else than is at hand the gradient of `ends` with respect to `wanted` needs of what is
    computed inside, and takes long: see `Trait.KEPT`. It is kept, so that it is computed once."""
    found = pullback(ends, [input_node(n.type) for n in ends], wanted)
    todo = [g for g in found if g is not None]
    seen, kept = set(todo), []
    for node in todo:  # the list grows while the loop goes through it
        for x in node.inputs:
            if x in seen or x in at_hand:
                continue
            seen.add(x)
            if x in inside and Trait.KEPT in x.prim.traits:
                kept.append(x)
            else:
                todo.append(x)
    return kept


class TraceSite:
    """A line of the user's program where recordings start, and the trace nodes of what followed.

    Threads share it, without a lock: its tables only grow, an entry is final, and what goes through
    a table takes a copy at once.
    """

    __slots__ = (
        "allowed",
        "calls",
        "has_freed",
        "kinds",
        "learning",
        "leaves",
        "limit",
        "newest",
        "numbers",
        "patience",
        "plans",
        "proven",
        "recording",
        "returned",
        "room",
        "runs",
        "trace_nodes",
        "unknown",
        "values",
    )

    def __init__(self) -> None:
        self.leaves: dict[Any, TraceNode] = {}  # by slot, type, name and whether it is freed
        self.calls: dict[Any, Any] = {}  # results of library functions, by arguments
        self.trace_nodes: dict[Node, TraceNode] = {}
        self.numbers: dict[Node, int] = {}  # constants that stand for a number of the recording
        self.plans: dict[Any, Any] = {}
        self.newest = -1  # the order of the trace node of a computation that was made last
        self.limit = 0  # how long a recording was that was cut, if one was: the next is as long
        self.room = 0  # up to how many operations a recording did not repeat, if one was longer
        self.values: dict[int, float] = {}  # the numbers of the last one that was cut
        self.has_freed = False  # whether there are freed trace nodes
        # Operations run at once until what starts here returns, and again where it ceases to.
        self.patience = TUNING.returned_runs  # how many runs in a row have to be known till then
        self.recording = self.patience == 0
        self.proven = False  # whether what is recorded now has run often enough to be compiled
        self.returned = 0.0  # how many were, those of larger arrays as several
        self.kinds: set[int] = set()  # the hashes of these
        self.runs: dict[int, None] = {}  # those of all runs
        self.unknown = 0  # how many recordings in a row were not all known
        self.allowed = TUNING.unknown_recordings  # how many may be
        self.learning = False  # whether the latest one was not

    def opens(self) -> bool:
        """Something starts here; whether it is to be run at once, since it may not return."""
        if not self.recording:
            return True
        self.proven = self.proven and self.unknown == 0
        if not self.learning:
            self.unknown = 0
        self.learning = False
        self.recording = self.unknown < self.allowed
        return not self.recording

    def gives_up(self) -> None:
        """What is recorded is looked at after every few operations: it runs at once from the next
        time on, and for long."""
        if self.recording and self.patience:
            self.recording = self.proven = False
            self.returned = 0
            self.patience *= TUNING.given_up

    def learns(self) -> None:
        """What is recorded now was not recorded before."""
        if not self.learning:
            self.learning = True
            self.unknown += 1

    @property
    def returns(self) -> bool:
        """Whether all that comes has come before, and may soon be recorded."""
        return self.recording or 0 < self.returned < self.patience * TUNING.likely_kinds

    def ran(self, what: int, weight: float) -> None:
        """What was run at once has come to its end. Once all that comes has come before, and often
        enough to pay for programs, it is recorded. `weight` is the mean time that what a call
        computes takes, in nodes."""
        if what not in self.runs:
            self.runs[what] = None
            trim(self.runs, TUNING.remembered_runs)
            self.returned = 0
            self.kinds.clear()
            return
        self.returned += TUNING.call_nodes + weight
        self.kinds.add(what)
        kinds = len(self.kinds)
        if self.returned >= self.patience * kinds**2 and kinds <= TUNING.recorded_kinds:
            self.allowed = TUNING.unknown_recordings + kinds
            self.recording = self.proven = True
            self.learning = False
            self.returned = self.unknown = 0
            self.patience *= 2

    def leaf(self, slot: int, node: Node, freed: bool) -> TraceNode:
        """The trace node of the array in a slot."""
        key = (slot, node.type, node.name, freed)
        found = self.leaves.get(key)
        if found is None:
            self.has_freed |= freed
            empty = Node(Slot(node.type), (), node.type, node.scope, node.source, None, node.name)
            made = self.trace_nodes[empty] = TraceNode(self, empty, slot, freed)
            found = self.leaves.setdefault(key, made)  # another thread may have been faster
        return found

    def trace_node(self, node: Node) -> TraceNode:
        """The trace node of a node over slots of this site."""
        found = self.trace_nodes.get(node)
        if found is None:
            found = self.trace_nodes.setdefault(node, TraceNode(self, node))
            self.newest = max(self.newest, found.order)
        return found


SITES: dict[Any, TraceSite] = {}
CAPACITY = 256  # sites that are remembered; beyond, all are forgotten, and learned again
TRACE_NODES = 50_000  # the same of trace nodes at one site, and all of twice as many, roughly
PLANS = 256  # programs of one site


def site_of(code: CodeType | None, lasti: int) -> TraceSite:
    """The trace nodes of what starts at a line of the user's program.

    The line is part of what is looked up so that the lines that errors name are right. It is
    known by name, not as an object: each line typed at a prompt is an object of its own.
    """
    key = code and (code.co_filename, code.co_name, code.co_firstlineno, lasti)
    found = SITES.get(key)
    if found is None or len(found.trace_nodes) > TRACE_NODES or len(found.plans) > PLANS:
        sites = list(SITES.values())  # at once: other threads enter theirs
        if len(sites) >= CAPACITY or sum([len(p.trace_nodes) for p in sites]) > 2 * TRACE_NODES:
            SITES.clear()
        found = SITES[key] = TraceSite()
    return found


class TracePart(NamedTuple):
    """Trace nodes that are to become nodes."""

    outputs: Sequence[TraceNode]
    array: Callable[[int], Node]  # what is in a slot
    numbers: Mapping[int, float]
    done: dict[Node, Node]  # remembers the nodes of trace nodes
    openings: Sequence[tuple[int, int]] = ()  # when which were recorded: see `TraceBuffer.begin`

    def missing(self) -> Iterator[tuple[int, int, Node, TracePart]]:
        """The nodes of trace nodes that have none yet, each behind when it was recorded and its
        id."""
        order = [trace_node.node for trace_node in self.outputs if trace_node.node not in self.done]
        seen = set(order)
        for node in order:  # the list grows while the loop goes through it
            for x in node.inputs:
                if x not in seen and x not in self.done:
                    seen.add(x)
                    order.append(x)
        openings = sorted(self.openings)  # threads that record in one buffer may enter them at once
        lasts = list(accumulate([last for _, last in openings], max))
        for node in order:
            k = bisect_left(lasts, node.id) - 1
            yield openings[max(k, 0)][0] if openings else 0, node.id, node, self

    def make(self, node: Node) -> None:
        """The node for a trace node; those of its inputs are there."""
        site, done = self.outputs[0].site, self.done
        here = site.trace_nodes.get(node)
        if here is not None and here.slot >= 0:
            done[node] = self.array(here.slot)
        elif (k := site.numbers.get(node)) is not None:
            with made_by(Provenance(node.scope, node.source, node.origin)):
                done[node] = full(self.numbers[k], node.type)
        else:
            origin = done.get(node.origin) if node.origin is not None else None
            done[node] = node.rebuilt([done[x] for x in node.inputs], origin)


class Part(Protocol):
    """What is to become nodes, in the order in which it was recorded."""

    def missing(self) -> Iterable[tuple[int, int, Any, Any]]:
        """What has yet to be made, each behind when it was recorded and its id; and this."""

    def make(self, node: Any) -> None:
        """Make one of these."""


def fill(parts: Iterable[Part]) -> None:
    """Make the nodes that trace nodes stand for, given what is in the slots, in the order in which
    they were recorded."""
    found = [x for part in parts for x in part.missing()]
    for _, _, node, part in sorted(found, key=itemgetter(0, 1)):
        part.make(node)
