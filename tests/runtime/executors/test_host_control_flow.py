"""Loops and choices of a device whose memory is a list of names, and which only notes what it is
asked to do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes import prepared
from retrograd.runtime.executors.host_control_flow import HostControlFlow
from retrograd.schedule.control_regions import ControlRegion, regions_of
from retrograd.schedule.planning.device_plan import DevicePlan


class Noting(HostControlFlow):
    """Where a buffer is, is its name; `answers` are what the host reads, one after the other."""

    def __init__(self, region: ControlRegion, *answers: int) -> None:
        self.region, self.answers = region, list(answers)
        self.places, self.sizes = {}, {}
        self.did: list[Any] = []

    def block(self, kernels: Any) -> None:
        number = next(i for i, b in enumerate(self.region.blocks) if b is kernels)
        at = self.places
        into = [at[c.into] for c in self.region.carries]
        out = [at[c.out] for c in self.region.carries if not c.in_place]
        self.did.append((number, into, out, [at[r.row] for r in self.region.rows]))

    def place(self, buffer: Any) -> Any:
        return self.places.setdefault(buffer, f"{buffer.kind}{len(self.places)}")

    def row(self, whole: Any, row: Any, number: int) -> Any:
        return number

    def copy(self, source: Any, target: Any) -> None:
        self.did.append(("copy", self.place(source), self.place(target)))

    def read(self, buffer: Any) -> Any:
        return np.array([self.answers.pop(0)])

    def write(self, buffer: Any, number: int) -> None:
        self.did.append(("write", number))

    def sized(self, region: Any, dim: str, size: int) -> None:
        self.did.append(("sized", size))

    def check(self) -> None:
        self.did.append("check")


def region_of(f: Callable[..., Any], *specs: Any) -> ControlRegion:
    """The region of a function with one loop or choice."""
    plan = DevicePlan(prepared(rg.trace(f, *specs), True), 16)
    (region,) = [r for kernel in plan.kernels for r in regions_of(kernel)]
    return region


F = rg.spec((3,), rg.float32)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_through_its_rows(reverse: bool) -> None:
    def f(x: Any, rows: Any) -> Any:
        return rg.scan(lambda c, r: (c[::-1] + r, None), x, rows, reverse=reverse)[0]

    region = region_of(f, F, rg.spec((4, 3), rg.float32))
    run = Noting(region)
    run.run(region)
    blocks = [x for x in run.did if x[0] == 0]
    assert [rows for *_, rows in blocks] == [[t] for t in range(4)[:: -1 if reverse else 1]]
    for (_, _, out, _), (_, into, *_) in pairwise(blocks):
        assert into == out  # what a step gives, the next one takes
    first, last = run.did[0], run.did[-1]
    assert first[0] == last[0] == "copy"
    assert last[1] == blocks[-1][2][0]
    assert last[2] == first[2]


def test_a_loop_goes_on_while_the_device_says_so() -> None:
    def f(x: Any) -> Any:
        return rg.while_loop(lambda c: c.sum() < 9, lambda c: c[::-1] + 1, x)

    region = region_of(f, F)
    run = Noting(region, 1, 1, 0)
    run.run(region)
    assert [x[0] for x in run.did if x != "check" and x[0] != "copy"] == [0, 1, 0, 1, 0, "write"]
    assert ("write", 2) in run.did
    assert run.did.count("check") == 2


def test_a_choice_takes_one_branch() -> None:
    region = region_of(lambda x: rg.cond(x.sum() > 0, lambda: x * 2, lambda: x[::-1] - 1), F)
    for answer, block in ((1, 0), (0, 1)):
        run = Noting(region, answer)
        run.run(region)
        assert [x[0] for x in run.did] == [block]
