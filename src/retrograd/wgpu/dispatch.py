"""What the kernels of a plan become: dispatches of compute shaders.

`EMITTERS` has a function for each kind of loop nest, which `@emits_nest(MapNest)` enters: from the
nest and an `EmitContext` to the dispatches that compute it, in order. Each dispatch begins when
the one before it is finished, and sees what that wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from retrograd.errors import BackendError
from retrograd.ir import Dim, TensorType, evaluate
from retrograd.passes.lowering.libcall import LibCall
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import LoopNest


@dataclass(frozen=True)
class Dispatch:
    """A run of `groups` workgroups of the shader `source`.

    `bindings` are the buffers at `@binding(1)`, `@binding(2)` and so on. `parameters` are the words
    of the uniform buffer at `@binding(0)`: numbers, and buffers, in the place of each of which
    stands the element where it begins: within its binding (other than 0 only for cursors, see
    `control_regions.py`), or, as a `Start`, within the arena."""

    source: str
    bindings: tuple[Buffer, ...]
    parameters: tuple[int | Buffer | Start, ...]
    groups: int
    label: str = ""


@dataclass(frozen=True)
class DeviceFacts:
    """What shaders may use on a device."""

    int64: bool = True
    float64: bool = False
    subgroups: bool = False
    fused: bool = False  # `fma` of float32 rounds once
    widens: bool = True  # compares numbers that were made ones of 64 bits right, see `probe.py`
    storage_buffers: int = 8  # that one shader can bind
    workgroup_memory: int = 16384  # bytes
    workgroup_size: int = 256  # invocations
    binding_bytes: int = 1 << 27


@dataclass(frozen=True)
class Start:
    """As a parameter: the element of the arena where a buffer begins."""

    buffer: Buffer


@dataclass
class MergedBuffers:
    """How the buffers of a kernel are parts of the arena: it itself, seen as an array of each type,
    and the copies there of buffers that are elsewhere."""

    views: dict[str, Buffer]
    copies: dict[Buffer, Buffer] = field(default_factory=dict)


@dataclass
class EmitContext:
    """What an emitter is told beside the nest: the kernel, the sizes of this program, the device.
    `check` is the number of the check of the kernel among those of the plan, counted from 1."""

    kernel: Kernel
    sizes: Mapping[str, int]
    facts: DeviceFacts
    check: int = 0
    status: Buffer | None = None  # what a check that fails writes to
    new_scratch: Callable[[TensorType], Buffer] | None = None
    # Where shaders would bind more buffers than they may: all are parts of the arena, bound once
    # for each type of elements; those that are elsewhere have a copy there.
    merged: MergedBuffers | None = None
    epilogue: Any = None  # the map that is done with it, if there is one: `emit/epilogues.py`

    def value(self, size: int | Dim) -> int:
        """A size as a number."""
        return evaluate(size, self.sizes) if isinstance(size, Dim) else size

    def scratch(self, type: TensorType) -> Buffer:
        """Memory that only the dispatches of this kernel use."""
        assert self.new_scratch is not None
        return self.new_scratch(type)

    @property
    def asked(self) -> str:
        """The operation in question, for messages."""
        node = self.kernel.nodes[0]
        return (node.prim.target if isinstance(node.prim, LibCall) else node).describe()


Emitter = Callable[[Any, EmitContext], list[Dispatch]]
EMITTERS: dict[type[LoopNest], Emitter] = {}


def emits_nest(*kinds: type[LoopNest]) -> Callable[[Emitter], Emitter]:
    """A decorator that enters a function for classes of nests."""

    def enter(emit: Emitter) -> Emitter:
        EMITTERS.update(dict.fromkeys(kinds, emit))
        return emit

    return enter


def emit(nest: LoopNest, context: EmitContext) -> list[Dispatch]:
    """The dispatches of a nest; `BackendError` names the operation of one that has no emitter."""
    emitter = EMITTERS.get(type(nest))
    if emitter is None:
        raise BackendError(
            f"the wgpu backend has no shader for {context.asked} (a nest of the kind "
            f"{nest.kind!r}); rg.backend('wgpu', fallback=True) leaves it to the CPU"
        )
    return emitter(nest, context)
