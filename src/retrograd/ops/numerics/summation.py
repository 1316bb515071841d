"""The order in which floats are added up, such that every sum, however long, is as accurate as one
in pairs: its error grows with the logarithm of its length.

The terms of a sum are a *chain*. They are added one after the other in blocks
(`SummationOrder.block`); so are the totals of blocks, as many as make a group (`PARTS`), and those
of groups, as many as make a batch. Batches are added in pairs, and pairs again, until one total is
left: what has no partner waits for the next round. So a chain no longer than a block is a plain
loop, and no rounding error is carried through more than `block + 2 PARTS + log2 n` additions. A
chain is cut by its length alone. What is not there is as if it were -0.0, which changes nothing it
is added to, so parts that are shorter than the others need no rule of their own.

What the chains of an operation are is said in `schedule/loop_nest.py`. NumPy's meaning of an
operation keeps to no order, but to the same bound: `total` and `in_halves`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.ir import DType, float32

PARTS = 64  # totals that are added one after the other


@dataclass(frozen=True)
class SummationOrder:
    """How chains are cut: how many terms a block has, a group, a batch."""

    block: int

    @property
    def group(self) -> int:
        return PARTS * self.block

    @property
    def batch(self) -> int:
        return PARTS * self.group


SUMS = SummationOrder(64)
# Of contractions with columns, whose blocks are added up in registers: to have them leave those for
# memory takes a few percent of the time.
PRODUCTS = SummationOrder(128)


def accumulator_of(dtype: DType) -> DType:
    """The dtype in which numbers are added up: half precision in float32."""
    return float32 if dtype.is_half else dtype


def longest_chain(terms: Any, block: int = SUMS.block, loops: int = 1) -> Any:
    """How many additions a term of a sum goes through at most: in this order and in NumPy's, with
    those of the partial results of a row, for a sum by several loops, each of which is a chain."""
    n = np.maximum(np.asarray(terms, np.float64), 1.0)
    return np.minimum(n - 1, loops * (block + 2 * PARTS + np.log2(n) + 8))


def in_pairs(totals: list[Any]) -> Any:
    """The totals of batches as one."""
    while len(totals) > 1:
        pairs = [a + b for a, b in zip(totals[::2], totals[1::2], strict=False)]
        totals = pairs + totals[len(totals) // 2 * 2 :]
    return totals[0]


def in_blocks(order: SummationOrder, count: int, part: Callable[[int, int], Any]) -> Any:
    """The total of a chain of `count` terms, at least one, of which `part(first, last)` adds up
    some, one after the other."""

    def added(first: int, last: int, length: int) -> Any:
        if length == order.block:
            return part(first, last)
        inner = length // PARTS
        parts = [added(i, min(i + inner, last), inner) for i in range(first, last, inner)]
        return functools.reduce(operator.add, parts)

    size = order.batch
    return in_pairs([added(i, min(i + size, count), size) for i in range(0, count, size)])


def total(x: Any, axes: Sequence[int]) -> Any:
    """The sum of an array over axes, by NumPy, which adds up in pairs what lies side by side."""
    if x.dtype.kind not in "fc":
        return np.sum(x, axis=tuple(axes), dtype=x.dtype)
    kept = [i for i in range(x.ndim) if i not in axes]
    terms = math.prod(x.shape[i] for i in axes)
    rows = x.transpose((*kept, *axes)).reshape(*[x.shape[i] for i in kept], terms)
    return np.sum(np.ascontiguousarray(rows), axis=-1, dtype=x.dtype)


def in_halves(part: Callable[[int, int], Any], count: int) -> Any:
    """The sum of `count` terms, of which `part(first, last)` adds up a few in any order."""

    def between(first: int, last: int) -> Any:
        if last - first <= PRODUCTS.block:
            return part(first, last)
        middle = (first + last) // 2
        return between(first, middle) + between(middle, last)

    return between(0, count)
