"""The function that runs a program's kernels: which thread runs what, and when threads wait.

The caller goes through the epochs of the plan. In an epoch, tile groups are shared: tile `b`
belongs to thread `b * threads / tiles`, roughly, unless another one has nothing else to do
before it is begun, and takes it over. The other kernels are run by the caller. It goes on to the
next epoch when all tiles are finished, and nobody has met with an index check that failed.

All this is written down in a table, which `rg_drive` follows: see `launch_layout.py`. A short
program for one thread calls its kernels itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, groupby

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.launch_layout import (
    BARRIER,
    CALLS,
    COMMIT,
    END,
    FIRST_AT,
    NODES_AT,
    OP_WORDS,
    REGION,
    STOP_AT,
    TILES,
    counted,
)
from retrograd.codegen.program.module_context import KernelCall, ModuleContext
from retrograd.codegen.program.serial_path import SerialEmitter, limits, takes_serial_path
from retrograd.codegen.program.stop_points import first_overwriting
from retrograd.ir import Dim
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.tiling.groups import TileGroup
from retrograd.tuning import TUNING

HEAD = "define i64 @run(ptr %block, i64 %thread, i64 %threads, ptr %team) nounwind {"
DRIVE = "i64 @rg_drive(ptr, i64, ptr, ptr, ptr)"


class LaunchTable:
    """Writes `run` of a module."""

    def __init__(self, module: ModuleContext) -> None:
        self.module = module
        self.plan = module.plan
        self.stoppable = module.stoppable
        self.last_stop = first_overwriting(self.plan) if self.stoppable else -1

    def text(self) -> list[str]:
        """The function, and the data that it needs."""
        module, plan = self.module, self.plan
        plain = not (plan.threaded or self.stoppable or module.timed)
        if plain and len(plan.kernels) <= TUNING.untabled_kernels:
            return self._direct([call for own in module.calls for call in own])
        module.declare(DRIVE)
        names = [f"k{n}" for n in module.functions.values()] + [f"loop{n}" for n in module.loops]
        kernels = ", ".join(f"ptr @{name}" for name in names)
        arguments = "ptr %block, i64 %threads, ptr %team, ptr @table, ptr @kernels"
        data, alone = self._alone()
        return [
            words("table", self._table()),
            f"@kernels = internal constant [{len(names)} x ptr] [{kernels}]",
            *data,
            f"{HEAD}\n{alone}  %result = tail call i64 @rg_drive({arguments})",
            "  ret i64 %result\n}",
        ]

    def _alone(self) -> tuple[list[str], str]:
        """How one thread runs a program whose sizes have names, where they are small: the data that
        it needs, and what `run` begins with."""
        module, tile_groups = self.module, self.plan.tile_groups
        shared = [group for group in tile_groups if group.rows != 0]
        most = limits(shared) if shared else {}
        short = len(self.plan.kernels) <= TUNING.untabled_kernels and not module.timed
        if most is None or not short or not self.plan.graph.dim_names:
            return [], ""
        w = SerialEmitter(module, 0, self.stoppable)
        many, few = w.label(), w.label()
        w.branch(takes_serial_path(w, most, w.load), few, many)
        w.start_block(few)
        data = []
        for group, own in zip(tile_groups, module.calls, strict=True):
            for call in own:
                if group.is_region:
                    given = "ptr %block, i64 1, ptr %team"
                    code = w.new(f"call i64 @loop{call.number}({given})")
                    w.leave_if(w.new(f"icmp ne i64 {code}, 0"), code)
                else:
                    data.append(self.slots_of(call, "slots"))
                    w.call(group, call, "slots")
        w.line("ret i64 0")
        w.start_block(many)
        stop = str(module.slots.status + STOP_AT)
        return data, w.text().replace("{stop}", stop) + "\n"

    def _direct(self, calls: Sequence[KernelCall]) -> list[str]:
        """One call after the other."""
        w = FunctionBuilder(self.module.declare)
        data = []
        for call in calls:
            data.append(self.slots_of(call, "slots"))
            given = f"ptr %block, ptr @slots{call.number}, i64 0, i64 0"
            failed = w.new(f"call i64 @k{call.function}({given})")
            if not (call.check or call.region):
                continue
            on, off = w.label(), w.label()
            w.branch(w.new(f"icmp eq i64 {failed}, 0"), on, off)
            w.start_block(off)
            w.line(f"ret i64 {failed if call.region else call.check}")
            w.start_block(on)
        w.line("ret i64 0")
        return [*data, f"{HEAD}\n{w.text()}\n}}"]

    def _table(self) -> list[int]:
        times = self.module.slots.status + 1 if self.module.timed else -1
        return self.table_of(self.plan.tile_groups, self.module.calls, self.stoppable, times)

    def table_of(
        self,
        tile_groups: Sequence[TileGroup],
        calls: Sequence[list[KernelCall]],
        stops: bool,
        times: int = -1,
    ) -> list[int]:
        """The table of these tile groups, each with the calls of its kernels."""
        table = self._head(stops, times)
        for number, operations in enumerate(self._epochs(tile_groups, calls)):
            if number:
                table += _operation(BARRIER, [])
            for operation in operations:
                table += operation
        return table + _operation(END, [])

    def level_table(self, function: int, local: Sequence[Buffer], stops: bool) -> list[int]:
        """The table of the nodes of a level of a graph, through which a function walks: rows of a
        tile group of which each thread has its own `local` buffers."""
        status = self.module.slots.status
        own = [word for b in local for word in (self.module.slots.of(b), 0)]
        cut = [-1 - (status + NODES_AT), 0, 0, 1, 1, len(local)]
        group = _operation(TILES, [*cut, *own, function, 0, 0, 1, status + FIRST_AT])
        return self._head(stops, -1) + group + _operation(END, [])

    def _head(self, stops: bool, times: int) -> list[int]:
        slots, local = self.module.slots, self.plan.scratch
        stop = slots.status + STOP_AT if stops else -1
        return [stop, times, local.arena, slots.count if local.offsets else 0, slots.status]

    def _epochs(
        self, tile_groups: Sequence[TileGroup], calls: Sequence[list[KernelCall]]
    ) -> Iterator[list[list[int]]]:
        """The operations of each epoch."""
        steps = list(zip(tile_groups, calls, count()))
        for _, inside in groupby(steps, lambda s: s[0].epoch if self.plan.threaded else 0):
            found: list[list[int]] = []
            for (shared, over), same in groupby(inside, self._kind):
                if over:
                    found.append(_operation(COMMIT, []))
                if shared:
                    for group, own, _ in same:
                        if group.is_region:
                            loop = own[0].number
                            place = len(self.module.functions) + self.module.loops.index(loop)
                            found.append(_operation(REGION, [place, loop]))
                        else:
                            found.append(_operation(TILES, self._tile_group(group, own)))
                else:
                    listed = [call for _, own, _ in same for call in own]
                    found.append(_operation(CALLS, self._calls(listed)))
            yield found

    def _kind(self, step: tuple[TileGroup, list[KernelCall], int]) -> tuple[bool, bool]:
        """Whether threads share a tile group, and whether it is the first that overwrites
        inputs."""
        return step[0].shared, step[2] == self.last_stop and step[0] is self.plan.tile_groups[
            step[2]
        ]

    def _tile_group(self, group: TileGroup, calls: Sequence[KernelCall]) -> list[int]:
        rows = -1 - self.module.slots.of(group.rows) if isinstance(group.rows, Dim) else group.rows
        blocks = group.tiles or -group.tile_rows
        if group.tile_count is not None:
            blocks = counted(self.module.slots.of(group.tile_count), group.min_tile_rows)
        local: list[int] = []
        for buffer in group.local:
            local += [self.module.slots.of(buffer), group.row_bytes(buffer)]
        work = self.plan.work
        if work is not None and any(work in call.arguments for call in calls):
            local += [self.module.slots.of(work), 0]
        together = group.tiles_per_element if group.summing else 1
        cut = [rows, blocks, group.element_rows, group.row_multiple, together, len(local) // 2]
        return [*cut, *local, *self._calls(calls)]

    def _calls(self, calls: Sequence[KernelCall]) -> list[int]:
        found: list[int] = []
        for call in calls:
            slots = self._slots(call)
            found += [call.function, call.check, call.number, len(slots), *slots]
        return found

    def slots_of(self, call: KernelCall, name: str) -> str:
        """The data that a call refers to."""
        return words(f"{name}{call.number}", self._slots(call))

    def _slots(self, call: KernelCall) -> list[int]:
        """Where a kernel finds its arguments, says why it failed, finds what may stop it."""
        slots = [self.module.slots.of(x) for x in call.arguments]
        if call.check:
            slots.append(self.module.slots.status)
        if call.polls:
            slots.append(self.module.slots.status + STOP_AT)
        return [*slots, *call.constants]


def _operation(number: int, rest: Sequence[int]) -> list[int]:
    return [number, len(rest) + OP_WORDS, *rest]


def words(name: str, values: Sequence[int]) -> str:
    """A row of words as data."""
    listed = ", ".join([f"i64 {value}" for value in values])
    return f"@{name} = internal constant [{len(values)} x i64] [{listed}]"
