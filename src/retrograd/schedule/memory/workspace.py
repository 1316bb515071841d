"""Memory for totals of products that wait for others, see `ops/numerics/summation.py`: behind the
copies that each thread makes of matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.passes.lowering.strided_views import SPREAD
from retrograd.schedule.kernel import gemms
from retrograd.schedule.loop_nest import GemmNest
from retrograd.schedule.tiling.groups import TileGroup
from retrograd.tuning import TUNING


def waiting(k: int) -> int:
    """How many totals may wait, of so many products: that of the groups of a batch, and of pairs of
    batches."""
    return 1 + ((k - 1) // PRODUCTS.batch).bit_length()


def work_bytes(products: Sequence[GemmNest], tile_groups: Iterable[TileGroup]) -> int:
    """Bytes that a thread needs to work in, for the matrix products of a plan. Those that are added
    up over the rows of a tile group get an area of their own, for totals of all that they compute;
    and those of long sums over windows one for the table of where these lie."""
    sizes = [n.k.attr for n in products]
    if all(not isinstance(k, Dim) and k <= PRODUCTS.group for k in sizes):
        return TUNING.gemm_pack_bytes
    most = 0
    for group in tile_groups:
        start = 0
        for nest in gemms(group.summing):
            m, n, k = nest.mnk
            assert isinstance(m, int)  # sums over rows have known sizes
            assert isinstance(n, int)
            assert isinstance(k, int)
            nest.totals = TUNING.gemm_pack_bytes + TUNING.gemm_totals_bytes + start
            start += waiting(k) * m * n * nest.output.type.dtype.itemsize
        most = max(most, start)
    end = TUNING.gemm_pack_bytes + TUNING.gemm_totals_bytes + most
    longest = 0
    for nest in products:
        k = nest.k.attr
        if nest.spread is not None and isinstance(k, int) and k > SPREAD:
            nest.listed = end
            longest = max(longest, k + SPREAD)
    return end + 4 * longest
