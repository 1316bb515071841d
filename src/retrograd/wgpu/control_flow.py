"""Regions: loops and choices. The host encodes the commands of each step.

Where a loop's length is known, all steps are part of one command buffer. Whether a loop goes on,
which branch is taken, and a size that becomes known are numbers on the device: there the host waits
until it has them.

A cursor is the buffer that it goes through, with the element where it points to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from retrograd.ir import evaluate
from retrograd.ops.control import Cond, Scan, Sized, WhileLoop
from retrograd.runtime.errors import failure_of
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import length_of
from retrograd.wgpu.commands import RegionStep
from retrograd.wgpu.run import REGIONS, CommandEncoder


def copy(run: CommandEncoder, step: RegionStep, source: Buffer, target: Buffer) -> None:
    """Copy a buffer, unless both are one memory."""
    a, b = run.place(source), run.place(target)
    if (a.gpu, a.offset, a.first) != (b.gpu, b.offset, b.first) and evaluate(
        source.type.size, run.sizes
    ):
        run.step(run.program.copy(step.kernel, source, target, run.sizes))


def _begin(run: CommandEncoder, step: RegionStep) -> None:
    """Carries are where they start."""
    for c in step.region.carries:
        copy(run, step, c.first, c.last)
        run.places[c.into] = run.place(c.last)
        if not c.in_place:
            run.places[c.out] = run.place(c.spare)


def _end(run: CommandEncoder, step: RegionStep) -> None:
    """Carries are where they are expected."""
    for c in step.region.carries:
        if not c.in_place:
            copy(run, step, c.into, c.last)


def scan(run: CommandEncoder, step: RegionStep) -> None:
    region, prim = step.region, step.region.node.prim
    assert isinstance(prim, Scan)
    length = evaluate(length_of(region), run.sizes)  # type: ignore[arg-type]
    _begin(run, step)
    for t in range(length)[:: -1 if prim.reverse else 1]:
        for row in region.rows:
            whole = run.place(row.whole)
            elements = evaluate(row.row.type.size, run.sizes)
            run.places[row.row] = replace(whole, first=whole.first + t * elements)
        run.block(region.blocks[0])
        region.take_turns(run.places)
    _end(run, step)


def while_loop(run: CommandEncoder, step: RegionStep) -> None:
    region, prim = step.region, step.region.node.prim
    assert isinstance(prim, WhileLoop)
    assert region.condition is not None
    assert region.count is not None
    test, body = region.blocks
    _begin(run, step)
    steps = 0
    while True:
        run.block(test)
        if not run.read(region.condition).reshape(-1)[0]:
            break
        if prim.most is not None and steps >= prim.most:
            raise failure_of(region.node, 0, run.sizes)
        run.block(body)
        region.take_turns(run.places)
        steps += 1
    _end(run, step)
    run.submit()
    run.write(region.count, steps)


def cond(run: CommandEncoder, step: RegionStep) -> None:
    region = step.region
    assert region.condition is not None
    taken = bool(run.read(region.condition).reshape(-1)[0])
    run.block(region.blocks[0 if taken else 1])


def sized(run: CommandEncoder, step: RegionStep) -> None:
    """Note the size that became known, and run what depends on it."""
    region, prim = step.region, step.region.node.prim
    assert isinstance(prim, Sized)
    assert region.count is not None
    size = int(run.read(region.count).reshape(-1)[0])
    before: Any = run.sizes
    first = len(run.taken)
    known = set(run.places)
    run.sizes = {**before, prim.dim: size}
    run.block(region.blocks[0])
    run.sizes = before
    for buffer in [b for b in run.places if b not in known and b.kind == "temporary"]:
        del run.places[buffer]
    run.give_back(first)


REGIONS |= {Scan: scan, WhileLoop: while_loop, Cond: cond, Sized: sized}
