"""Rows of a trace: what a way back comes to, and what depends on leaves."""

import numpy as np
import pytest

from retrograd.scalar.machine.opcodes import BY_NAME, CONSTANT, LEAF, START, STOP
from retrograd.scalar.trace_rows import Columns, cone, plain, reached, settled

ADD, MUL, NEG, POWC = (BY_NAME[name].code for name in ("add", "mul", "neg", "powc"))


def columns_of(*rows: tuple[int, ...], numbers: object = None) -> Columns:
    full = [(*row, 0, 0)[:3] for row in rows]
    code, a, b = (np.array(x) for x in zip(*full, strict=True))
    values = np.zeros(len(rows)) if numbers is None else np.array(numbers, float)
    return Columns(code.astype(np.uint8), a.astype(np.int32), b.astype(np.int32), values)


def test_a_way_back_does_not_go_on_to_exponents_nor_through_numbers() -> None:
    rows = columns_of(
        (CONSTANT,), (LEAF, 0), (LEAF, 1), (MUL, 1, 2), (POWC, 3, 0), (STOP, 3), (ADD, 4, 5),
        (NEG, 2),
    )  # fmt: skip
    assert cone(rows.code, rows.a, rows.b, 6) == [6, 5, 4, 3, 2, 1]
    assert reached(rows, 5).tolist() == [False] * 5 + [True]
    assert reached(rows, 7).tolist() == [False, False, True, *[False] * 4, True]


def test_both_forms_find_the_same_as_a_search_row_by_row() -> None:
    rng = np.random.default_rng(0)
    n = 80
    code = np.array([CONSTANT, LEAF, *rng.choice([ADD, MUL, NEG, POWC, STOP, LEAF], n - 2)])
    a, b = ((rng.random(n) * np.arange(n)).astype(int) for _ in range(2))
    rows = columns_of(*zip(code.tolist(), a.tolist(), b.tolist(), strict=True))
    operands = {ADD: 2, MUL: 2, NEG: 1, POWC: 1}
    for root in range(0, n, 7):
        found, todo = {root}, [root]
        while todo:
            i = todo.pop()
            new = {int(x[i]) for x in (a, b)[: operands.get(int(code[i]), 0)]} - found
            found |= new
            todo += new
        assert cone(rows.code, rows.a, rows.b, root) == sorted(found, reverse=True)
        assert np.flatnonzero(reached(rows, root)).tolist() == sorted(found)


@pytest.mark.parametrize(("row", "expected"), [(2, True), (4, True), (3, False)])
def test_what_no_leaf_is_in_is_plain(row: int, expected: bool) -> None:
    rows = columns_of((CONSTANT,), (LEAF, 0), (ADD, 0, 0), (ADD, 1, 2), (STOP, 3))
    assert plain(rows, row) is expected


class Leaf:
    data, grad = 2.5, 7.0


def test_settled_leaves_are_constants_until_they_are_set() -> None:
    rows = columns_of((CONSTANT,), (LEAF, 1), (START, 1), (LEAF, 1, 2), (LEAF, 0), (NEG, 4))
    found = settled(rows, [Leaf(), Leaf()], [1])
    assert found.code.tolist() == [CONSTANT, CONSTANT, CONSTANT, LEAF, LEAF, NEG]
    assert found.numbers.tolist() == [0, 2.5, 7.0, 0, 0, 0]
    assert found.a.tolist() == [0, 0, 0, 1, 0, 4]
