"""What the emitters of a program's functions know of the module that they write into: the slots of
its block, the functions that are there already, and how to get one for a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.launch_layout import STATUS_SLOTS
from retrograd.codegen.program.stop_points import is_stoppable
from retrograd.codegen.target import Target
from retrograd.ir import Dim
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling.groups import TileGroup


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
    check, or 0; `constants` are words behind the slots, see `merge_functions.py`."""

    function: int
    arguments: list[Buffer | Dim]
    check: int
    number: int  # of the kernel
    region: bool = False  # its result says itself what failed
    polls: bool = False  # it looks now and then if the run is to stop
    constants: Sequence[int] = ()

    @property
    def slots(self) -> int:
        """How many slots it is called with."""
        return len(self.arguments) + (self.check > 0) + self.polls


class ModuleContext(ABC):
    """The part of a module that does not depend on how control flow is written: emitters of regions
    and of launch tables get it, and the module that knows all emitters fills it in."""

    def __init__(self, plan: KernelPlan, machine: Target, timed: bool) -> None:
        self.plan = plan
        self.machine = machine
        self.timed = timed  # count the cycles of each kernel, in a table behind the status
        self.slots = Slots(plan)
        self.declarations: dict[str, None] = {}
        self.functions: dict[str, int] = {}  # bodies, numbered
        self.loops: list[int] = []  # regions whose tile groups threads share
        self.stoppable = is_stoppable(plan)
        # Whether loops look between two steps if they are to stop. Not where a run may already have
        # overwritten what was given away: it has to be done then.
        self.polls = self.stoppable
        self.calls: list[list[KernelCall]] = []  # of each tile group
        self.inner_calls: dict[int, KernelCall] = {}  # of kernels that regions run, by `id`
        self.region_dims: dict[int, set[Dim]] = {}  # sizes that regions read, by `id`
        self.parts: list[str] = []  # functions that are no kernels

    @abstractmethod
    def inner(self, kernel: Kernel, group: TileGroup | None = None) -> KernelCall:
        """The function of a kernel that a region runs, and what it is called with."""

    @abstractmethod
    def table(self, tile_groups: list[TileGroup]) -> str:
        """The name of the table of tile groups that threads share, inside of a loop."""

    @abstractmethod
    def level(self, w: FunctionBuilder, local: Sequence[Buffer]) -> str:
        """The name of the table of a level of a graph, whose nodes threads share: a function, as it
        was written, is called for some of them."""

    def made(self, kernel: Kernel) -> KernelCall:
        """What `inner` has said."""
        return self.inner_calls[id(kernel)]

    def dims_of(self, kernel: Kernel) -> set[Dim]:
        """The sizes that a kernel inside of a region reads from the block."""
        own = self.inner_calls[id(kernel)].arguments
        return self.region_dims.get(id(kernel), set()) | {d for d in own if isinstance(d, Dim)}

    def function(self, w: FunctionBuilder, arguments: str) -> str:
        """The name of the function that was written."""
        name = f"part{len(self.parts)}"
        self.parts.append(f"define internal i64 @{name}({arguments}) #0 {{\n{w.text()}\n}}")
        return name

    def declare(self, function: str) -> None:
        self.declarations[function] = None
