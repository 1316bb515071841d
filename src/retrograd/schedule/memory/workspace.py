"""Memory for totals of products that wait for others, see `ops/numerics/summation.py`: behind the
copies that each thread makes of matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.loop_nest import COPIES_BYTES, TOTALS_BYTES, LoopNest
from retrograd.schedule.tiling.groups import TileGroup


def waiting(k: int) -> int:
    """How many totals may wait, of so many products: that of the groups of a batch, and of pairs of
    batches."""
    return 1 + ((k - 1) // PRODUCTS.batch).bit_length()


def work_bytes(products: Sequence[LoopNest], bands: Iterable[TileGroup]) -> int:
    """Bytes that a thread needs to work in, for the matrix products of a plan. Those that are added
    up over the rows of a band get an area of their own, for totals of all that they compute."""
    sizes = [n.info["k"].attr for n in products]
    if all(not isinstance(k, Dim) and k <= PRODUCTS.group for k in sizes):
        return COPIES_BYTES
    most = 0
    for band in bands:
        start = 0
        for nest in (n for kernel in band.summing for n in kernel.nests if n.kind == "gemm"):
            m, n, k = (nest.info[s].attr for s in "mnk")
            nest.info["totals"] = COPIES_BYTES + TOTALS_BYTES + start
            start += waiting(k) * m * n * nest.info["buffers"][2].type.dtype.itemsize
        most = max(most, start)
    return COPIES_BYTES + TOTALS_BYTES + most
