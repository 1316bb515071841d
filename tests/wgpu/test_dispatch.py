"""Kinds of nests: all of the schedule are known, and others are an error that names the op."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.ir import Dim
from retrograd.schedule import loop_nest
from retrograd.schedule.kernel import Kernel
from retrograd.wgpu import specialization  # noqa: F401  (which has all emitters entered)
from retrograd.wgpu.dispatch import EMITTERS, DeviceFacts, EmitContext, emit
from retrograd.wgpu.plan import ShaderPlan

# Regions are gone through by the host; nothing is packed for a processor; calls are the CPU's; the
# emitter of scatters is as accurate by itself.
ELSEWHERE = {
    "LoopNest", "ReductionNest", "ScatterTotals", "PackNest", "CallNest", "BlockedScatter",
}  # fmt: skip


def test_every_kind_is_known() -> None:
    classes = [c for c in vars(loop_nest).values() if isinstance(c, type)]
    kinds = {c.__name__ for c in classes if issubclass(c, loop_nest.LoopNest)}
    assert kinds - ELSEWHERE == {c.__name__ for c in EMITTERS}


def test_an_unknown_kind_is_an_error() -> None:
    class StrangeNest(loop_nest.LoopNest):
        kind = "strange"

    (kernel,) = ShaderPlan(rg.trace(lambda x: x + 1, np.ones(3))).kernels
    (nest,) = kernel.nests
    strange = StrangeNest(nest.loops, nest.body, nest.stores, kept=nest.kept)
    context = EmitContext(Kernel(kernel.nodes, [strange], kernel.outs), {}, DeviceFacts())
    with pytest.raises(BackendError, match=r"no shader for add.*'strange'.*fallback=True"):
        emit(strange, context)


def test_sizes_of_a_program() -> None:
    (kernel,) = ShaderPlan(rg.trace(lambda x: x + 1, np.ones(3))).kernels
    context, n = EmitContext(kernel, {"N": 7}, DeviceFacts()), Dim("N")
    assert [context.value(d) for d in (5, n, 2 * n + 1)] == [5, 7, 15]
