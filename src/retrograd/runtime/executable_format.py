"""Serialized metadata of a compiled program: what it takes to run it, kept in the disk cache.

A process that finds the `ExecutableRecord` of a graph, and the object code it names, neither
optimises nor plans nor compiles. Where sizes have names it also takes the `BufferPlacement` of
those that come first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrograd.codegen.launch_layout import STATUS_SLOTS, STOP_AT
from retrograd.ir import BY_CODE, Dim, as_dtype
from retrograd.ir.literal import LiteralReader, show_size
from retrograd.runtime.backend import Array

if TYPE_CHECKING:
    from retrograd.codegen.program.module import ModuleEmitter
    from retrograd.runtime.assembler import ObjectCode
    from retrograd.schedule.planning.plan import KernelPlan


@dataclass(frozen=True, slots=True)
class BufferPlacement:
    """What a plan says once the sizes are known."""

    arena: int  # bytes
    offsets: list[int]  # of the temporaries in the arena; behind its end, in each thread's scratch
    peak: int  # bytes that a call allocates
    nanoseconds: float  # that it takes on one thread, at a guess
    shared: float  # nanoseconds of that which threads may share

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(content: bytes) -> BufferPlacement:
        return BufferPlacement(**json.loads(content))


@dataclass(frozen=True, slots=True)
class ExecutableLayout:
    """Of a program, what is numbers and names.

    The block of slots holds the addresses of inputs, outputs, constants, temporaries and cursors,
    in this order, then the values of the sizes, the status, the address of the times, the word
    that stops a run, and the address of that word, which copies of the block have, too.
    """

    object: str  # the key of the code
    symbols: list[str]  # what the code calls
    functions: int  # kernels that differ
    kernels: int
    threaded: bool
    scratch: int  # bytes that each thread has for itself
    arguments: int  # inputs and outputs
    constants: int
    temporaries: int
    cursors: int
    donated: list[tuple[int, int]]  # outputs, with the inputs that they overwrite
    hidden: list[str]  # sizes that become known while it runs
    endless: bool  # nobody knows how long it takes
    grows: bool  # memory for larger sizes is enough for smaller ones


@dataclass(frozen=True, slots=True)
class ExecutableRecord:
    """All that running a program takes, beside the graph and the code."""

    facts: ExecutableLayout
    sizes: list[int | Dim]
    constants: list[Array]
    placement: BufferPlacement | None  # None where it depends on the values of the sizes

    @property
    def first_temporary(self) -> int:
        return self.facts.arguments + self.facts.constants

    @property
    def first_cursor(self) -> int:
        return self.first_temporary + self.facts.temporaries

    @property
    def first_size(self) -> int:
        return self.first_cursor + self.facts.cursors

    @property
    def status(self) -> int:
        return self.first_size + len(self.sizes)

    @property
    def stop(self) -> int:
        """Behind the word that ends a long run, where its address is."""
        return self.status + STOP_AT

    @property
    def slots(self) -> int:
        return self.status + STATUS_SLOTS

    def to_bytes(self) -> bytes:
        head = {
            "facts": asdict(self.facts),
            "sizes": [show_size(d) for d in self.sizes],
            "constants": [[as_dtype(a.dtype).code, a.shape] for a in self.constants],
            "placement": self.placement and asdict(self.placement),
        }
        text = json.dumps(head).encode()
        return b"\n".join([text, b"".join(a.tobytes() for a in self.constants)])

    @staticmethod
    def from_bytes(content: bytes) -> ExecutableRecord:
        text, _, data = content.partition(b"\n")
        head = json.loads(text)
        constants = []
        at = 0
        for code, shape in head["constants"]:
            dtype = BY_CODE[code].dtype
            count = int(np.prod(shape, dtype=np.int64))
            constants.append(np.frombuffer(data, dtype, count, at).reshape(shape))
            at += count * dtype.itemsize
        return ExecutableRecord(
            ExecutableLayout(**head["facts"]),
            [LiteralReader(d).size() for d in head["sizes"]],
            constants,
            head["placement"] and BufferPlacement(**head["placement"]),
        )


def place(plan: KernelPlan, sizes: Mapping[str, int]) -> BufferPlacement:
    """The placement of a plan's buffers for these sizes."""
    found, own = plan.layout(sizes), plan.scratch.offsets
    offsets = [
        found.arena + own[b] if b in own else found.offsets.get(b, 0) for b in plan.temporaries
    ]
    peak = plan.peak_bytes(sizes, found)
    return BufferPlacement(found.arena, offsets, peak, *_times(plan, sizes))


def _times(plan: KernelPlan, sizes: Mapping[str, int]) -> tuple[float, float]:
    """A guess at the time of a call, and at the part that threads may share: one for all sizes
    that are nearest to the same powers of two, because guessing takes longer than a short call."""
    near = {name: 1 << (4 * n // 3).bit_length() - 1 if n else 0 for name, n in sizes.items()}
    key = tuple(near.items())
    if key not in plan.times:
        plan.times[key] = plan.nanoseconds(near), plan.shared_nanoseconds(near)
    return plan.times[key]


def recipe_of(
    plan: KernelPlan, module: ModuleEmitter, code: ObjectCode, static: bool
) -> ExecutableRecord:
    """The recipe of a plan that was compiled; `static` if its sizes are all known."""
    facts = ExecutableLayout(
        object=code.key,
        symbols=module.symbols,
        functions=len(module.functions),
        kernels=len(plan.kernels),
        threaded=plan.threaded,
        scratch=plan.scratch.arena,
        arguments=len(plan.inputs) + len(plan.outputs),
        constants=len(plan.constants),
        temporaries=len(plan.temporaries),
        cursors=len(plan.cursors),
        donated=list(plan.donated.items()),
        hidden=plan.hidden,
        endless=plan.endless,
        grows=plan.grows,
    )
    constants = [np.asarray(b.node.attrs["value"]) for b in plan.constants]
    placement = place(plan, {}) if static else None
    return ExecutableRecord(facts, list(module.slots.sizes), constants, placement)
