"""Patterns of sizes: which sizes have names."""

import pytest

from retrograd.eager.immediate.size_pattern import SizePattern
from retrograd.ir import Dim, TensorType, float32


def pattern(shapes, vary):
    return SizePattern.of(shapes, [[bool(v) for v in row] for row in vary])


def test_sizes_that_change_have_names_and_equal_ones_the_same():
    p = pattern(((7, 64), (64, 10), (7,)), ((1, 0), (0, 0), (1,)))
    assert p.entries == [[-1, 64], [64, 10], [-1]]
    assert p.fits(((9, 64), (64, 10), (9,)))
    assert not p.fits(((9, 64), (64, 10), (8,)))
    assert not p.fits(((9, 63), (64, 10), (9,)))


@pytest.mark.parametrize("n", [0, 1])
def test_neither_0_nor_1_stands_for_a_name(n):
    p = pattern(((7, 3),), ((1, 0),))
    assert not p.fits(((n, 3),))
    assert pattern(((n, 3),), ((1, 0),)).names == 0


def test_a_pattern_goes_on_with_types_in_its_names():
    p = pattern(((7, 64), (5,)), ((1, 0), (0,)))
    n = Dim("n0")
    q = p.then([TensorType(float32, (n, 2 * n + 1, 3))], 1)
    assert q.entries == [[-1, 64], [-1, SizePattern.ANY, 3], [5]]
    assert q.sizes(((9, 64), (9, 19, 3), (5,))) == {"n0": 9}
    assert q.fits(((9, 64), (9, 19, 3), (5,)))
    assert not q.fits(((9, 64), (8, 19, 3), (5,)))
