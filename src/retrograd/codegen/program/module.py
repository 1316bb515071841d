"""The text of the LLVM module of a plan: kernels, and the function that runs them in order.

`run(block, thread, threads, team)` gets one array of 8-byte slots: addresses of the buffers and
values of the sizes, then the status, the address of a table of times, a word that is not 0 when the
run is to stop, and the address of that word. The caller's thread calls it; workers of the thread
pool take part in what it shares. It returns 0, or the number of the index check that failed,
counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit import gemm_call, reduce, scan, scatter  # noqa: F401  (by kind of nest)
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.nest_emitters import NESTS
from retrograd.codegen.kernel_key import KernelKey
from retrograd.codegen.launch_layout import FIRST_AT, NODES_AT, STOP_AT
from retrograd.codegen.libcalls import invoke  # noqa: F401
from retrograd.codegen.program.control_flow import ControlFlowEmitter
from retrograd.codegen.program.launch_table import LaunchTable, words
from retrograd.codegen.program.merge_functions import merge_functions
from retrograd.codegen.program.module_context import KernelCall, ModuleContext
from retrograd.codegen.program.parallel_control_flow import TEAM, ParallelControlFlowEmitter
from retrograd.codegen.program.register_scan import RegisterScanEmitter, of_numbers
from retrograd.codegen.program.stop_points import first_overwriting, takes_long
from retrograd.codegen.sort import sort  # noqa: F401
from retrograd.codegen.target import Target
from retrograd.ir import Dim
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling.groups import TileGroup

ARGUMENTS = "ptr %block, ptr %slots, i64 %lo, i64 %hi"  # of a kernel, see launch_layout.py
ATTRIBUTES = """attributes #0 = { noinline nounwind }
attributes #1 = { nounwind willreturn memory(none) }"""


class ModuleEmitter(ModuleContext):
    """Collects declarations and functions; equal kernels become one function."""

    def __init__(self, plan: KernelPlan, machine: Target, timed: bool = False) -> None:
        super().__init__(plan, machine, timed)
        # By what tells kernels apart: their function, and the arguments as places among buffers.
        self._known: dict[tuple[Any, ...] | None, tuple[int, list[int | Dim]]] = {}
        self._checks = {n: i for i, n in enumerate(plan.checks, 1)}
        top = {id(k) for k in plan.kernels}
        inside = [k for k in plan.every if id(k) not in top]
        self._numbers = {id(k): i for i, k in enumerate([*plan.kernels, *inside])}
        self._tables: list[Callable[[LaunchTable], str]] = []  # what regions refer to
        over = first_overwriting(plan)
        for number, group in enumerate(plan.tile_groups):
            self.polls = self.polls and number != over
            for size in group.sizes:
                self.slots.of(size)
            self.calls.append([self._call(kernel, group) for kernel in group.kernels])
        if not (self.region_dims or self.inner_calls or self._tables or self.parts):
            self.functions, self.calls = merge_functions(self.functions, self.calls)

    def _call(self, kernel: Kernel, group: TileGroup) -> KernelCall:
        """The function of a kernel, and what it is called with."""
        check = next((c for n in kernel.nodes if (c := self._checks.get(n))), 0)
        number = self._numbers[id(kernel)]
        if group.is_region:
            return self._together(kernel, group, check, number)
        if regions_of(kernel):
            w: ControlFlowEmitter | RegisterScanEmitter
            if all(map(of_numbers, regions_of(kernel))):
                w = RegisterScanEmitter(self, self.polls)
            else:
                w = ControlFlowEmitter(self, check, self.polls)
            text = w.write_region(kernel)
            self.region_dims[id(kernel)] = w.dims
            return KernelCall(
                self.functions.setdefault(text, len(self.functions)), [], 0, number, True
            )
        polls = self.polls and takes_long(kernel, group)
        function, parameters = self._kernel(kernel, group, check > 0, polls)
        for p in parameters:
            self.slots.of(p)  # sizes get their slots
        return KernelCall(function, parameters, check, number, polls=polls)

    def _together(self, kernel: Kernel, group: TileGroup, check: int, number: int) -> KernelCall:
        """A region whose tile groups threads share."""
        w = ParallelControlFlowEmitter(self, check, self.polls, group.local)
        text = w.write_region(kernel)
        self.region_dims[id(kernel)] = w.dims
        self.parts.append(f"define internal i64 @loop{number}({TEAM}) #0 {{\n{text}\n}}")
        self.loops.append(number)
        return KernelCall(0, [], 0, number, True)

    def table(self, tile_groups: list[TileGroup]) -> str:
        """The name of the table of tile groups that threads share, inside of a loop."""
        calls = [[self.inner(k, group) for k in group.kernels] for group in tile_groups]
        for group in tile_groups:
            for size in group.sizes:
                self.slots.of(size)
        name, polls = f"table{len(self._tables)}", self.polls
        self._tables.append(lambda d: words(name, d.table_of(tile_groups, calls, polls)))
        return name

    def level(self, w: FunctionBuilder, local: Sequence[Buffer]) -> str:
        """The name of the table of a level of a graph, whose nodes threads share: a function, as it
        was written, is called for some of them."""
        function = self.functions.setdefault(w.text(), len(self.functions))
        name, polls = f"table{len(self._tables)}", self.polls
        self._tables.append(lambda d: words(name, d.level_table(function, local, polls)))
        return name

    def inner(self, kernel: Kernel, group: TileGroup | None = None) -> KernelCall:
        """The same of a kernel that a region runs."""
        call = self.inner_calls[id(kernel)] = self._call(kernel, group or TileGroup([kernel]))
        return call

    def _kernel(
        self, kernel: Kernel, group: TileGroup, checking: bool, polls: bool
    ) -> tuple[int, list[Buffer | Dim]]:
        """The number of a kernel's function, and the arguments."""
        tile = group.tile_multiple, group.max_tile_rows
        like = KernelKey(kernel, group.rows, tile, group.sums(kernel), polls)
        if like.key in self._known:
            number, places = self._known[like.key]
            buffers = list(like.buffers)
            return number, [buffers[p] if isinstance(p, int) else p for p in places]
        number, arguments = self._write(kernel, group, checking, polls)
        if like.key is not None:
            places = [p if isinstance(p, Dim) else like.buffers[p] for p in arguments]
            self._known[like.key] = number, places
        return number, arguments

    def _write(
        self, kernel: Kernel, group: TileGroup, checking: bool, polls: bool
    ) -> tuple[int, list[Buffer | Dim]]:
        summing, light = group.sums(kernel), self.plan.light
        w = KernelEmitter(self.declare, self.machine, group.rows, summing, light, polls)
        if group.rows != 0:
            w.tile_multiple, w.tile_rows = group.tile_multiple, group.max_tile_rows
        for nest in kernel.nests:
            NESTS[type(nest)](w, nest)
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
        parts += self.parts
        if (
            self.region_dims or self.inner_calls
        ):  # regions refer to slots that are numbered once all sizes are known
            places = {
                "{status}": str(self.slots.status),
                "{stop}": str(self.slots.status + STOP_AT),
                "{first}": str(self.slots.status + FIRST_AT),
                "{nodes}": str(self.slots.status + NODES_AT),
            }
            for key, place in places.items():
                parts = [part.replace(key, place) for part in parts]
            parts += [driver.slots_of(call, "inner") for call in self.inner_calls.values()]
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
