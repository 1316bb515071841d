"""Right matrices of products in a loop, packed once before it.

The routine for matrix products copies its right matrix into the order in which it reads it
(`codegen/gemm/gemm.py`). In a loop whose left matrices have few rows, as the batch of a recurrent
network, that takes as long as a third of the products. A matrix that is the same in every step is
copied before the first one.
"""

from __future__ import annotations

from retrograd.ir import TensorType
from retrograd.ops.control import Scan, WhileLoop
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.control_regions import Memory, RegionNest, length_of
from retrograd.schedule.kernel import Kernel, gemms
from retrograd.schedule.loop_nest import GemmNest, MatrixOperand, PackNest, live
from retrograd.schedule.ssa import ScalarBlock, SSAOp
from retrograd.tuning import TUNING


def packed_before(loop: Kernel, memory: Memory) -> list[Kernel]:
    """The kernels that pack what products in a loop read in every step; these read that instead."""
    (nest,) = loop.nests
    assert isinstance(nest, RegionNest)
    region, prim = nest.region, nest.region.node.prim
    if not isinstance(prim, Scan | WhileLoop) or length_of(region) in (0, 1):
        return []
    fixed = set(nest.buffers[: prim.constants])
    found: dict[tuple[object, ...], Kernel] = {}
    for kernel in (k for block in region.blocks for k in block):
        for product in gemms([kernel]):
            right = product.buffers[1]
            layout = _layout(product)
            if right not in fixed or layout is None:
                continue
            key = (right, *layout)
            if key not in found:
                found[key] = _pack(product, kernel, memory)
            (packed,) = found[key].outs
            product.packed = True
            product.b = MatrixOperand(product.body.size(0), False, product.n)
            product.buffers[1] = packed
            product.live = None
            product.live = live(product)
            kernel.reads = [packed if b is right else b for b in kernel.reads]
    made = [b for pack in found.values() for b in pack.outs]
    nest.buffers += made  # they are needed until the loop ends
    loop.reads += made
    return list(found.values())


def _layout(product: GemmNest) -> tuple[int, ...] | None:
    """The sizes of a right matrix and how it lies; None for one that is not packed before."""
    offset, turned, leading = product.b
    if product.loops or product.spread is not None or offset.op is not SSAOp.SIZE:
        return None
    numbers = (product.n.attr, product.k.attr, offset.attr, leading.attr)
    known = all(isinstance(x, int) for x in numbers)
    return (*numbers, turned) if known and 0 < product.k.attr <= PRODUCTS.group else None


def _pack(product: GemmNest, kernel: Kernel, memory: Memory) -> Kernel:
    (_, n, k), (offset, turned, leading) = product.mnk, product.b
    right, body, unit = product.buffers[1], ScalarBlock(), TUNING.gemm_vector_columns
    columns = -(-n // unit) * unit
    node = kernel.nodes[0]
    packed = memory.new("temporary", TensorType(right.type.dtype, (k * columns,)), node)
    b = MatrixOperand(body.size(offset.attr), turned, body.size(leading.attr))
    nest = PackNest([], body, n=body.size(n), k=body.size(k), b=b, buffers=[right, packed])
    return Kernel([node], [nest], [packed])
