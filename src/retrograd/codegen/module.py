"""The text of the LLVM module of a plan: kernels, and the function that runs them in order.

`run(block, thread, threads, team)` gets one array of 8-byte slots: addresses of the buffers and
values of the sizes, then the status, the address of a table of times, a word that is not 0 when
the run is to stop, and the address of that word. Every thread of a team calls it with the same
block. It returns 0, or the number of the index check that failed, counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit import gemm_call, reduce, scan, scatter
from retrograd.codegen.emit.control_flow import ControlFlowEmitter
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.parallel_control_flow import TEAM, ParallelControlFlowEmitter
from retrograd.codegen.emit.register_scan import RegisterScanEmitter, of_numbers
from retrograd.codegen.kernel_key import KernelKey
from retrograd.codegen.launch_layout import FIRST_AT, NODES_AT, STATUS_SLOTS, STOP_AT
from retrograd.codegen.launch_table import (
    DRIVE,
    LaunchTable,
    first_overwriting,
    is_stoppable,
    takes_long,
    words,
)
from retrograd.codegen.libcalls import invoke
from retrograd.codegen.sort import sort
from retrograd.codegen.target import Target
from retrograd.ir import Dim, Graph, Node
from retrograd.ops.leaf import input_node
from retrograd.runtime.denormals import exactly
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import LoopNest
from retrograd.schedule.plan import KernelPlan
from retrograd.schedule.tiling.groups import TileGroup
from retrograd.shared import IMPORTING

if TYPE_CHECKING:
    from retrograd.runtime.compiler import Compiler, LoadedCode


ARGUMENTS = "ptr %block, ptr %slots, i64 %lo, i64 %hi"  # of a kernel, see launch_layout.py
ATTRIBUTES = """attributes #0 = { noinline nounwind }
attributes #1 = { nounwind willreturn memory(none) }"""
NESTS: dict[str, Callable[[KernelEmitter, LoopNest], None]] = {
    "map": reduce.mapping,
    "row": reduce.reduction,
    "column": reduce.reduction,
    "arg": reduce.argument,
    "scan": scan.scan,
    "along": scan.along,
    "scatter": scatter.scatter,
    "sums": scatter.sums,
    "settle": scatter.settle,
    "sort": sort.sort,
    "argsort": sort.argsort,
    "search": sort.search,
    "check": scatter.check,
    "gemm": gemm_call.gemm,
    "call": invoke.call,
}


class Slots:
    """Which slot of the block holds what."""

    def __init__(self, plan: KernelPlan) -> None:
        self.sizes: dict[Dim, int] = {}
        self._starts: dict[str, int] = {}  # by the kind of buffers
        self.first_size = 0
        self.closed = False  # no more sizes, as what comes behind them has been numbered
        for kind, buffers in (
            ("input", plan.inputs),
            ("output", plan.outputs),
            ("constant", plan.constants),
            ("temporary", plan.temporaries),
            ("cursor", plan.cursors),
        ):
            self._starts[kind] = self.first_size
            self.first_size += len(buffers)

    def of(self, what: Buffer | Dim) -> int:
        if isinstance(what, Dim):
            assert not self.closed or what in self.sizes, f"{what} has no slot"
            return self.first_size + self.sizes.setdefault(what, len(self.sizes))
        return self._starts[what.kind] + what.number

    @property
    def status(self) -> int:
        return self.first_size + len(self.sizes)

    @property
    def count(self) -> int:
        return self.status + STATUS_SLOTS


@dataclass(frozen=True, slots=True)
class KernelCall:
    """The number of a kernel's function, and its arguments. `check` is the number of an index
    check, or 0."""

    function: int
    arguments: list[Buffer | Dim]
    check: int
    number: int  # of the kernel
    region: bool = False  # its result says itself what failed
    polls: bool = False  # it looks now and then if the run is to stop


class ModuleEmitter:
    """Collects declarations and functions; equal kernels become one function."""

    def __init__(self, plan: KernelPlan, machine: Target, timed: bool = False) -> None:
        self.plan = plan
        self.machine = machine
        self.timed = timed  # count the cycles of each kernel, in a table behind the status
        self.slots = Slots(plan)
        self.declarations: dict[str, None] = {}
        self.functions: dict[str, int] = {}  # bodies, numbered
        # By what tells kernels apart: their function, and the arguments as places among buffers.
        self._known: dict[tuple[Any, ...] | None, tuple[int, list[int | Dim]]] = {}
        self._checks = {n: i for i, n in enumerate(plan.checks, 1)}
        top = {id(k) for k in plan.kernels}
        inside = [k for k in plan.every if id(k) not in top]
        self._numbers = {id(k): i for i, k in enumerate([*plan.kernels, *inside])}
        self._calls: dict[int, KernelCall] = {}  # of kernels that regions run, by `id`
        self._dims: dict[int, set[Dim]] = {}  # sizes that regions read from the block, by `id`
        self._parts: list[str] = []  # functions that are no kernels
        self.loops: list[int] = []  # regions whose bands threads share
        self._tables: list[Callable[[LaunchTable], str]] = []  # what regions refer to
        self.stoppable = is_stoppable(plan)
        # Whether loops look between two steps if they are to stop. Not where a run may already have
        # overwritten what was given away: it has to be done then.
        self.polls = self.stoppable
        self.calls: list[list[KernelCall]] = []  # of each band
        over = first_overwriting(plan)
        for number, band in enumerate(plan.bands):
            self.polls = self.polls and number != over
            for size in band.sizes:
                self.slots.of(size)
            self.calls.append([self._call(kernel, band) for kernel in band.kernels])

    def _call(self, kernel: Kernel, band: TileGroup) -> KernelCall:
        """The function of a kernel, and what it is called with."""
        check = next((c for n in kernel.nodes if (c := self._checks.get(n))), 0)
        number = self._numbers[id(kernel)]
        if band.together:
            return self._together(kernel, band, check, number)
        if regions_of(kernel):
            w: ControlFlowEmitter | RegisterScanEmitter
            if all(map(of_numbers, regions_of(kernel))):
                w = RegisterScanEmitter(self, self.polls)
            else:
                w = ControlFlowEmitter(self, check, self.polls)
            text = w.write_region(kernel)
            self._dims[id(kernel)] = w.dims
            return KernelCall(
                self.functions.setdefault(text, len(self.functions)), [], 0, number, True
            )
        polls = self.polls and takes_long(kernel, band)
        function, parameters = self._kernel(kernel, band, check > 0, polls)
        for p in parameters:
            self.slots.of(p)  # sizes get their slots
        return KernelCall(function, parameters, check, number, polls=polls)

    def _together(self, kernel: Kernel, band: TileGroup, check: int, number: int) -> KernelCall:
        """A region whose bands threads share."""
        w = ParallelControlFlowEmitter(self, check, self.polls, band.local)
        text = w.write_region(kernel)
        self._dims[id(kernel)] = w.dims
        self._parts.append(f"define internal i64 @loop{number}({TEAM}) #0 {{\n{text}\n}}")
        self.loops.append(number)
        return KernelCall(0, [], 0, number, True)

    def table(self, bands: list[TileGroup]) -> str:
        """The name of the table of bands that threads share, inside of a loop."""
        calls = [[self.inner(k, band) for k in band.kernels] for band in bands]
        for band in bands:
            for size in band.sizes:
                self.slots.of(size)
        name, polls = f"table{len(self._tables)}", self.polls
        self._tables.append(lambda d: words(name, d.table_of(bands, calls, polls)))
        return name

    def level(self, w: FunctionBuilder, local: Sequence[Buffer]) -> str:
        """The name of the table of a level of a graph, whose nodes threads share: a function, as it
        was written, is called for some of them."""
        function = self.functions.setdefault(w.text(), len(self.functions))
        name, polls = f"table{len(self._tables)}", self.polls
        self._tables.append(lambda d: words(name, d.level_table(function, local, polls)))
        return name

    def made(self, kernel: Kernel) -> KernelCall:
        """What `inner` has said."""
        return self._calls[id(kernel)]

    def inner(self, kernel: Kernel, band: TileGroup | None = None) -> KernelCall:
        """The same of a kernel that a region runs."""
        call = self._calls[id(kernel)] = self._call(kernel, band or TileGroup([kernel]))
        return call

    def dims_of(self, kernel: Kernel) -> set[Dim]:
        """The sizes that a kernel inside of a region reads from the block."""
        own = self._calls[id(kernel)].arguments
        return self._dims.get(id(kernel), set()) | {d for d in own if isinstance(d, Dim)}

    def part(self, w: ControlFlowEmitter, kernels: Sequence[Kernel]) -> str:
        """A function that runs kernels in order, and its name."""
        w.run(kernels)
        w.line("ret i64 0")
        return self.function(w, "ptr %block")

    def function(self, w: ControlFlowEmitter, arguments: str) -> str:
        """The name of the function that was written."""
        name = f"part{len(self._parts)}"
        self._parts.append(f"define internal i64 @{name}({arguments}) #0 {{\n{w.text()}\n}}")
        return name

    def declare(self, function: str) -> None:
        self.declarations[function] = None

    def _kernel(
        self, kernel: Kernel, band: TileGroup, checking: bool, polls: bool
    ) -> tuple[int, list[Buffer | Dim]]:
        """The number of a kernel's function, and the arguments."""
        like = KernelKey(kernel, band.rows, band.sums(kernel), polls)
        if like.key in self._known:
            number, places = self._known[like.key]
            buffers = list(like.buffers)
            return number, [buffers[p] if isinstance(p, int) else p for p in places]
        number, arguments = self._write(kernel, band, checking, polls)
        if like.key is not None:
            places = [p if isinstance(p, Dim) else like.buffers[p] for p in arguments]
            self._known[like.key] = number, places
        return number, arguments

    def _write(
        self, kernel: Kernel, band: TileGroup, checking: bool, polls: bool
    ) -> tuple[int, list[Buffer | Dim]]:
        summing, light = band.sums(kernel), self.plan.light
        w = KernelEmitter(self.declare, self.machine, band.rows, summing, light, polls)
        for nest in kernel.nests:
            NESTS[nest.kind](w, nest)
        w.line("ret i64 0")
        w.find_parameters(checking)
        number = self.functions.setdefault(w.text(), len(self.functions))
        return number, list(w.parameters)

    @property
    def symbols(self) -> list[str]:
        """The functions under names of our own that must be found outside of the module."""
        return symbols_of(self.declarations)

    def text(self) -> str:
        self.slots.closed = True
        driver = LaunchTable(self)
        runs = driver.text()
        parts = heads_of(self.declarations)
        for body, number in self.functions.items():
            parts.append(f"define internal i64 @k{number}({ARGUMENTS}) #0 {{\n{body}\n}}")
        parts += self._parts
        if (
            self._dims or self._calls
        ):  # regions refer to slots that are numbered once all sizes are known
            places = {
                "{status}": str(self.slots.status),
                "{stop}": str(self.slots.status + STOP_AT),
                "{first}": str(self.slots.status + FIRST_AT),
                "{nodes}": str(self.slots.status + NODES_AT),
            }
            for key, place in places.items():
                parts = [part.replace(key, place) for part in parts]
            parts += [driver.slots_of(call, "inner") for call in self._calls.values()]
            parts += [write(driver) for write in self._tables]
        parts += runs
        parts.append(ATTRIBUTES)
        return "\n".join(parts) + "\n"


def heads_of(declarations: Iterable[str]) -> list[str]:
    """What the text of a module begins with: helper functions and tables come with their
    definitions, anything else is found outside."""
    return [d if d.startswith(("define", "@")) else "declare " + d for d in declarations]


def symbols_of(declarations: Iterable[str]) -> list[str]:
    """The functions under names of our own that must be found outside: `rg_fmod` of
    `double @rg_fmod(double, double)`."""
    found = [d for d in declarations if not d.startswith(("define", "@")) and "@rg_" in d]
    return [d[d.index("@") + 1 : d.index("(")] for d in found]


Kind = Hashable
# A function, and what it is called with: the number of an operand, or -1 for the result.
Step = tuple[int, list[int]]


def kind_of(node: Node) -> Kind:
    return node.prim, tuple([x.type for x in node.inputs])


class Steps:
    """The functions of all kinds that one kernel computes without memory of its own. `of` lists
    these kinds."""

    def __init__(self, kinds: Iterable[tuple[Kind, Node]]) -> None:
        self.of: dict[Kind, Step] = {}
        self._declarations: dict[str, None] = {}
        self._functions: dict[str, int] = {}
        # llvmlite is loaded when first needed, see engine.py.
        with IMPORTING:
            from retrograd.runtime.compiler import engine

        self._compiler: Compiler = engine()
        with exactly():
            for kind, node in kinds:
                self._add(kind, node)
            self.code: LoadedCode | None = self._compiled() if self.of else None

    def _add(self, kind: Kind, node: Node) -> None:
        inputs = [input_node(x.type) for x in node.inputs]
        plan = KernelPlan(Graph(inputs, [node.prim(*inputs)]), light=True)
        if len(plan.kernels) != 1 or plan.temporaries or plan.constants or plan.checks:
            return
        (kernel,) = plan.kernels
        if any("region" in nest.info or nest.kind == "call" for nest in kernel.nests):
            return
        w = KernelEmitter(self._declare, self._compiler.machine, light=True)
        for nest in kernel.nests:
            NESTS[nest.kind](w, nest)
        w.line("ret i64 0")
        w.find_parameters(False)
        number = self._functions.setdefault(w.text(), len(self._functions))
        places = {b: k for k, b in enumerate(plan.inputs)} | dict.fromkeys(plan.outputs, -1)
        self.of[kind] = number, [places[p] for p in w.parameters]  # type: ignore[index]

    def _declare(self, function: str) -> None:
        self._declarations[function] = None

    def _compiled(self) -> LoadedCode:
        self._declare(DRIVE)
        parts = heads_of(self._declarations)
        for text, number in self._functions.items():
            parts.append(f"define internal i64 @k{number}({ARGUMENTS}) #0 {{\n{text}\n}}")
        listed = ", ".join([f"ptr @k{n}" for n in self._functions.values()])
        given = "ptr %block, i64 1, ptr null, ptr %table, ptr @kernels"
        parts += [
            f"@kernels = internal constant [{len(self._functions)} x ptr] [{listed}]",
            "define i64 @run(ptr %block, i64 %thread, i64 %threads, ptr %table) nounwind {",
            f"  %result = tail call i64 @rg_drive({given})\n  ret i64 %result\n}}",
            ATTRIBUTES,
        ]
        return self._compiler.compile("\n".join(parts) + "\n", symbols_of(self._declarations))
