"""Products by the definition of their order of summation, and numbers that tell orders apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrograd.ir import DType
from retrograd.ops.numerics.summation import PRODUCTS, SummationOrder, in_blocks
from retrograd.runtime.backend import Array
from tests.codegen.emit.fused import fused


def long(order: SummationOrder) -> list[int]:
    batch = order.batch
    return [batch - 1, batch, batch + 1, 3 * batch + order.group + 70, 5 * batch]


def numbers(shape: Sequence[int], dtype: DType, seed: int = 0) -> Array:
    """Numbers of many magnitudes, of which another order is another sum."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * np.exp(rng.normal(size=shape))).astype(dtype.dtype)


def same(found: Array, wanted: Array, what: object) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    np.testing.assert_array_equal(found, wanted, err_msg=str(what))


# -- products -------------------------------------------------------------------------------------
def product_of(a: Array, b: Array) -> Array:
    """The definition: rows of a by columns of b, each product rounded with its sum."""

    def part(first: int, last: int) -> Array:
        total = np.full((a.shape[0], b.shape[1]), -0.0, a.dtype)
        for k in range(first, last):
            total = fused(a[:, k, None], b[None, k], total)
        return total

    found: Array = in_blocks(PRODUCTS, a.shape[1], part)
    return found
