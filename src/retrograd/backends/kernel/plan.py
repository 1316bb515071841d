"""The kernel plan: a graph as a list of kernels over buffers, for emitters to print.

A kernel computes one stored node by one or a few loop nests, from buffers to a buffer. Kernels run
in order. Nothing here depends on the machine or on the language that an emitter writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from retrograd.backends.kernel.band import Band, make_bands, place_barriers
from retrograd.backends.kernel.body import Body
from retrograd.backends.kernel.buffer import ALIGNMENT, Buffer
from retrograd.backends.kernel.call import call_kernels
from retrograd.backends.kernel.cost import nanoseconds
from retrograd.backends.kernel.donation import take_inputs
from retrograd.backends.kernel.explain import describe, describe_band
from retrograd.backends.kernel.fuse import Fusion, is_buffer
from retrograd.backends.kernel.group import Group, buffers_read
from retrograd.backends.kernel.kernel import Kernel
from retrograd.backends.kernel.legalize import legalize
from retrograd.backends.kernel.lowering import Lowering, is_map
from retrograd.backends.kernel.maps import Reader
from retrograd.backends.kernel.memory import Layout, Lifetime, layout
from retrograd.backends.kernel.nest import WORK_BYTES, Nest, Store, loops_over, mapping
from retrograd.backends.kernel.recompute import recompute
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, Shape, TensorType, evaluate, spec, uint8
from retrograd.ops.leaf import input_node

GROUPS = 3  # kernels of one domain that an elementwise node may join

# Ops whose validity depends on the values of symbolic sizes.
# fmt: off
SIZED = frozenset((
    "slice", "pad", "reduce_max", "reduce_min", "argmax", "argmin", "windows", "fold", "conv",
    "max_pool", "max_pool_index", "argsort",
))
# fmt: on


CHECKS = frozenset(("check_index", "check_call"))  # nodes of kernels that may end a run


class Plan:
    """The kernels of a graph, its buffers, and the lifetimes of the temporaries.

    `outputs[k]` is the buffer of the graph's k-th output; `constants` are arrays the program keeps.
    Of the inputs listed in `donate`, those that outputs may overwrite become these outputs'
    buffers: `donated` maps such outputs to inputs. A `light` plan is for little work, where it is
    the time to compile that counts: nothing is cut into blocks, contractions are loops. Results
    are the same to the bit.
    """

    def __init__(self, graph: Graph, donate: Collection[int] = (), light: bool = False) -> None:
        self.source = graph
        self.light = light
        self.graph = legalize(graph, light)
        self.buffers: dict[Node, Buffer] = {}
        self.inputs: list[Buffer] = []
        self.outputs: list[Buffer] = []
        self.constants: list[Buffer] = []
        self.temporaries: list[Buffer] = []
        self.kernels: list[Kernel] = []
        fusion = Fusion(self.graph)
        stored, self.reasons = fusion.stored, fusion.reasons
        copies = self._make_buffers(stored)
        self._make_kernels(stored)
        for node, buffer in copies:
            self.kernels.append(Kernel([node], [self._copy(node, buffer)], [buffer]))
        self.donated = take_inputs(self.kernels, self.inputs, self.outputs, donate)
        self.bands = [Band([k]) for k in self.kernels] if light else make_bands(self.kernels)
        again = recompute(self.kernels, self.bands, self.temporaries)
        if len(again) > len(self.kernels):
            self.bands = make_bands(again)
        self.kernels = [k for band in self.bands for k in band.kernels]
        self.threaded = any(band.rows != 0 for band in self.bands)
        place_barriers(self.bands)
        self.work = self._make_work()
        self.scratch = self._make_local()
        self.lifetimes = self._lifetimes()
        self.checks = [n for k in self.kernels for n in k.nodes if n.op in CHECKS]
        self._dims = {d for n in graph.nodes for d in n.shape if isinstance(d, Dim)}
        self.sized = [n for n in graph.nodes if n.op in SIZED and has_dims(n)]

    def _make_buffers(self, stored: list[Node]) -> list[tuple[Node, Buffer]]:
        """A buffer for every stored node; returns outputs that have to be copied from elsewhere."""
        for node in self.graph.inputs:
            self._new("input", self.inputs, node)
        for node in self.graph.body:
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

    def _make_kernels(self, stored: list[Node]) -> None:
        """Lower the stored nodes in order. Elementwise nodes join an earlier kernel of their domain
        with which they share work, where what they need is there by then."""
        groups: dict[Shape, list[Group]] = {}
        made: dict[Buffer, int] = {}
        lowered: list[Kernel | Group] = []
        for node in stored:
            buffer = self.buffers[node]
            near = groups.setdefault(node.shape, []) if is_map(node) else []
            reads = buffers_read(node, self.buffers) if is_map(node) else set()
            home = next((g for g in reversed(near) if g.take(node, reads, made)), None)
            if home is not None:
                made[buffer] = home.position
                continue
            made[buffer] = len(lowered)
            if is_map(node):
                home = Group(node.shape, self.buffers, len(lowered))
                home.take(node, reads, made)
                groups[node.shape] = [*near[1 - GROUPS :], home]
                lowered.append(home)
            elif node.op == "call":
                fill = Lowering(node, self.buffers, partial(self._scratch, node)).copy_of
                kernels = call_kernels(node, self.buffers, self._temporary, fill)
                lowered += kernels
                for kernel in kernels:
                    made |= dict.fromkeys(kernel.outs, len(lowered) - 1)
            else:
                lowering = Lowering(node, self.buffers, partial(self._scratch, node), self.light)
                nests = lowering.nests()
                lowered.append(Kernel([node], nests, [buffer, *lowering.spare]))
        for item in lowered:
            if isinstance(item, Group):
                outs = [self.buffers[n] for n in item.nodes]
                item = Kernel(item.nodes, [item.nest()], outs)
            self.kernels.append(item)

    def _temporary(self, node: Node) -> Buffer:
        self._new("temporary", self.temporaries, node)
        return self.buffers[node]

    def _new(self, kind: str, numbered: list[Buffer], node: Node) -> None:
        buffer = Buffer(kind, len(numbered), node.type, node)
        numbered.append(buffer)
        self.buffers[node] = buffer

    def _scratch(self, node: Node, type: TensorType) -> Buffer:
        """Memory that the kernel of a node works in."""
        self.temporaries.append(Buffer("temporary", len(self.temporaries), type, node))
        return self.temporaries[-1]

    def _copy(self, node: Node, buffer: Buffer) -> Nest:
        body = Body()
        loops, index = loops_over(body, node.shape)
        value = Reader(body, self.buffers).read(node, index)
        store = Store(buffer, body.offset(index, node.shape), value)
        return mapping(loops, body, [store])

    def _make_work(self) -> Buffer | None:
        """The memory in which matrix products copy what they read; each thread has its own."""
        products = [n for k in self.kernels for n in k.nests if n.kind == "gemm"]
        if not products:
            return None
        self._new("temporary", self.temporaries, input_node(spec((WORK_BYTES,), uint8)))
        for nest in products:
            nest.info["work"] = self.temporaries[-1]
        return self.temporaries[-1]

    def _make_local(self) -> Layout:
        """Find the temporaries of which each thread has a block, and place them in its scratch."""
        homes: dict[Buffer, Band | None] = {}  # None where several bands touch a buffer
        for band in self.bands:
            for buffer in band.reads | band.writes:
                homes[buffer] = band if homes.get(buffer, band) is band else None
        offsets: dict[Buffer, int] = {}
        size = 0
        for band in self.bands:
            if band.rows == 0 or band.block_rows == 0:
                continue
            own = {b for b in band.writes if b.kind == "temporary" and homes[b] is band}
            own = {b for b in own if band.row_bytes(b)}
            times = lifetimes(list(enumerate(band.kernels)), own.__contains__)
            lives = [
                Lifetime(b, first, last, band.row_bytes(b) * band.block_rows)
                for b, (first, last) in times.items()
            ]
            placed = layout(lives, {})
            band.local = list(placed.offsets)
            offsets |= placed.offsets
            size = max(size, placed.arena)
        if self.work is not None:
            offsets[self.work] = size
            size += WORK_BYTES
        return Layout(offsets, size)

    def _lifetimes(self) -> list[Lifetime]:
        shared = set(self.temporaries) - self.scratch.offsets.keys()
        timed = list(enumerate(self.kernels))
        if self.threaded:
            timed = [(band.epoch, k) for band in self.bands for k in band.kernels]
        times = lifetimes(timed, shared.__contains__)
        return [Lifetime(b, first, last, b.bytes) for b, (first, last) in times.items()]

    def layout(self, sizes: Mapping[str, int]) -> Layout:
        """Place the temporaries for the given sizes; raises `ShapeError` where they make no sense
        for an op."""
        for d in self._dims:
            if evaluate(d, sizes) < 0:
                raise ShapeError(f"the size {d} is {evaluate(d, sizes)} with {dict(sizes)}")
        for node in self.sized:
            check_sizes(node, sizes)
        return layout(self.lifetimes, sizes)

    def nanoseconds(self, sizes: Mapping[str, int]) -> float:
        """A guess at the time of a call on one thread."""
        return sum(nanoseconds(k, sizes) for k in self.kernels)

    @property
    def least_bytes(self) -> int:
        """Bytes that a call allocates at least; sizes must be known."""
        made = [evaluate(b.bytes, {}) for b in self.outputs if b.kind == "output"]
        shared = [b for b in self.temporaries if b not in self.scratch.offsets]
        return sum(made) + max((evaluate(b.bytes, {}) for b in shared), default=0)

    def peak_bytes(
        self, sizes: Mapping[str, int], placed: Layout | None = None, threads: int = 1
    ) -> int:
        """Bytes that a call allocates: the arena, the threads' scratch, and the outputs."""
        arena = (placed or self.layout(sizes)).arena + self.scratch.arena * threads + ALIGNMENT
        made = [b for b in self.outputs if b.kind == "output"]
        return arena + sum(evaluate(b.bytes, sizes) for b in made)

    def explain(
        self, sizes: Mapping[str, int] | None = None, measured: Sequence[float] | None = None
    ) -> str:
        """The kernels in their bands as text; see `explain.py`. `measured` are nanoseconds."""
        head = (
            f"{len(self.kernels)} kernels for {len(self.source)} nodes; buffers: "
            f"{len(self.inputs)} inputs, {len(self.outputs)} outputs, "
            f"{len(self.constants)} constants, {len(self.temporaries)} temporaries"
        )
        lines, number = [head], 0
        for band in self.bands:
            if len(band.kernels) > 1 or band.rows != 0:
                lines.append("      " + describe_band(band))
            for kernel in band.kernels:
                why = sorted({self.reasons.get(n, "a copy for an output") for n in kernel.nodes})
                text = describe(kernel, sizes) + "; stored: " + ", ".join(why)
                if kernel.again:
                    text += "; computed again: that costs less than to keep it"
                if measured is not None:
                    text += f"; took {measured[number] / 1e3:.2f} us"
                lines.append(f"{number:4}  {text}")
                number += 1
        return "\n".join(lines)


def lifetimes(
    timed: Sequence[tuple[int, Kernel]], which: Callable[[Buffer], bool]
) -> dict[Buffer, tuple[int, int]]:
    """When buffers are first written and last read, in the order of their first time."""
    times: dict[Buffer, tuple[int, int]] = {}
    for time, kernel in timed:
        for buffer in (*kernel.outs, *kernel.reads):
            if which(buffer):
                times[buffer] = (times.get(buffer, (time,))[0], time)
    return times


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
