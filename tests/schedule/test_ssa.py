"""Bodies of loop nests: equal instructions are one value, and positions are right."""

import itertools

import numpy as np

from retrograd.ir import Dim, float32
from retrograd.schedule.ssa import ScalarBlock, is_number
from tests.schedule.evaluation import evaluate

N = Dim("N")


def test_equal_instructions_are_one_value() -> None:
    b = ScalarBlock()
    i, j = b.loop(0), b.loop(1)
    assert b.add(b.mul(i, b.size(3)), j) is b.add(b.mul(i, b.size(3)), j)
    assert b.add(i, j) is not b.add(j, i)
    assert b.const(0.0, float32) is not b.const(-0.0, float32)
    assert b.const(np.nan, float32) is b.const(np.nan, float32)
    assert b.size(N + 1) is b.size(1 + N)


def test_values_stand_in_the_outermost_loop_that_they_need() -> None:
    b = ScalarBlock()
    i, j = b.loop(0), b.loop(1)
    row = b.mul(i, b.size(N))
    assert [v.depth for v in (b.size(N), i, row, b.add(row, j), j)] == [0, 1, 1, 2, 2]
    at = {v: k for k, v in enumerate(b.values)}
    assert all(at[a] < at[v] for v in b.values for a in v.args)


def test_what_is_known_is_computed_at_once() -> None:
    b = ScalarBlock()
    i, zero, one = b.loop(0), b.size(0), b.size(1)
    assert b.add(i, zero) is i is b.sub(i, zero) is b.mul(one, i) is b.div(i, one)
    assert b.mul(i, zero) is zero is b.mod(i, one)
    assert is_number(b.mul(b.size(6), b.size(7)), 42)
    assert not is_number(b.size(N), 42)


def test_positions_and_indices_of_any_shape() -> None:
    for shape in ((4,), (2, 3), (1, 5), (3, 1, 2), (2, 2, 3), (N, 4), (2, N)):
        sizes = [3 if d is N else int(d) for d in shape]
        b = ScalarBlock()
        index = tuple(b.loop(k) for k in range(len(shape)))
        offset = b.offset(index, shape)
        c = ScalarBlock()
        back = c.unravelled(c.loop(0), shape)
        for at in itertools.product(*map(range, sizes)):
            place = int(np.ravel_multi_index(at, sizes))
            assert evaluate(offset, at, {}, {"N": 3}) == place
            assert tuple(evaluate(v, [place], {}, {"N": 3}) for v in back) == at


def test_where_a_condition_does_not_hold_an_element_that_exists_is_read() -> None:
    """In the same row, as the condition has no say in rows."""
    b = ScalarBlock()
    i, j = b.loop(0), b.loop(1)
    moved = b.sub(j, b.size(2))
    inside = b.both(b.at_least(j, b.size(2)), b.less(moved, b.size(3)))
    assert inside is not None
    at = b.guarded((i, moved), (4, 3), inside)
    for row in range(4):
        for column in range(8):
            found = evaluate(at, (row, column), {})
            assert found == (3 * row + column - 2 if 2 <= column < 5 else 3 * row)
    assert b.both(None, inside) is inside is b.both(inside, inside)
