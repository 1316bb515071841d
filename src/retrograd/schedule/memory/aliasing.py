"""Outputs that take the memory of inputs.

A caller may donate an input: the program may overwrite it. An output can live there if all that
is read of the input is read before the output's element of the same position is written:

- kernels that read the input and another that writes the output come in this order, or
- the kernel that writes the output reads the input in the same loops, in each iteration nothing
  but the element it then writes.

Updates that nobody reads are moved behind kernels that read what they would overwrite.

The output also has to be written after all index checks: a run that a check ends changes nothing.
An output of a loop that takes long has memory of its own, unless it is very large: then the run can
be stopped until the loop is done, with all inputs as they were.

From then on there is one buffer for both, so what orders kernels by the buffers they touch, such as
`schedule/tiling/groups.py`, keeps the order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from retrograd.ir import TensorType
from retrograd.ops.control import Cond, DagScan, Scan
from retrograd.ops.index import Scatter
from retrograd.ops.shape import SliceSet
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import flat, regions_of
from retrograd.schedule.cost_model import nanoseconds
from retrograd.schedule.kernel import Kernel, rename
from retrograd.schedule.loop_nest import CheckNest, LoopNest, MapNest, live
from retrograd.schedule.ssa import SSAOp
from retrograd.tuning import TUNING


def take_inputs(
    kernels: list[Kernel],
    inputs: Sequence[Buffer],
    outputs: list[Buffer],
    donated: Collection[int],
) -> dict[int, int]:
    """Let outputs live in the memory of donated inputs, as far as possible.

    Replaces these outputs' buffers, in `kernels` and in `outputs`. Returns the input that each such
    output overwrites.
    """
    _delay(kernels, {inputs[j] for j in donated})
    _check_early(kernels)
    first = 1 + max((at for at, k in enumerate(kernels) if is_check(k)), default=-1)
    writers = _first_writers(kernels)
    readers: dict[Buffer, list[int]] = {inputs[j]: [] for j in donated}
    for at, kernel in enumerate(kernels):
        for buffer in kernel.reads:
            if buffer in readers:
                readers[buffer].append(at)
    number = {inputs[j]: j for j in donated}
    free: dict[TensorType, dict[int, None]] = {}
    for j in sorted(donated):
        free.setdefault(inputs[j].type, {})[j] = None
    found: dict[int, int] = {}
    # An output that is computed from an input, element by element, is the first choice for it.
    for updates in (True, False):
        for k, y in enumerate(outputs):
            at = writers.get(y, -1)
            if k in found or y.kind != "output" or at < first or _stays(kernels[at], y):
                continue
            own = free.get(y.type, {})
            near = sorted(number[x] for x in kernels[at].reads if number.get(x) in own)
            for j in near if updates else own:
                x = inputs[j]
                if _fits(x, y, at, kernels[at], readers[x], updates):
                    found[k] = j
                    del own[j]
                    break
    renamed = {outputs[k]: inputs[j] for k, j in found.items()}
    if renamed:
        for kernel in kernels:
            rename(kernel, renamed)
            _drop_copies(kernel)
            if is_check(kernel):  # so that no order of kernels has it run after these are written
                kernel.reads += [b for b in renamed.values() if b not in kernel.reads]
        outputs[:] = [renamed.get(y, y) for y in outputs]
    return found


def update_temporaries(kernels: list[Kernel]) -> None:
    """Have scatters and assignments write to the memory of what they update, where that is made by
    one of these kernels and nobody reads it later: a copy less for each. What a loop or a branch
    uses from around it is not made by its kernels: the next step reads it again."""
    readers: dict[Buffer, list[int]] = {}
    for at, kernel in enumerate(kernels):
        for x in kernel.reads:
            readers.setdefault(x, []).append(at)
    after: dict[Buffer, Buffer] = {}
    made = _first_writers(kernels)
    for at, kernel in enumerate(kernels):
        if not isinstance(kernel.nodes[0].prim, Scatter | SliceSet):
            continue
        y = kernel.outs[0]
        for x in kernel.reads:
            own = x.kind == "temporary" and x.type == y.type and x in made
            if own and _fits(x, y, at, kernel, readers[x], True):
                after[x] = y
                break
    for x in reversed(after):  # the last of a chain first
        after[x] = after.get(after[x], after[x])
    for kernel in kernels if after else ():
        rename(kernel, after)
        _drop_copies(kernel)


def in_place(kernels: list[Kernel], pairs: Sequence[tuple[Buffer, Buffer]]) -> list[bool]:
    """For each pair of what a step is given and what it makes of it, whether both can be one
    buffer; if so the kernels are changed to use the first."""
    _delay(kernels, {x for x, _ in pairs}, "cursor")
    writers = _first_writers(kernels)
    found: dict[Buffer, Buffer] = {}
    for x, y in pairs:
        at = writers.get(y, -1)
        readers = [n for n, k in enumerate(kernels) if x in k.reads]
        if at >= 0 and _fits(x, y, at, kernels[at], readers, False):
            found[y] = x
    for kernel in kernels if found else ():
        rename(kernel, found)
        _drop_copies(kernel)
    return [y in found for _, y in pairs]


def _check_early(kernels: list[Kernel]) -> None:
    """Have indices checked as soon as they are there: before the updates that a check behind them
    would keep from being made in place."""
    ready: dict[Buffer, int] = {}
    places = []
    for at, kernel in enumerate(kernels):
        for b in kernel.outs:
            ready[b] = at
        early = all(isinstance(nest, CheckNest) for nest in kernel.nests) and kernel.nests
        last = max((ready.get(b, -1) for b in kernel.reads), default=-1)
        places.append((last, 1) if early else (at, 0))
    order = sorted(range(len(kernels)), key=places.__getitem__)
    kernels[:] = [kernels[k] for k in order]


def _first_writers(kernels: Sequence[Kernel]) -> dict[Buffer, int]:
    """The number of the first kernel that writes to each buffer; others may update it."""
    found: dict[Buffer, int] = {}
    for at, kernel in enumerate(kernels):
        for b in kernel.outs:
            found.setdefault(b, at)
    return found


def _drop_copies(kernel: Kernel) -> None:
    """Leave out loops that store what they loaded from there: before an update of few rows in
    place, a loop over all others."""
    nests = [nest for nest in kernel.nests if not _stores_what_is_there(nest)]
    kernel.nests = nests or kernel.nests


def _stores_what_is_there(nest: LoopNest) -> bool:
    return isinstance(nest, MapNest) and all(
        s.value.op is SSAOp.LOAD and s.value.attr is s.buffer and s.value.args == (s.offset,)
        for s in nest.stores
    )


def _delay(kernels: list[Kernel], given: set[Buffer], kind: str = "output") -> None:
    """Where an input could be updated in place but for kernels that read it later, have the update
    wait for them, if nothing waits for the update."""
    read = {b for k in kernels for b in k.reads}
    places = {id(k): (at, 0) for at, k in enumerate(kernels)}
    readers: dict[Buffer, list[Kernel]] = {x: [] for x in given}
    for kernel in kernels:
        for x in given.intersection(kernel.reads):
            readers[x].append(kernel)
    for number, kernel in enumerate(kernels):
        if any(y in read or y.kind != kind for y in kernel.outs):
            continue
        near = given.intersection(kernel.reads)
        own = {x for x in near for y in kernel.outs if x.type == y.type and _updates(kernel, x, y)}
        last = max((places[id(k)] for x in own for k in readers[x]), default=(-1, 0))
        if last > places[id(kernel)]:
            places[id(kernel)] = last[0], number + 1
    kernels.sort(key=lambda k: places[id(k)])


def is_check(kernel: Kernel) -> bool:
    """Whether a kernel may end the run."""
    return any(isinstance(nest, CheckNest) for k in flat([kernel]) for nest in k.nests) or any(
        not isinstance(region.node.prim, Scan | Cond | DagScan)
        for k in flat([kernel])
        for region in regions_of(k)
    )


def _stays(kernel: Kernel, y: Buffer) -> bool:
    """Whether the inputs of a loop are to stay as they are until it is done, because it takes long,
    and to stop it is to do no harm."""
    small = isinstance(y.bytes, int) and y.bytes <= TUNING.large_output_bytes
    return bool(small and regions_of(kernel)) and nanoseconds(kernel) >= TUNING.interruptible_ns


def _fits(
    x: Buffer, y: Buffer, at: int, writer: Kernel, readers: Sequence[int], updates: bool
) -> bool:
    """Whether the kernel number `at` may write `y` over `x`; with `updates`, it also has to read
    `x`."""
    if any(r > at for r in readers) or (updates and at not in readers):
        return False
    return at not in readers or _updates(writer, x, y)


def _updates(kernel: Kernel, x: Buffer, y: Buffer) -> bool:
    """Whether a kernel reads `x` and could write `y` over it."""
    nests = kernel.nests
    reading = [n for n, nest in enumerate(nests) if reads(nest, x)]
    writing = [n for n, nest in enumerate(nests) if any(s.buffer is y for s in nest.stores)]
    return bool(reading) and reading == writing[:1] and _follows(nests[reading[0]], x, y)


def reads(nest: LoopNest, x: Buffer) -> bool:
    """Whether a nest reads a buffer."""
    loaded = any(v.op is SSAOp.LOAD and v.attr is x for v in live(nest))
    return loaded or x in nest.operands


def _follows(nest: LoopNest, x: Buffer, y: Buffer) -> bool:
    """Whether a nest reads of `x` nothing but, in each iteration, the element of `y` that it writes
    at the end of this iteration."""
    read = {v.args[0] for v in live(nest) if v.op is SSAOp.LOAD and v.attr is x}
    written = {s.offset for s in nest.stores if s.buffer is y}
    return isinstance(nest, MapNest) and len(written) == 1 and read == written
