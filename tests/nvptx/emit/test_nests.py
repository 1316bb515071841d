"""Kinds of nests: all of the schedule are known, and others are an error that names the op."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.nests import EMITTERS, launches_of
from retrograd.schedule import loop_nest
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.device_plan import DevicePlan

# Regions are gone through by the host, which also makes the calls; nothing is packed.
ELSEWHERE = {"LoopNest", "ReductionNest", "ScatterTotals", "PackNest", "CallNest"}


def test_every_kind_is_known() -> None:
    classes = [c for c in vars(loop_nest).values() if isinstance(c, type)]
    kinds = {c.__name__ for c in classes if issubclass(c, loop_nest.LoopNest)}
    assert kinds - ELSEWHERE == {c.__name__ for c in EMITTERS}


def test_an_unknown_kind_is_an_error() -> None:
    class StrangeNest(loop_nest.LoopNest):
        kind = "strange"

    plan = DevicePlan(rg.trace(lambda x: x + 1, np.ones(3)), 256)
    (kernel,) = plan.kernels
    (nest,) = kernel.nests
    strange = StrangeNest(nest.loops, nest.body, nest.stores, kept=nest.kept)
    with pytest.raises(BackendError, match=r"no kernel for add.*'strange'.*rg\.backend"):
        launches_of(DeviceModule(), Kernel(kernel.nodes, [strange], kernel.outs), [strange])
