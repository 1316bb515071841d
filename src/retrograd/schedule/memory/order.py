"""The order of kernels where memory is short: what frees memory runs as soon as it can.

Kernels come in the order of the graph, in which the gradients of weights often stand at the end:
until then all that they read has to be kept. A graph in which values are computed late (`after`) is
one whose user gave time for memory. There a kernel whose results are smaller than what nobody needs
after it is moved to where its operands are known, and so is one whose results are small beside what
it reads, as several of these may be needed to free one operand.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from retrograd.schedule.buffer import Buffer
from retrograd.schedule.cost_model import known
from retrograd.schedule.kernel import Kernel
from retrograd.tuning import TUNING


def freeing_first(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels in such an order; otherwise they stay as they are."""
    waits, follow = _dependencies(kernels)
    readers: dict[Buffer, set[int]] = {}
    for at, kernel in enumerate(kernels):
        for b in (*kernel.reads, *kernel.outs):
            readers.setdefault(b, set()).add(at)
    urgent: list[int] = []
    done = [False] * len(kernels)
    order: list[Kernel] = []

    def frees(at: int) -> bool:
        read = [b for b in kernels[at].reads if b.kind == "temporary"]
        fresh = _bytes([b for b in kernels[at].outs if b.kind == "temporary"])
        return _bytes([b for b in read if readers[b] == {at}]) > fresh or (
            _bytes(read) > TUNING.freeing_ratio * fresh
        )

    def run(at: int) -> None:
        done[at] = True
        order.append(kernels[at])
        touched = set(follow[at])
        for later in follow[at]:
            waits[later] -= 1
        for b in dict.fromkeys((*kernels[at].reads, *kernels[at].outs)):
            readers[b].discard(at)
            if len(readers[b]) == 1:
                touched |= readers[b]
        for later in touched:
            if not done[later] and waits[later] == 0 and frees(later):
                heapq.heappush(urgent, later)

    for at in range(len(kernels)):
        while urgent:
            first = heapq.heappop(urgent)
            if not done[first]:
                run(first)
        if not done[at]:
            run(at)
    return order


def _bytes(buffers: Sequence[Buffer]) -> int:
    return sum(known(b.bytes, None) for b in buffers)


def _dependencies(kernels: Sequence[Kernel]) -> tuple[list[int], list[list[int]]]:
    """How many kernels each has to wait for, and which wait for it."""
    wrote: dict[Buffer, list[int]] = {}
    read: dict[Buffer, list[int]] = {}
    follow: list[list[int]] = [[] for _ in kernels]
    waits = [0] * len(kernels)
    for at, kernel in enumerate(kernels):
        before = {k for b in kernel.reads for k in wrote.get(b, ())}
        before |= {k for b in kernel.outs for k in (*wrote.get(b, ()), *read.get(b, ()))}
        for k in before:
            follow[k].append(at)
        waits[at] = len(before)
        for b in kernel.reads:
            read.setdefault(b, []).append(at)
        for b in kernel.outs:
            wrote.setdefault(b, []).append(at)
    return waits, follow
