"""An order with few crossings, and places that keep links straight and items apart."""

import itertools

import numpy as np
import pytest

from retrograd.viz.pictures.rows import GAP, align, order


def linked(pairs):
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
        before.setdefault(b, []).append(a)
    return before, after


def crossings(rows, pairs):
    spot = {x: i for row in rows for i, x in enumerate(row)}
    row_of = {x: k for k, row in enumerate(rows) for x in row}
    return sum(
        (spot[a] - spot[c]) * (spot[b] - spot[d]) < 0
        for (a, b), (c, d) in itertools.combinations(pairs, 2)
        if row_of[a] == row_of[c]
    )


def test_links_are_uncrossed():
    rows, pairs = (
        [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
        [(0, 5), (1, 4), (2, 3), (3, 8), (4, 7), (5, 6)],
    )
    assert crossings(rows, pairs) == 6
    order(rows, *linked(pairs))
    assert crossings(rows, pairs) == 0
    assert [sorted(row) for row in rows] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_items_keep_their_order_and_distance():
    rows = [[0], [1, 2, 3], [4]]
    sides = {i: (10.0 + i, 20.0) for i in range(5)}
    before, after = linked([(0, 1), (0, 2), (0, 3), (3, 4)])
    x = align(rows, before, after, sides)
    for row in rows:
        for a, b in itertools.pairwise(row):
            assert x[b] - x[a] >= sides[a][1] + sides[b][0] + GAP - 1e-9


def test_a_chain_is_straight():
    """Also where a side branch and an input pull at it."""
    rows = [[0], [1, 9], [2], [3], [4, 8]]
    sides = dict.fromkeys(range(10), (5.0, 5.0))
    before, after = linked([(0, 1), (1, 2), (9, 2), (2, 3), (3, 4), (3, 8)])
    x = align(rows, before, after, sides)
    np.testing.assert_allclose([x[i] for i in (1, 2, 3)], x[0], atol=1.0)


@pytest.mark.parametrize("rows", [[], [[0]], [[0], [1]]])
def test_rows_without_links(rows):
    order(rows, {}, {})
    sides = {0: (1.0, 1.0), 1: (1.0, 1.0)}
    assert set(align(rows, {}, {}, sides).values()) <= {0.0}
