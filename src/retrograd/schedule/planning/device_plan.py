"""The plan of a graph for a device: kernels over buffers, as for a processor, without what is there
for caches and registers of one (tile groups, copies of matrices in the order of registers)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from retrograd.ir import Dim, Graph, Node, evaluate
from retrograd.passes.lowering.fft import PRODUCTS
from retrograd.passes.rewrite import rewrite
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import Memory, flat, hidden_names, regions_of
from retrograd.schedule.fusion import UPDATES
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.memory.aliasing import is_check, take_inputs, update_temporaries
from retrograd.schedule.memory.arena import ArenaLayout, Lifetime, layout
from retrograd.schedule.planning.build import PlanBuilder
from retrograd.schedule.planning.plan import lifetimes, may_end
from retrograd.schedule.shape_checks import Sizes


class DevicePlanBuilder(PlanBuilder):
    """Leaves matrices as they are, and does without routines for Fourier transforms."""

    packs = False

    def prepared(self, graph: Graph) -> Graph:
        return rewrite(graph, PRODUCTS)


class DevicePlan:
    """The kernels of a graph, in order, and its buffers; like `KernelPlan`. `bytes_of` says what a
    buffer takes on the device, whose memory is given out in multiples of `alignment`. Of the inputs
    of `donate`, those that outputs may overwrite become their buffers: `donated` maps such outputs
    to inputs. The first `checked` kernels, with all checks among them, overwrite none."""

    builder: type[PlanBuilder] = DevicePlanBuilder

    def __init__(
        self,
        graph: Graph,
        alignment: int,
        bytes_of: Callable[[Buffer], int | Dim] = lambda buffer: buffer.bytes,
        donate: Collection[int] = (),
    ) -> None:
        self.source = graph
        self.bytes_of = bytes_of
        self._alignment = alignment
        self.inputs = [Buffer("input", k, x.type, x) for k, x in enumerate(graph.inputs)]
        self.outputs = [Buffer("output", k, y.type, y) for k, y in enumerate(graph.outputs)]
        self.memory = Memory()
        block = self.builder(graph, self.inputs, self.outputs, self.memory)
        self.kernels: list[Kernel] = block.kernels
        if any(isinstance(k.nodes[0].prim, tuple(UPDATES)) for k in self.kernels):
            update_temporaries(self.kernels)
        self.donated: dict[int, int] = {}
        if donate:
            self.donated = take_inputs(self.kernels, self.inputs, self.outputs, donate)
        checks = [at for at, k in enumerate(self.kernels) if is_check(k)]
        self.checked = max(checks, default=-1) + 1
        self.every = list(flat(self.kernels))  # those that regions run included
        self.checks: list[Node] = [n for k in self.every for n in k.nodes if may_end(n)]
        self.numbers = {n: i for i, n in enumerate(self.checks, 1)}
        self.hidden = hidden_names(self.kernels)
        self.dynamic = {b for k in self.every for r in regions_of(k) for b in r.dynamic}
        self._sizes = Sizes(graph)

    def check_sizes(self, sizes: Mapping[str, int]) -> None:
        """Raises `ShapeError` where the sizes make no sense for an op."""
        self._sizes.check(sizes)

    def number_of(self, kernel: Kernel) -> int:
        """The number of the check of a kernel, counted from 1; 0 for one that has none."""
        return next((c for n in kernel.nodes if (c := self.numbers.get(n))), 0)

    def layout(
        self,
        sizes: Mapping[str, int],
        scratch: Sequence[tuple[int, Buffer]] = (),
        moved: Mapping[int, int] = MappingProxyType({}),
    ) -> ArenaLayout:
        """Where temporaries lie in the arena. `scratch` are buffers that kernels work in, with the
        position of the kernel in the plan; `moved` the positions of kernels that are done at the
        time of an earlier one."""
        timed = sorted(
            [(moved.get(at, at), k) for at, k in enumerate(self.kernels)], key=lambda x: x[0]
        )
        times = lifetimes(timed, lambda b: b.kind == "temporary" and b not in self.dynamic)
        lives = [Lifetime(b, *when, self.bytes_of(b)) for b, when in times.items()]
        lives += [Lifetime(b, (t,), (t, 1 << 60), self.bytes_of(b)) for t, b in scratch]
        return layout(sorted(lives, key=lambda life: life.first), sizes, self._alignment)

    def arrays(self, sizes: Mapping[str, int]) -> list[tuple[int, str]]:
        """The bytes of each array that a call makes, and what it is."""
        known = {**dict.fromkeys(self.hidden, 1), **sizes}
        made = [*self.inputs, *self.outputs, *self.memory.temporaries]
        return [(evaluate(self.bytes_of(b), known), f"{b.kind} {b.node.describe()}") for b in made]
