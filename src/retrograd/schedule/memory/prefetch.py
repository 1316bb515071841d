"""What the kernels behind a matrix product overwrite, fetched while the product computes.

A product leaves the way to memory idle; the update of weights behind it does little but wait for
memory, and for other cores to give up their copies of the weights. So while a product does a block
of rows, it has those rows of the buffers fetched that the kernels after it update in place: weights
and moments, say. That moves no work and changes no result.
"""

from __future__ import annotations

from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import GemmNest
from retrograd.schedule.tiling.analysis import Rows
from retrograd.schedule.tiling.groups import TileGroup
from retrograd.tuning import TUNING


def fetch_ahead(group: TileGroup) -> None:
    """Note in the products of a tile group which buffers they are to `prefetch`: of each the bytes
    of a row of the tile group, and how many bytes at most, for all together to fit into the
    cache."""
    if not isinstance(group.rows, int) or group.rows == 0 or group.element_rows or group.is_region:
        return
    touched: set[Buffer] = set()
    for number, kernel in enumerate(group.kernels):
        touched.update(kernel.reads, kernel.outs)
        product = kernel.nests[0]
        if len(kernel.nests) != 1 or not isinstance(product, GemmNest) or product.loops:
            continue
        found: dict[Buffer, int] = {}
        for later in group.kernels[number + 1 :]:
            if any(isinstance(nest, GemmNest) for nest in later.nests):
                break
            read = set(Rows(later).row_by_row) - touched
            sizes = {b: group.row_bytes(b) for b in later.outs if b in read}
            found |= {b: size for b, size in sizes.items() if size >= TUNING.prefetch_row_bytes}
        if found:
            most = TUNING.tile_bytes // len(found)
            product.prefetch = [(buffer, size, most) for buffer, size in found.items()]
