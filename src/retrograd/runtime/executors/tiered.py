"""A program that is interpreted until compiling it pays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from retrograd.gc_paused import gc_paused
from retrograd.ir import Graph, Node, TensorType, evaluate
from retrograd.ops.control.draw import Draw
from retrograd.ops.conv import Conv
from retrograd.ops.matmul import DotGeneral
from retrograd.runtime.backend import Array, Program
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.background_compiler import BEHIND
from retrograd.runtime.executors.bytecode import BytecodeExecutor
from retrograd.runtime.executors.graph_family import Unlike, family_of, skeleton
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.executors.op_kernels import COMPILED
from retrograd.runtime.executors.op_kinds import Kind, kind_of
from retrograd.shared import own_lock
from retrograd.tuning import TUNING


def is_long(graph: Graph) -> bool:
    """Whether a graph is one of very many small operations, of few kinds."""
    body = graph.body
    if len(body) < TUNING.bytecode_operations or graph.dim_names:
        return False
    if any(not isinstance(node.type, TensorType) for node in body):
        return False  # it holds loops, which are compiled
    if sum([node.type.size for node in body]) > TUNING.bytecode_elements * len(body):
        return False
    kinds: set[Kind] = set()
    for node in body:
        kinds.add(kind_of(node))
        if len(kinds) * TUNING.bytecode_repetition > len(body):
            return False
    return True


class Patience(Enum):
    """What interpreting a program may cost before it is compiled."""

    NODES = "about its own number of nodes: what was recorded returns"
    RUNS = "some runs of it: it is one of many segments of a recording, which may never return"
    COMPILING = "what compiling it does: it is that of a call, which soon may be part of another"


class TieredProgram:
    """Interprets a graph the first time, and compiles it when it has been run often enough; a small
    one as soon as nobody waits, see `background_compiler.py`.

    The bits of the results are the same, so nobody can tell, but by the time it takes.
    """

    def __init__(
        self, graph: Graph, patience: Patience = Patience.NODES,
        sizes: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Of a graph with names for sizes, `sizes` are some that it is run at."""
        self.graph = graph
        nodes = len(graph.body)
        self._cost = sum([node_cost(node, sizes or {}) for node in graph.body])
        self._long = is_long(graph)
        self._patience = (
            nodes * (nodes // 300)
            if nodes > TUNING.huge_nodes
            else max(TUNING.interpreted_nodes, nodes)
        )
        if self._long:
            self._patience = self._cost  # what comes then is made in the time of a few runs
        if patience is Patience.RUNS:
            self._patience = max(self._patience, TUNING.huge_runs * self._cost)
        if patience is Patience.COMPILING:
            self._patience = compiling_cost(graph)
        self._brief = patience is not Patience.RUNS and self._cost <= TUNING.waiting_nodes
        self._spent = 0.0  # in nodes
        # Whether interpreting it compiles for each size, as parts of convolutions do not serve all.
        self._anew = bool(graph.dim_names) and any(isinstance(n.prim, Conv) for n in graph.body)
        self._again = False
        self._lock = own_lock()
        self._compiled: Executable | BytecodeExecutor | None = None
        self._first: Program | None = None
        if self._cost > self._patience or needs_fusion(graph, sizes or {}):
            self.compile()
        else:
            self._first = OpByOpExecutor(graph)

    @property
    def is_compiled(self) -> bool:
        """Whether it runs as native code now."""
        return self._compiled is not None

    @property
    def executable(self) -> Executable | BytecodeExecutor | None:
        """The native code, if there is any yet."""
        return self._compiled

    def compile(self) -> Executable | BytecodeExecutor:
        """The native code, made now if there is none yet."""
        with self._lock, gc_paused():
            if self._compiled is None:
                make = BytecodeExecutor if self._long else Executable
                self._compiled = make(self.graph)
                self._first = None
            return self._compiled

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        compiled = self._compiled
        if compiled is not None:
            return compiled(arrays)
        with BEHIND.held():
            if self._spent >= self._patience:
                return self.compile()(arrays)
            return self._interpreted(arrays)

    def for_now(self, arrays: Sequence[Array]) -> list[Array]:
        """The same, but it is not compiled now: it will soon be part of another program."""
        if self._compiled is not None:
            return self._compiled(arrays)
        with BEHIND.held():
            return self._interpreted(arrays)

    def _interpreted(self, arrays: Sequence[Array]) -> list[Array]:
        first = self._first
        if first is None:
            return self.compile()(arrays)
        start, made = time.perf_counter(), COMPILED["programs"]
        results = first(arrays)
        self._spent += self._cost
        made = COMPILED["programs"] - made
        if self._anew:
            self._spent += made * TUNING.compiled_product
        if self._brief:
            if self._again and not made:  # what is made once does not count
                self._spent += (time.perf_counter() - start) / TUNING.node_s
            self._again = True
            BEHIND.ran(self)
        return results


def compiling_cost(graph: Graph) -> int:
    """What compiling a program of a few nodes costs, in nodes that are interpreted."""
    products = [n for n in graph.body if isinstance(n.prim, DotGeneral | Conv)]
    named = sum([not n.type.is_static for n in products])
    return max(
        TUNING.interpreted_nodes,
        TUNING.compiled_node * len(graph.body)
        + TUNING.compiled_product * (len(products) - named)
        + TUNING.compiled_named_product * named,
    )


def needs_fusion(graph: Graph, sizes: Mapping[str, int]) -> bool:
    """Whether an array inside, which a compiled program may never store, is so large next to what
    is given and returned that interpreting even once takes memory that nobody expects."""

    def most(nodes: Iterable[Node]) -> int:
        types = [x.type for x in nodes if x.type.dim_names <= sizes.keys()]
        return max([evaluate(t.size, sizes) * t.dtype.dtype.itemsize for t in types], default=0)

    inside = most(graph.body)
    if inside <= TUNING.interpreted_bytes:
        return False
    return inside > TUNING.interpreted_growth * most([*graph.inputs, *graph.outputs])


def node_cost(node: Node, sizes: Mapping[str, int]) -> int:
    """What interpreting a node costs, in nodes."""
    types = [x.type for x in (node, *node.inputs)]
    if not all(t.is_static or t.dim_names <= sizes.keys() for t in types):
        return 1
    work = evaluate(node.type.size, sizes)
    if isinstance(node.prim, DotGeneral):
        work *= math.prod([evaluate(node.inputs[0].shape[i], sizes) for i in node.prim.a_contract])
        work //= 16
    if isinstance(node.prim, Draw):
        return (
            TUNING.draw_nodes
            + work * TUNING.draw_operations * node.prim.formula.proposals // TUNING.node_elements
        )
    if isinstance(node.prim, Conv):
        work *= math.prod([evaluate(d, sizes) for d in node.inputs[1].shape[1:]])
        places, kernel = node.type.shape[2:], node.inputs[1].shape[2:]
        windows = (*node.inputs[0].shape[:2], *places, *kernel)  # are laid out
        work = max(work // 16, math.prod([evaluate(d, sizes) for d in windows]))
    return 1 + work // TUNING.node_elements


def tiered(graph: Graph, patience: Patience, optimize: Callable[[Graph], Graph]) -> Program:
    """A tiered program for a graph, which it shares with others that differ in sizes alone; that of
    a call has names where it is to have any."""
    if patience is Patience.COMPILING:
        return TieredProgram(optimize(graph), patience)

    def make(named: Graph, sizes: dict[str, int]) -> Program:
        return TieredProgram(optimize(named), patience, sizes)

    try:
        found = skeleton(graph)
    except Unlike:
        return TieredProgram(optimize(graph), patience)
    program = family_of(found.key).program(graph, found, make)
    return program or TieredProgram(optimize(graph), patience)
