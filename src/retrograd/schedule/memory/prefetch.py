"""What the kernels behind a matrix product overwrite, fetched while the product computes.

A product leaves the way to memory idle; the update of weights behind it does little but wait for
memory, and for other cores to give up their copies of the weights. So while a product does a block
of rows, it has those rows of the buffers fetched that the kernels after it update in place: weights
and moments, say. That moves no work and changes no result.
"""

from __future__ import annotations

from retrograd.schedule.buffer import Buffer
from retrograd.schedule.tiling.analysis import Rows
from retrograd.schedule.tiling.groups import CACHE, TileGroup

LEAST = 256  # bytes of a row for which it is worth it


def fetch_ahead(band: TileGroup) -> None:
    """Note in the products of a band, as `soon`, which buffers they are to fetch: of each the bytes
    of a row of the band, and how many bytes at most, for all together to fit into the cache."""
    if not isinstance(band.rows, int) or band.rows == 0 or band.within or band.together:
        return
    touched: set[Buffer] = set()
    for number, kernel in enumerate(band.kernels):
        touched.update(kernel.reads, kernel.outs)
        product = kernel.nests[0]
        if len(kernel.nests) != 1 or product.kind != "gemm" or product.loops:
            continue
        found: dict[Buffer, int] = {}
        for later in band.kernels[number + 1 :]:
            if any(nest.kind == "gemm" for nest in later.nests):
                break
            read = set(Rows(later).row_by_row) - touched
            sizes = {b: band.row_bytes(b) for b in later.outs if b in read}
            found |= {b: size for b, size in sizes.items() if size >= LEAST}
        if found:
            most = CACHE // len(found)
            product.info["soon"] = [(buffer, size, most) for buffer, size in found.items()]
