"""Small contractions of floats in NumPy, in the order in which compiled code adds products: each
result takes them in blocks, one after the other, or, along rows, as partial sums; see
`schedule/loop_nest.py`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.matmul import sums_along
from retrograd.ops.numerics.summation import PRODUCTS, SUMS, SummationOrder, in_blocks
from retrograd.runtime.backend import Array
from retrograd.runtime.denormals import may_flush
from retrograd.runtime.executable import start_compiler
from retrograd.runtime.executors.numpy_mirror.facts import once
from retrograd.runtime.executors.numpy_mirror.instructions import Do, fused
from retrograd.runtime.executors.numpy_mirror.ordered import WIDE, affords, chained
from retrograd.schedule.loop_nest import LANES

STEP = 1 << 10  # elements of an operation of NumPy in whose time one product is added everywhere
EACH = 2  # that take as long as one element of it


@dataclass(frozen=True)
class Layout:
    """How operands are laid out to be added up: the order of their axes, then their shapes, in
    which stacks of products lie side by side, each one step after another. Of sums along rows,
    the sizes of the axes that are summed."""

    orders: tuple[tuple[int, ...], tuple[int, ...]]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    along: list[int]
    work: int


def contracted(node: Node, arrays: list[Array]) -> Array | None:
    """The value of a contraction, if NumPy has it and shall compute it."""
    add = multiply_add()
    layout = None if add is None or may_flush() else once(node, "layout", _layout)
    if layout is None or add is None or not affords(node, layout.work):
        return None
    x, y = [
        a.transpose(order).reshape(shape)
        for a, order, shape in zip(arrays, layout.orders, layout.shapes, strict=True)
    ]
    found = _along(add, x, y, layout.along) if layout.along else _in_blocks(PRODUCTS, add, x, y)
    return found.reshape(node.shape)


def _layout(node: Node) -> Layout | None:
    prim: Any = node.prim
    if node.dtype.name not in WIDE:
        return None
    a, b = [x.shape for x in node.inputs]
    a_free, b_free = prim.free_axes(len(a), len(b))
    many, rows, inner, columns = [
        math.prod([shape[i] for i in axes])
        for shape, axes in ((a, prim.a_batch), (a, a_free), (a, prim.a_contract), (b, b_free))
    ]
    along, steps, sums = [], inner, many * rows * columns
    if sums_along(node):
        along = [a[i] for i in prim.a_contract if a[i] != 1] or [1]
        steps, sums = -(-inner // LANES), many * rows * LANES
    orders = (*prim.a_contract, *prim.a_batch, *a_free), (*prim.b_contract, *prim.b_batch, *b_free)
    shapes = (inner, many, rows, 1), (inner, many, 1, columns)
    return Layout(orders, shapes, along, steps * (STEP + sums * EACH))


@functools.cache
def multiply_add() -> Do | None:
    """What adds products to sums as compiled code does, where that is at hand."""
    return fused() if start_compiler().machine.fma else _rounded_twice


def _rounded_twice(a: Any, b: Any, total: Any, out: Any) -> Any:
    return np.add(total, a * b, out)


def _in_blocks(order: SummationOrder, add: Do, x: Array, y: Array) -> Array:
    """The sum of products along the first axis, in the order of `ops/numerics/summation.py`."""

    def part(first: int, last: int) -> Array:
        total = np.full((*x.shape[1:-1], y.shape[-1]), -0.0, x.dtype)
        for a, b in zip(x[first:last], y[first:last], strict=True):
            add(a, b, total, total)
        return total

    found: Array = in_blocks(order, len(x), part)
    return found


def _along(add: Do, x: Array, y: Array, sizes: list[int]) -> Array:
    """The same in partial sums, axis by axis: product r of the last one belongs to sum r mod
    LANES."""
    *outer, width = sizes
    blocks = -(-width // LANES)
    parts = []
    for z, neutral in ((x, -0.0), (y, 1.0)):  # products that change no sum
        filled = np.full((len(z) // width, blocks * LANES, *z.shape[1:]), neutral, z.dtype)
        filled[:, :width] = z.reshape(-1, width, *z.shape[1:])
        parts.append(filled.reshape(-1, blocks, LANES, *z.shape[1:]).swapaxes(0, 1))
    partial = _in_blocks(SUMS, add, *parts)
    shape = partial.shape[1:]
    for n in reversed(outer):
        partial = chained(np.add, partial.reshape(-1, n, math.prod(shape)), -0.0)
    partial = partial.reshape(shape)
    while len(partial) > 1:
        half = len(partial) // 2
        partial = partial[:half] + partial[half:]
    return partial[0]
