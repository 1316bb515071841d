"""Running sums and extrema of floats in NumPy, in the order in which compiled code takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.numerics.compensated_sum import cumulative
from retrograd.ops.scan import AxisScan, CumMax, CumMin, CumProd, CumSum, LinearScan
from retrograd.runtime.backend import Array
from retrograd.runtime.denormals import may_flush
from retrograd.runtime.executors.numpy_mirror.ordered import (
    AT,
    CALL,
    WIDE,
    affords,
    of_bits,
    ordered_bits,
)
from retrograd.schedule.loop_nest import LANES


def scanned(node: Node, arrays: list[Array]) -> Array | None:
    """The value of a scan, if NumPy has it and shall compute it."""
    prim, x = node.prim, arrays[-1]
    if not isinstance(prim, AxisScan) or node.dtype.name not in WIDE or may_flush():
        return None
    steps = x.shape[prim.axis] if isinstance(prim, LinearScan) else LANES
    if not affords(node, x.size * AT + steps * CALL):
        return None
    y: Array
    if isinstance(prim, CumMax | CumMin):
        bits = ordered_bits(x, isinstance(prim, CumMax))
        return of_bits(np.ascontiguousarray(prim.reference(bits)), x.dtype)
    if isinstance(prim, CumSum | CumProd) and _goes_along(prim.axis, x):
        y = np.moveaxis(x, prim.axis, -1)
        y = y[..., ::-1] if prim.reverse else y
        y = _sums_along(y) if isinstance(prim, CumSum) else _products_along(y)
        return np.moveaxis(y[..., ::-1] if prim.reverse else y, -1, prim.axis)
    if isinstance(prim, CumSum | CumProd | LinearScan):
        y = prim.reference(*arrays)  # one after the other
        return y
    return None


def _goes_along(axis: int, x: Array) -> bool:
    """Whether the axis is the last one, but for those of size 1."""
    return all(n == 1 for n in x.shape[axis + 1 :])


def _in_blocks(ufunc: Any, neutral: float, x: Array) -> Array:
    """Scans of blocks of rows: see `schedule/loop_nest.py`."""
    n = x.shape[-1]
    y = np.full((*x.shape[:-1], n + -n % LANES), neutral, x.dtype)
    y[..., :n] = x
    blocks = y.reshape(*x.shape[:-1], -1, LANES)
    step = 1
    while step < LANES:
        moved = np.full_like(blocks, neutral)
        moved[..., step:] = blocks[..., :-step]
        blocks = ufunc(moved, blocks)
        step *= 2
    return blocks


def _sums_along(x: Array) -> Array:
    blocks = _in_blocks(np.add, -0.0, x)
    totals = cumulative(blocks[..., -1], x.ndim - 1)
    before = np.full_like(blocks[..., :1], -0.0)
    before[..., 1:, 0] = totals[..., :-1]
    blocks = before + blocks
    return blocks.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]


def _products_along(x: Array) -> Array:
    blocks = _in_blocks(np.multiply, 1.0, x)
    before: Any = x.dtype.type(1.0)
    for k in range(blocks.shape[-2]):
        blocks[..., k, :] = before * blocks[..., k, :]
        before = blocks[..., k, -1:]
    return blocks.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
