"""Sorting, and searching in what is sorted. NaN is at the end, whatever the direction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.xla.lowering.rules import JaxTrace, lowers


def _key(t: JaxTrace, x: Any, descending: bool) -> Any:
    """What is in ascending order where x is in the order wanted."""
    if not descending:
        return x
    return ~x if x.dtype.kind in "biu" else -x


@lowers(Sort)
def sort(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    key = _key(t, x, prim.descending)
    return t.lax.sort((key, x), dimension=prim.axis, num_keys=1, is_stable=True)[1]


@lowers(ArgSort)
def argsort(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    key = _key(t, x, prim.descending)
    place = t.lax.broadcasted_iota(np.int64, x.shape, prim.axis)
    order = t.lax.sort((key, place), dimension=prim.axis, num_keys=1, is_stable=True)[1]
    if prim.count == -1:
        return order
    prim.infer(node.inputs[0].type)
    return t.lax.slice_in_dim(order, 0, int(prim.count), axis=prim.axis)


@lowers(SearchSorted)
def searchsorted(t: JaxTrace, node: Node, row: Any, values: Any) -> Any:
    """By bisection, all values together."""
    prim: Any = node.prim
    lax, n = t.lax, row.shape[-1]
    lead = values.shape[: prim.shared]
    if values.size == 0 or n == 0:
        return t.full(node, 0)
    rows = lax.reshape(row, (math.prod(lead), n))
    flat = lax.reshape(values, (math.prod(lead), math.prod(values.shape[prim.shared :])))

    def less(a: Any, b: Any) -> Any:
        return (a < b) | ((b != b) & (a == a))

    def step(_: Any, state: Any) -> Any:
        low, high = state
        middle = (low + high) // 2
        at = t.jnp.take_along_axis(rows, lax.min(middle, lax.full_like(middle, n - 1)), 1)
        before = ~less(flat, at) if prim.right else less(at, flat)
        before = before & (low < high)
        return lax.select(before, middle + 1, low), lax.select(before, high, middle)

    start = lax.full(flat.shape, 0, np.int64), lax.full(flat.shape, n, np.int64)
    low, _ = lax.fori_loop(0, n.bit_length() + 1, step, start)
    return lax.reshape(low, node.shape)
