"""Regions: loops and choices, which the host goes through.

Where a loop's length is known, the commands of all its steps are put into the stream. Whether a
loop goes on, which branch is taken, and a size that becomes known are numbers on the device: there
the host waits for them. A cursor is an address that the host moves.
"""

from __future__ import annotations

from retrograd.ir import evaluate
from retrograd.nvptx.run import CudaRun
from retrograd.ops.control import Cond, Scan, Sized, WhileLoop
from retrograd.runtime.errors import failure_of
from retrograd.schedule.control_regions import ControlRegion, length_of, regions_of
from retrograd.schedule.kernel import Kernel


def run_region(run: CudaRun, kernel: Kernel) -> None:
    """What a kernel that is a region runs."""
    for region in regions_of(kernel):
        prim = region.node.prim
        if isinstance(prim, Scan):
            _scan(run, region, prim)
        elif isinstance(prim, WhileLoop):
            _while(run, region, prim)
        elif isinstance(prim, Cond):
            assert region.condition is not None
            run.kernels(region.blocks[0 if run.read(region.condition).any() else 1])
        else:
            assert isinstance(prim, Sized)
            _sized(run, region, prim)


CudaRun.region = run_region


def _begin(run: CudaRun, region: ControlRegion) -> None:
    """Carries are where they start."""
    at = run.places
    for c in region.carries:
        run.copy(at[c.last], at[c.first], run.bytes_of(c.last))
        at[c.into] = at[c.last]
        if not c.in_place:
            at[c.out] = at[c.spare]


def _end(run: CudaRun, region: ControlRegion) -> None:
    """Carries are where they are expected."""
    for c in region.carries:
        if not c.in_place:
            run.copy(run.places[c.last], run.places[c.into], run.bytes_of(c.last))


def _scan(run: CudaRun, region: ControlRegion, prim: Scan) -> None:
    length = length_of(region)
    assert length is not None
    steps = evaluate(length, run.sizes)
    _begin(run, region)
    for t in range(steps)[:: -1 if prim.reverse else 1]:
        for row in region.rows:
            run.places[row.row] = run.places[row.whole] + t * run.bytes_of(row.row)
        run.kernels(region.blocks[0])
        region.take_turns(run.places)
    _end(run, region)


def _while(run: CudaRun, region: ControlRegion, prim: WhileLoop) -> None:
    assert region.condition is not None
    assert region.count is not None
    test, body = region.blocks
    _begin(run, region)
    steps = 0
    while True:
        run.kernels(test)
        if not run.read(region.condition).any():
            break
        if run.code.checks:
            run.check()
        if prim.most is not None and steps >= prim.most:
            raise failure_of(region.node, 0, run.sizes)
        run.kernels(body)
        region.take_turns(run.places)
        steps += 1
    run.write(region.count, steps)
    _end(run, region)


def _sized(run: CudaRun, region: ControlRegion, prim: Sized) -> None:
    """Note the size that became known, get memory for what depends on it, run, and give it back."""
    assert region.count is not None
    if run.code.checks:
        run.check()
    before, size = run.sizes, int(run.read(region.count).reshape(-1)[0])
    run.sizes = {**before, prim.dim: size}
    taken = []
    try:
        for buffer in region.dynamic:
            count = run.bytes_of(buffer)
            run.places[buffer] = run.device.allocate(count)
            taken.append((run.places[buffer], count))
        scratch = run.code.scratch_bytes(run.sizes)
        taken.append((run.device.allocate(scratch), scratch))
        with run.working_in(taken[-1][0]):
            run.kernels(region.blocks[0])
    finally:
        for address, count in taken:
            run.device.release(address, count)
        run.sizes = before
