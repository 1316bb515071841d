"""A program at sizes that are known: its commands, the arena, and the parameters of shaders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.errors import BackendError, MemoryLimitError
from retrograd.ir import TensorType, evaluate
from retrograd.memory_limit import check_memory, scaled
from retrograd.ops.control import Cond, Scan, Sized, WhileLoop
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import regions_of
from retrograd.schedule.kernel import Kernel
from retrograd.wgpu import emit as emitters  # noqa: F401  (by kind of nest)
from retrograd.wgpu.commands import LEAST_BYTES, BufferSlice, Instruction, Item, RegionStep
from retrograd.wgpu.device import ALIGNMENT, device
from retrograd.wgpu.dispatch import Dispatch, EmitContext, MergedBuffers, emit
from retrograd.wgpu.emit.epilogues import epilogue_of
from retrograd.wgpu.emit.maps import copying
from retrograd.wgpu.plan import ShaderPlan, device_bytes
from retrograd.wgpu.shader_writer import MAX_GROUPS

KEPT_RECORDS = 8  # calls whose commands are kept: buffers come from the pool in turns
LEAST_WORDS = 256  # of parameters of dispatches, for which there is room at first
WORDS_BYTES = 1 << 22  # of parameters, before new ones take the place of old ones


class Specialization:
    """A program at sizes that are known."""

    def __init__(
        self, plan: ShaderPlan, status: Buffer, sizes: Mapping[str, int], dry: bool = False
    ) -> None:
        self.plan = plan
        self.status = status  # what checks that fail write to
        self.device = device()
        if not dry:
            plan.check_sizes(sizes)
        self.sizes = {**dict.fromkeys(plan.hidden, 1), **sizes}
        self._scratch: list[tuple[int, Buffer]] | None = []
        self.views: dict[str, Buffer] = {}  # the arena as an array, by the type of its elements
        self._blocks: dict[tuple[Any, ...], list[Item]] = {}
        self._copies: dict[tuple[Any, ...], Instruction] = {}
        # What is run before checks are looked at, and what overwrites arguments afterwards.
        self.items: list[Item] = []
        self.updates: list[Item] = []
        early = plan.checked if plan.donated else len(plan.kernels)
        moved = self._emit(plan.kernels[:early], self.items, 0)
        moved |= self._emit(plan.kernels[early:], self.updates, early)
        self.placed = plan.layout(self.sizes, self._scratch, moved)
        if not dry:
            self._check_memory()
            self._compile([*self.items, *self.updates])
        self._scratch = None
        self.words: dict[tuple[int, ...], int] = {}  # where parameters stand
        self._new_words: list[tuple[int, ...]] = []
        self.uniform = self._uniform(LEAST_WORDS * ALIGNMENT)
        self.bind_groups: dict[tuple[Any, ...], tuple[Any, list[Any]]] = {}
        # The commands of calls, by the identities of their buffers, and the buffers.
        self.recorded: dict[tuple[int, ...], tuple[tuple[list[Any], list[Any]], list[Any]]] = {}
        self.has_regions = any(isinstance(x, RegionStep) for x in (*self.items, *self.updates))
        self.outputs = [
            (
                device_bytes(b, self.sizes),
                tuple([evaluate(d, self.sizes) for d in b.type.shape]),
                b.type.dtype,
            )
            for b in plan.outputs
        ]
        self._trimmed = self.device.trimmed
        self._arena: Any = None  # of the latest call
        self._places: dict[Buffer, BufferSlice] = {}

    def remember(
        self, key: tuple[int, ...], commands: tuple[list[Any], list[Any]], used: list[Any]
    ) -> None:
        """Keep the commands of a call on these buffers, which stay alive with them: those of its
        items, and of its updates."""
        while len(self.recorded) >= KEPT_RECORDS:
            del self.recorded[next(iter(self.recorded))]
        self.recorded[key] = commands, used

    def refresh(self) -> None:
        """Forget what was bound, if memory is short: it is kept alive by that."""
        if self._trimmed != self.device.trimmed:
            self.bind_groups.clear()
            self.recorded.clear()
            self._arena = None
            self._places = {}
            self._trimmed = self.device.trimmed

    def places_in(self, arena: Any) -> dict[Buffer, BufferSlice]:
        """Where the temporaries are, if the arena is this buffer."""
        if self._arena is not arena:
            offsets = self.placed.offsets
            sizes = {b: max(device_bytes(b, self.sizes), LEAST_BYTES) for b in offsets}
            self._places = {b: BufferSlice(arena, at, sizes[b]) for b, at in offsets.items()}
            whole = BufferSlice(arena, 0, self.placed.arena)
            self._places |= dict.fromkeys(self.views.values(), whole)
            self._arena = arena
        return self._places

    # -- commands -----------------------------------------------------------------------------
    def _emit(self, kernels: Sequence[Kernel], items: list[Item], start: int) -> dict[int, int]:
        """Enter what kernels consist of, numbered from `start` on in the plan. Those that are done
        by the dispatch of an earlier one are told, with the number of that."""
        moved: dict[int, int] = {}
        for i, kernel in enumerate(kernels):
            self._time = start + i
            if self._time in moved:
                continue
            context = self._context(kernel, self.sizes)
            found = epilogue_of(kernels, i, context)
            if found is not None and start + found[0] not in moved:
                j, context.epilogue = found
                count = len(self._scratch or ())
                dispatches = emit(kernel.nests[0], context)
                most = self.device.facts.storage_buffers
                if found[1].used and all(len(d.bindings) <= most for d in dispatches):
                    items += map(self._instruction, dispatches)
                    moved[start + j] = self._time
                    continue
                del (self._scratch or [])[count:]
            items += self._items_of(kernel, self.sizes)
        return moved

    def _items_of(self, kernel: Kernel, sizes: Mapping[str, int]) -> list[Item]:
        """What a kernel consists of."""
        found: list[Item] = []
        for region in regions_of(kernel):
            if not isinstance(region.node.prim, Scan | WhileLoop | Cond | Sized):
                raise BackendError(
                    f"the wgpu backend cannot run {region.node.describe()}; rg.backend('wgpu', "
                    "fallback=True) leaves it to the CPU"
                )
            if not isinstance(region.node.prim, Sized):  # those become known when it runs
                for block in region.blocks:
                    self.block(block, sizes)
            found.append(RegionStep(region, kernel))
        if not found:
            context = self._context(kernel, sizes)
            dispatches = [d for nest in kernel.nests for d in emit(nest, context)]
            if any(len(d.bindings) > self.device.facts.storage_buffers for d in dispatches):
                dispatches = self._merged(kernel, context)
            found += map(self._instruction, dispatches)
        return found

    def _merged(self, kernel: Kernel, context: EmitContext) -> list[Dispatch]:
        """The dispatches of a kernel that has more buffers than a shader may bind."""
        if self._scratch is None:
            raise BackendError(
                f"{context.asked} reads and writes more arrays than a shader may on this GPU, "
                f"{self.device.facts.storage_buffers}, at a size that becomes known while it runs"
            )
        context.merged = MergedBuffers(self.views)
        dispatches = [d for nest in kernel.nests for d in emit(nest, context)]
        copies, context.merged = context.merged.copies, None
        before = [copying(b, own, context) for b, own in copies.items()]
        after = [copying(copies[b], b, context) for b in kernel.outs if b in copies]
        return [*before, *dispatches, *after]

    def _context(self, kernel: Kernel, sizes: Mapping[str, int]) -> EmitContext:
        check = self.plan.number_of(kernel)
        context = EmitContext(kernel, sizes, self.device.facts, check, self.status)
        context.new_scratch = self._new_scratch
        return context

    def block(self, kernels: Sequence[Kernel], sizes: Mapping[str, int]) -> list[Item]:
        """The kernels of a block of a region, at these sizes."""
        key = id(kernels), *sizes.values()
        found = self._blocks.get(key)
        if found is None:
            found = [item for k in kernels for item in self._items_of(k, sizes)]
            self._blocks[key] = found
        return found

    def copy(
        self, kernel: Kernel, source: Buffer, target: Buffer, sizes: Mapping[str, int]
    ) -> Instruction:
        """The copy of a buffer to another one."""
        key = source, target, *sizes.values()
        found = self._copies.get(key)
        if found is None:
            dispatch = copying(source, target, self._context(kernel, sizes))
            found = self._copies[key] = self._instruction(dispatch)
        return found

    def _check_memory(self) -> None:
        """`MemoryLimitError` for what cannot fit, before anything is computed: an array that is too
        large to be bound; and all that a call makes, where the GPU has the memory of the host. How
        much there is on other ones nobody tells; there the allocation that fails is the error."""
        plan, most = self.plan, self.device.facts.binding_bytes
        made = [*plan.inputs, *plan.outputs, *self.placed.offsets]
        arrays = [(device_bytes(b, self.sizes), f"{b.kind} {b.node.describe()}") for b in made]
        size, what = max(arrays, default=(0, ""))
        if size > most:
            raise MemoryLimitError(
                f"an array of {scaled(size)} is more than a shader may bind on this GPU, "
                f"{scaled(most)}; compute it in parts. It is the {what}"
            )
        if self.device.shares_memory:
            fresh = [b for k, b in enumerate(plan.outputs) if k not in plan.donated]
            needed = self.placed.arena + sum(device_bytes(b, self.sizes) for b in fresh)
            check_memory(needed, lambda: arrays, self.sizes)

    def _compile(self, items: Sequence[Item]) -> None:
        """Have the pipelines of these, and of what regions run."""
        inner = [item for block in self._blocks.values() for item in block]
        self.device.pipelines(i.dispatch for i in (*items, *inner) if isinstance(i, Instruction))

    def _new_scratch(self, type: TensorType) -> Buffer:
        made = self.plan.memory.new("temporary", type)
        if self._scratch is not None:  # otherwise it gets memory when it is first used
            self._scratch.append((self._time, made))
        return made

    def _instruction(self, dispatch: Dispatch) -> Instruction:
        return Instruction(dispatch, grid_of(dispatch.groups))

    # -- parameters ---------------------------------------------------------------------------
    def _uniform(self, size: int) -> Any:
        usage = self.device.wgpu.BufferUsage
        return self.device.gpu.create_buffer(size=size, usage=usage.UNIFORM | usage.COPY_DST)

    @property
    def words_full(self) -> bool:
        """Whether there is no place for more."""
        return (len(self.words) + 1) * ALIGNMENT > self.uniform.size

    def more_words(self) -> None:
        """Make room; what was encoded before has its parameters by now."""
        old = self.uniform.size
        if old >= WORDS_BYTES:
            self.words.clear()
            self.uniform = self._uniform(old)
        else:
            self.uniform = self._uniform(min(4 * old, WORDS_BYTES))
        self._new_words = list(self.words)
        self.bind_groups.clear()
        self.recorded.clear()

    def enter_words(self, words: tuple[int, ...]) -> int:
        """Where these will stand in the uniform buffer."""
        found = self.words[words] = len(self.words) * ALIGNMENT
        self._new_words.append(words)
        return found

    def write_words(self) -> None:
        """Upload the parameters that are not there yet."""
        listed = self._new_words
        if listed:
            table = np.zeros((len(listed), ALIGNMENT // 4), np.int32)
            for row, words in zip(table, listed, strict=True):
                row[: len(words)] = words
            self.device.write(self.uniform, table, self.words[listed[0]])
            self._new_words = []


def grid_of(groups: int) -> tuple[int, int, int]:
    """So many workgroups, and as few as possible beyond, in three dimensions."""
    if groups <= MAX_GROUPS:
        return groups, 1, 1
    rows = -(-groups // MAX_GROUPS)
    if rows <= MAX_GROUPS:
        return MAX_GROUPS, rows, 1
    return MAX_GROUPS, MAX_GROUPS, -(-rows // MAX_GROUPS)
