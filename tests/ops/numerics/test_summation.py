"""Chains are cut by their length alone, and their error does not grow with it."""

import math

import numpy as np
import pytest

from retrograd.ir import bfloat16, float16, float32, float64, int32
from retrograd.ops.numerics.summation import (
    PARTS,
    PRODUCTS,
    SUMS,
    SummationOrder,
    accumulator_of,
    in_blocks,
    in_halves,
    in_pairs,
    longest_chain,
    total,
)

ORDER = SummationOrder(2)


@pytest.mark.parametrize("n", [1, 2, 3, ORDER.group, ORDER.group + 1, 3 * ORDER.batch + 5])
def test_blocks_cover_a_chain_once_and_in_order(n):
    found = []

    def part(first, last):
        assert 0 < last - first <= ORDER.block
        found.append((first, last))
        return last - first

    assert in_blocks(ORDER, n, part) == n
    assert [a for a, _ in found] == [0, *[b for _, b in found[:-1]]]
    assert found[-1][1] == n


def test_no_term_takes_part_in_more_additions_than_is_said():
    n = 3 * ORDER.batch + 5

    class Depth(int):
        def __add__(self, other):
            return Depth(1 + max(int(self), int(other)))

    depth = in_blocks(ORDER, n, lambda first, last: Depth(last - first - 1))
    assert depth <= ORDER.block + 2 * PARTS + math.log2(n)


def test_pairs_wait_for_a_partner():
    assert in_pairs(["a"]) == "a"
    assert in_pairs(["a", "b", "c", "d", "e"]) == "abcde"
    assert in_pairs([1e16, 1.0, -1e16, 1.0]) == (1e16 + 1.0) + (-1e16 + 1.0)


def test_halves_are_no_longer_than_a_block():
    spans = []

    def part(first, last):
        spans.append((first, last))
        return last - first

    assert in_halves(part, 1000) == 1000
    assert max(b - a for a, b in spans) <= PRODUCTS.block
    assert in_halves(part, 0) == 0


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2), ()])
def test_total_is_accurate_along_any_axes(axes):
    x = np.random.default_rng(0).uniform(1, 2, (60, 3, 70)).astype(np.float32)
    np.testing.assert_allclose(total(x, axes), x.astype(float).sum(axis=axes), rtol=4e-7)
    assert total(x, axes).dtype == np.float32
    i = x.astype(np.int8)
    assert total(i, axes).dtype == np.int8
    np.testing.assert_array_equal(total(i, axes), i.sum(axis=axes).astype(np.int8))


def test_halves_are_added_up_in_float32():
    found = [accumulator_of(d) for d in (float16, bfloat16, float32, float64, int32)]
    assert found == [float32, float32, float32, float64, int32]


@pytest.mark.parametrize("order", [SUMS, PRODUCTS])
def test_the_longest_chain_is_at_least_what_the_order_has(order):
    """Counted in the order itself, for one loop and for loops inside of a loop."""

    class Depth(int):
        def __add__(self, other):
            return Depth(1 + max(int(self), int(other)))

    def counted(n, inner=0):
        return int(in_blocks(order, n, lambda first, last: Depth(last - first - 1 + inner)))

    for n in (1, 2, 63, 64, 65, 129, 5000, order.group + 1, order.batch - 1, 3 * order.batch + 5):
        assert counted(n) <= longest_chain(n, order.block)
        assert longest_chain(n, order.block) <= max(n - 1, 0)
    for n, m in ((2, 64), (64, 64), (300, 5000), (5000, 5000)):
        assert counted(n, counted(m)) <= longest_chain(n * m, order.block, 2)
    assert longest_chain(10**7, order.block) < 300
