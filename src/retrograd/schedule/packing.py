"""Right matrices that several products read, packed once.

The routine for matrix products copies its right matrix into the order in which it reads it
(`codegen/gemm/gemm.py`). Where the left matrices have few rows, as the batch of a recurrent
network, that takes as long as a third of the products. A matrix that is the same in every step of a
loop is copied before the first one, and one that products one after the other read before the first
of these, as those of a loop of Python's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrograd.ir import TensorType
from retrograd.ops.control import Scan, WhileLoop
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.control_regions import Memory, RegionNest, length_of
from retrograd.schedule.kernel import Kernel, gemms
from retrograd.schedule.loop_nest import GemmNest, MatrixOperand, PackNest, live
from retrograd.schedule.ssa import ScalarBlock, SSAOp
from retrograd.tuning import TUNING

Readers = list[tuple[Kernel, GemmNest]]


def packed_before(loop: Kernel, memory: Memory) -> list[Kernel]:
    """The kernels that pack what products in a loop read in every step; these read that instead."""
    (nest,) = loop.nests
    assert isinstance(nest, RegionNest)
    region, prim = nest.region, nest.region.node.prim
    if not isinstance(prim, Scan | WhileLoop) or length_of(region) in (0, 1):
        return []
    fixed = set(nest.buffers[: prim.constants])
    inside = (k for block in region.blocks for k in block)
    packs = [_packed(readers, memory) for right, readers in _by_right(inside) if right in fixed]
    made = [b for pack in packs for b in pack.outs]
    nest.buffers += made  # they are needed until the loop ends
    loop.reads += made
    return packs


def packed_once(kernels: Sequence[Kernel], memory: Memory) -> list[Kernel]:
    """Kernels in order, with those that pack what several products with few rows read."""
    before: dict[int, list[Kernel]] = {}
    for _, readers in _by_right(kernels):
        few = [(k, p) for k, p in readers if _has_few_rows(p)]
        if len(few) >= TUNING.packed_once_products:
            before.setdefault(id(few[0][0]), []).append(_packed(few, memory))
    return [x for kernel in kernels for x in (*before.get(id(kernel), ()), kernel)]


def _has_few_rows(product: GemmNest) -> bool:
    m = product.mnk[0]
    return isinstance(m, int) and m <= TUNING.packed_once_rows


def _by_right(kernels: Iterable[Kernel]) -> list[tuple[Buffer, Readers]]:
    """Products that pack the same right matrix in the same way, in order."""
    found: dict[tuple[object, ...], Readers] = {}
    for kernel in kernels:
        for product in gemms([kernel]):
            layout = None if product.packed else _layout(product)
            if layout is not None:
                found.setdefault((product.buffers[1], *layout), []).append((kernel, product))
    return [(readers[0][1].buffers[1], readers) for readers in found.values()]


def _layout(product: GemmNest) -> tuple[int, ...] | None:
    """The sizes of a right matrix and how it lies; None for one that is not packed before."""
    offset, turned, leading = product.b
    spread = product.spread is not None or product.windows is not None
    if product.loops or spread or offset.op is not SSAOp.SIZE:
        return None
    numbers = (product.n.attr, product.k.attr, offset.attr, leading.attr)
    known = all(isinstance(x, int) for x in numbers)
    return (*numbers, turned) if known and 0 < product.k.attr <= PRODUCTS.group else None


def _packed(readers: Readers, memory: Memory) -> Kernel:
    """The kernel that packs the right matrix of products, which read what it makes."""
    kernel, product = readers[0]
    (_, n, k), (offset, turned, leading) = product.mnk, product.b
    right, body, unit = product.buffers[1], ScalarBlock(), TUNING.gemm_vector_columns
    assert isinstance(n, int)
    assert isinstance(k, int)
    columns, node = -(-n // unit) * unit, kernel.nodes[0]
    packed = memory.new("temporary", TensorType(right.type.dtype, (k * columns,)), node)
    b = MatrixOperand(body.size(offset.attr), turned, body.size(leading.attr))
    nest = PackNest([], body, n=body.size(n), k=body.size(k), b=b, buffers=[right, packed])
    for kernel, product in readers:
        product.packed = True
        product.b = MatrixOperand(product.body.size(0), False, product.n)
        product.buffers[1] = packed
        product.live = None
        product.live = live(product)
        kernel.reads = [packed if b is right else b for b in kernel.reads]
    return Kernel([node], [nest], [packed])
