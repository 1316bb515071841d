"""The kernel plan: a graph as a list of kernels over buffers, for emitters to print.

A kernel computes one stored node by one or a few loop nests, from buffers to a buffer. Kernels run
in order. Nothing here depends on the machine or on the language that an emitter writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retrograd.backends.kernel.body import Body, Value
from retrograd.backends.kernel.buffer import Buffer
from retrograd.backends.kernel.fuse import Fusion, is_buffer
from retrograd.backends.kernel.legalize import legalize
from retrograd.backends.kernel.maps import Reader
from retrograd.backends.kernel.memory import Layout, Lifetime, layout
from retrograd.backends.kernel.nests import Lowering, Nest, Store, collapse, loops_over
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, evaluate, product


@dataclass(slots=True)
class Kernel:
    """Loop nests that together compute one stored node."""

    node: Node
    nests: list[Nest]
    out: Buffer
    reads: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        found: dict[Buffer, None] = {}
        for nest in self.nests:
            for v in live(nest):
                if v.op == "load":
                    found[v.attr] = None
            for buffer in nest.info.get("buffers", ())[:2]:
                found[buffer] = None
        self.reads = list(found)


def roots(nest: Nest) -> list[Value]:
    """The values that a nest is there for."""
    found = [v for s in nest.stores for v in (s.offset, s.value)]
    for item in nest.info.values():
        if isinstance(item, Value):
            found.append(item)
        elif isinstance(item, tuple):
            found.extend(v for v in item if isinstance(v, Value))
    return found


def live(nest: Nest) -> list[Value]:
    """The values of a nest's body that are used, in order."""
    seen = set(roots(nest))
    todo = list(seen)
    while todo:
        for a in todo.pop().args:
            if a not in seen:
                seen.add(a)
                todo.append(a)
    return [v for v in nest.body.values if v in seen]


class Plan:
    """The kernels of a graph, its buffers, and the lifetimes of the temporaries.

    `outputs[k]` is the buffer of the graph's k-th output; `constants` are arrays the program keeps.
    """

    def __init__(self, graph: Graph) -> None:
        self.source = graph
        self.graph = legalize(graph)
        self.buffers: dict[Node, Buffer] = {}
        self.inputs: list[Buffer] = []
        self.outputs: list[Buffer] = []
        self.constants: list[Buffer] = []
        self.temporaries: list[Buffer] = []
        self.kernels: list[Kernel] = []
        stored = Fusion(self.graph).stored
        copies = self._make_buffers(stored)
        for node in stored:
            out = self.buffers[node]
            self.kernels.append(Kernel(node, Lowering(node, self.buffers).nests(), out))
        for node, buffer in copies:
            self.kernels.append(Kernel(node, [self._copy(node, buffer)], buffer))
        self.lifetimes = self._lifetimes()
        self.checks = [k.node for k in self.kernels if k.node.op == "check_index"]
        # Ops whose validity depends on the values of symbolic sizes.
        self.sized = [
            n for n in graph.nodes if n.op in ("slice", "pad", "reduce_max", "reduce_min",
                                               "argmax", "argmin") and has_dims(n)
        ]  # fmt: skip

    def _make_buffers(self, stored: list[Node]) -> list[tuple[Node, Buffer]]:
        """A buffer for every stored node; returns outputs that have to be copied from elsewhere."""
        for node in self.graph.inputs:
            self._new("input", self.inputs, node)
        for node in self.graph.nodes[len(self.inputs) :]:
            if is_buffer(node):
                self._new("constant", self.constants, node)
        copies = []
        for k, node in enumerate(self.graph.outputs):
            buffer = Buffer("output", k, node.type, node)
            self.outputs.append(buffer)
            if node in self.buffers:
                copies.append((node, buffer))
            else:
                self.buffers[node] = buffer
        for node in stored:
            if node not in self.buffers:
                self._new("temporary", self.temporaries, node)
        return copies

    def _new(self, kind: str, numbered: list[Buffer], node: Node) -> None:
        buffer = Buffer(kind, len(numbered), node.type, node)
        numbered.append(buffer)
        self.buffers[node] = buffer

    def _copy(self, node: Node, buffer: Buffer) -> Nest:
        body = Body()
        loops, index = loops_over(body, node.shape)
        value = Reader(body, self.buffers).read(node, index)
        store = Store(buffer, body.offset(index, node.shape), value)
        return collapse(Nest("map", loops, body, [store]))

    def _lifetimes(self) -> list[Lifetime]:
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for k, kernel in enumerate(self.kernels):
            first.setdefault(kernel.out, k)
            for buffer in (kernel.out, *kernel.reads):
                last[buffer] = k
        return [Lifetime(b, first[b], last[b]) for b in self.temporaries]

    def layout(self, sizes: Mapping[str, int]) -> Layout:
        """Place the temporaries for the given sizes; raises `ShapeError` where they make no sense
        for an op."""
        for node in self.sized:
            check_sizes(node, sizes)
        return layout(self.lifetimes, sizes)

    def peak_bytes(self, sizes: Mapping[str, int], placed: Layout | None = None) -> int:
        """Bytes that a call allocates: the arena and the outputs."""
        arena = (placed or self.layout(sizes)).arena
        return arena + sum(evaluate(b.bytes, sizes) for b in self.outputs)

    def explain(self, sizes: Mapping[str, int] | None = None) -> str:
        """The kernels, one a line: result, loops, what was fused, bytes and operations."""
        lines = [
            f"{len(self.kernels)} kernels for {len(self.source)} nodes; buffers: "
            f"{len(self.inputs)} inputs, {len(self.outputs)} outputs, "
            f"{len(self.constants)} constants, {len(self.temporaries)} temporaries"
        ]
        for k, kernel in enumerate(self.kernels):
            lines.append(f"{k:4}  " + describe(kernel, sizes))
        return "\n".join(lines)


def has_dims(node: Node) -> bool:
    """Whether a symbolic size occurs in a node's attributes or in the types it touches."""
    values = [v for a in node.attrs.values() for v in (a if isinstance(a, tuple) else (a,))]
    types = [node.type, *(x.type for x in node.inputs)]
    return any(isinstance(v, Dim) for v in values) or not all(t.is_static for t in types)


def check_sizes(node: Node, sizes: Mapping[str, int]) -> None:
    """Infer the type of a node again with all sizes known."""
    found = node.prim.bind(sizes).infer(*[x.type.bind(sizes) for x in node.inputs])
    if found != node.type.bind(sizes):
        raise ShapeError(f"with the sizes {dict(sizes)} the result is {found}: {node.describe()}")


def describe(kernel: Kernel, sizes: Mapping[str, int] | None = None) -> str:
    """One line on a kernel."""
    node, nest = kernel.node, kernel.nests[-1]
    ops: dict[str, int] = {}
    work: int | Dim = 0
    for n in kernel.nests:
        own = [v for v in live(n) if v.op not in INDEXING]
        for v in own:
            ops[v.op] = ops.get(v.op, 0) + 1
        inner = sum(1 for v in own if v.depth == max(own_depth(n), 1))
        steps = product(n.loops if n.kind != "row" else n.loops[:-1])
        if n.kind == "gemm":
            steps, inner = product((*n.loops, *(n.info[s].attr for s in "mnk"))), 2
        work = work + steps * max(inner, 1)
    traffic: int | Dim = sum((b.bytes for b in kernel.reads), kernel.out.bytes)
    if sizes is not None:
        work, traffic = evaluate(work, sizes), evaluate(traffic, sizes)
    fused = " ".join(f"{op}*{n}" if n > 1 else op for op, n in ops.items())
    name = node.name or f"%{node.id}"
    domain = " x ".join(map(str, nest.loops)) or "1"
    return (
        f"{nest.kind:7} {name}: {node.type} = {node.op} [{domain}] "
        f"{fused or 'copy'}; {traffic} bytes, {work} operations"
    )


def own_depth(nest: Nest) -> int:
    """Depth of the innermost values of a nest."""
    return len(nest.loops)


INDEXING: frozenset[Any] = frozenset(
    "loop size iadd isub imul idiv imod ilt ige isel const load".split()
)


def make_plan(graph: Graph) -> Plan:
    """The kernel plan of a graph."""
    return Plan(graph)
