"""Computing large results again, where that is better than to keep them.

The scores of attention are written and read by blocks that stay in the cache, but for the gradient,
which needs them long after. Kept until then, they take memory that grows with the square of the
sequence's length. What they were computed from is small. So kernels that make such a result are
run a second time, in the tile group that needs it, row by row as before: then nothing but a block
of it ever exists. The same kernels give the same bits.

That is done for results

- that are far too large for any cache,
- of a tile group that is cut inside of its elements, so that only readers elsewhere stand in the
  way of a block being enough,
- at least `remat_memory_ratio` times as large as what has to be kept to compute them,
- which take no more than `remat_time_ratio` times as long to compute as to write to memory and read
  back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from retrograd.schedule.buffer import Buffer
from retrograd.schedule.cost_model import is_far, known, nanoseconds
from retrograd.schedule.kernel import Kernel, copied, rename
from retrograd.schedule.loop_nest import GemmNest, MapNest, ReductionNest
from retrograd.schedule.tiling.groups import TileGroup
from retrograd.tuning import TUNING

REPEATABLE = (MapNest, ReductionNest, GemmNest)  # nests that may be run again


def recompute(
    kernels: Sequence[Kernel], tile_groups: Sequence[TileGroup], temporaries: list[Buffer]
) -> list[Kernel]:
    """The kernels in order, with those that are run again. New buffers are added to
    `temporaries`."""
    home = {id(k): group for group in tile_groups for k in group.kernels}
    position = {id(k): at for at, k in enumerate(kernels)}
    written = Counter(b for k in kernels for b in k.outs)  # what is updated is never made again
    maker = {
        b: k
        for k in kernels
        for b in k.outs
        if is_far(b) and written[b] == 1 and not home[id(k)].sums(k)
    }
    added: dict[int, list[Kernel]] = {}
    renamed: list[tuple[list[Kernel], dict[Buffer, Buffer]]] = []
    for group in tile_groups:
        wanted = {
            b: None
            for k in group.kernels
            for b in k.reads
            if b in maker and home[id(maker[b])] is not group and home[id(maker[b])].element_rows
        }
        readers = [k for k in group.kernels if not wanted.keys().isdisjoint(k.reads)]
        chain = _chain(list(wanted), maker)
        first = min((position[id(k)] for k in readers), default=0)
        since = {id(k): kernels[position[id(k)] + 1 : first] for k, _ in chain}
        if not (_pays(chain, list(wanted)) and all(_may_run(k, since[id(k)]) for k, _ in chain)):
            continue
        fresh: dict[Buffer, Buffer] = {}
        for kernel, outs in sorted(chain, key=lambda item: position[id(item[0])]):
            for b in outs:
                fresh[b] = Buffer("temporary", len(temporaries), b.type, b.node)
                temporaries.append(fresh[b])
            again = copied(kernel, outs)
            again.again = True
            added.setdefault(first, []).append(again)
            renamed.append(([again], fresh))
        renamed.append((readers, {b: fresh[b] for b in wanted}))
    for which, names in renamed:
        for kernel in which:
            rename(kernel, names)
    return [k for at, one in enumerate(kernels) for k in (*added.get(at, ()), one)]


def _chain(
    wanted: Sequence[Buffer], maker: Mapping[Buffer, Kernel]
) -> list[tuple[Kernel, list[Buffer]]]:
    """The kernels to be run again for these buffers, and what of their results is needed: as many
    as it takes for them to read nothing that is large."""
    needed: dict[int, tuple[Kernel, list[Buffer]]] = {}
    todo, seen = list(wanted), set(wanted)
    while todo:
        buffer = todo.pop()
        kernel = maker[buffer]
        needed.setdefault(id(kernel), (kernel, []))[1].append(buffer)
        for b in kernel.reads:
            if b in maker and b not in seen:
                seen.add(b)
                todo.append(b)
    return list(needed.values())


def _pays(chain: Sequence[tuple[Kernel, list[Buffer]]], wanted: Sequence[Buffer]) -> bool:
    """Whether it takes little enough time to run these kernels again, and the memory that is saved
    is more than they need."""
    made = {b for _, outs in chain for b in outs}
    kept = {b for k, _ in chain for b in k.reads} - made
    time = sum(nanoseconds(k, moving=()) for k, _ in chain)  # all is in the cache
    saved = sum(known(b.bytes, None) for b in wanted)
    enough = saved >= TUNING.remat_memory_ratio * sum(known(b.bytes, None) for b in kept)
    return bool(wanted) and enough and time <= TUNING.remat_time_ratio * 2 * TUNING.byte_ns * saved


def _may_run(kernel: Kernel, since: Sequence[Kernel]) -> bool:
    """Whether a kernel can be run again after those that ran since: nothing that it reads has been
    overwritten, as memory that a caller gave away may be."""
    plain = all(isinstance(nest, REPEATABLE) for nest in kernel.nests)
    return plain and not any(b in kernel.reads for k in since for b in k.outs)
