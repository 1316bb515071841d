"""Reshapes as groups of axes."""

import itertools
import math

import pytest

from retrograd.ir import Dim, spec
from retrograd.ops.elementwise import exp
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Reshape
from retrograd.passes.lowering.axis_groups import axis_groups, is_plain_reshape, reshape_root

SHAPES = [
    (),
    (1,),
    (12,),
    (3, 4),
    (2, 6),
    (2, 3, 2),
    (1, 12),
    (12, 1),
    (4, 1, 3),
    (6, 2),
    (2, 2, 3),
]


def shortest(left, right):
    """By brute force: where products from the front agree, a group may end."""
    cuts = []
    for i, j in itertools.product(range(1, len(left) + 1), range(1, len(right) + 1)):
        if math.prod(left[:i]) == math.prod(right[:j]):
            cuts.append((i, j))
    return cuts


@pytest.mark.parametrize(
    ("left", "right"),
    [(a, b) for a, b in itertools.product(SHAPES, SHAPES) if math.prod(a) == math.prod(b)],
)
def test_groups_have_equal_products_and_are_as_short_as_can_be(left, right):
    groups = axis_groups(left, right)
    assert [i for outer, _ in groups for i in outer] == list(range(len(left)))
    assert [j for _, inner in groups for j in inner] == list(range(len(right)))
    for outer, inner in groups:
        assert math.prod(left[i] for i in outer) == math.prod(right[j] for j in inner)
        a, b = [left[i] for i in outer], [right[j] for j in inner]
        assert all(cut == (len(a), len(b)) for cut in shortest(a, b) if 1 not in (*a, *b))


def test_sizes_with_names():
    n, m = Dim("N"), Dim("M")
    assert axis_groups((n, 6), (n, 2, 3)) == [([0], [0]), ([1], [1, 2])]
    assert axis_groups((n * m, 4), (n, m, 4)) == [([0], [0, 1]), ([1], [2])]
    assert axis_groups((2 * n,), (2, n)) == [([0], [0, 1])]


def test_nothing_is_one_group():
    assert axis_groups((0, 3), (5, 0)) == [([0, 1], [0, 1])]


@pytest.mark.parametrize(
    ("before", "after", "plain"),
    [((12,), (3, 4), True), ((3, 4), (12,), False), ((3, 1), (3,), True), ((2, 6), (2, 3, 2), True),
     ((2, 6), (3, 4), False), ((1, 5), (5, 1), True)],
)  # fmt: skip
def test_reading_through_a_reshape_without_division(before, after, plain):
    assert is_plain_reshape(Reshape(after)(input_node(spec(before)))) is plain


def test_the_root_of_a_chain_of_reshapes():
    x = exp(input_node(spec((12,))))
    first = Reshape((3, 4))(x)
    last = Reshape((2, 6))(first)
    assert reshape_root(last, ()) is x
    assert reshape_root(last, {first}) is first
    assert reshape_root(x, ()) is x
