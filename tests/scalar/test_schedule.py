"""Rows as batches: the same numbers, sums as contractions, what is alike together."""

import numpy as np

from retrograd.scalar.machine.opcodes import BY_NAME, CONSTANT, LEAF
from retrograd.scalar.schedule import DOT, InstructionSchedule, schedule
from retrograd.scalar.trace_rows import Columns, Event

ADD, MUL, NEG = (BY_NAME[name].code for name in ("add", "mul", "neg"))


def columns_of(rows: list[tuple[int, int, int]]) -> Columns:
    code, a, b = (np.array(x) for x in zip(*rows, strict=True))
    numbers = np.zeros(len(rows))
    return Columns(code.astype(np.uint8), a.astype(np.int32), b.astype(np.int32), numbers)


def run(plan: InstructionSchedule, given: dict[int, float]) -> np.ndarray:
    """The values of all slots, by what batches say."""
    values = np.full(plan.slots, np.nan)
    for row in plan.given:
        values[plan.slot[row]] = given[int(row)]
    values[plan.slot[-2:]] = 1.0, 0.0
    for batch in plan.batches:
        a, b = values[plan.slot[batch.a]], values[plan.slot[batch.b]]
        if batch.code == DOT:
            found = values[plan.slot[batch.init]] + (a * b).sum(axis=1)
        else:
            found = {ADD: a + b, MUL: a * b, NEG: -a}[batch.code]
        values[plan.slot[batch.rows]] = found
    return values


def test_a_sum_of_products_is_one_contraction() -> None:
    leaves = [(CONSTANT, 0, 0), *[(LEAF, k, 0) for k in range(7)]]
    products = [(MUL, 1, 2), (MUL, 3, 4), (MUL, 5, 6)]  # rows 8 to 10
    rows = columns_of([*leaves, *products, (ADD, 8, 9), (ADD, 11, 7), (ADD, 12, 10)])
    plan = schedule(rows, [], [13])
    (batch,) = plan.batches
    assert (batch.code, batch.rows.tolist(), batch.a.shape) == (DOT, [13], (1, 3))
    x = np.arange(1.0, 8.0)
    found = run(plan, {0: 0.0, **{k + 1: v for k, v in enumerate(x)}})
    assert found[plan.slot[13]] == 1 * 2 + 3 * 4 + 5 * 6 + 7


def test_an_inner_result_that_somebody_reads_is_no_part_of_a_sum() -> None:
    leaves = [(LEAF, k, 0) for k in range(4)]
    rows = columns_of([(CONSTANT, 0, 0), *leaves, (ADD, 1, 2), (ADD, 5, 3), (ADD, 6, 4)])
    plan = schedule(rows, [], [7, 6])
    found = run(plan, {0: 0.0, 1: 1.0, 2: 10.0, 3: 100.0, 4: 1000.0})
    assert found[plan.slot[[7, 6]]].tolist() == [1111.0, 111.0]


def test_what_does_the_same_at_the_same_depth_is_a_batch_side_by_side() -> None:
    rows = columns_of([(CONSTANT, 0, 0), (LEAF, 0, 0), (LEAF, 1, 0), (NEG, 1, 0), (MUL, 1, 2),
                       (NEG, 2, 0), (MUL, 3, 5), (MUL, 4, 4)])  # fmt: skip
    plan = schedule(rows, [], [6, 7])
    groups = [(b.code, sorted(b.rows.tolist())) for b in plan.batches]
    assert groups == [(MUL, [4]), (NEG, [3, 5]), (MUL, [6, 7])]
    assert abs(np.diff(plan.slot[[3, 5]])).tolist() == [1]
    assert abs(np.diff(plan.slot[[6, 7]])).tolist() == [1]


def test_what_nobody_wants_is_not_computed() -> None:
    rows = columns_of([(CONSTANT, 0, 0), (LEAF, 0, 0), (NEG, 1, 0), (MUL, 1, 1), (NEG, 3, 0)])
    plan = schedule(rows, [], [2])
    assert [b.rows.tolist() for b in plan.batches] == [[2]]
    assert (plan.slot[[3, 4]] == -1).all()


def test_random_rows_have_their_values() -> None:
    """With ways back in between, before which rows do not share slots."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = [(CONSTANT, 0, 0), *[(LEAF, k, 0) for k in range(4)]]
        while len(rows) < 40:
            code = int(rng.choice([ADD, ADD, MUL, NEG]))
            a, b = rng.integers(1, len(rows), 2).tolist()
            rows.append((code, a, b if code != NEG else 0))
        given = {0: 0.0, **{k: float(x) for k, x in enumerate(rng.integers(-2, 3, 4), 1)}}
        exact = dict(given)
        for i, (code, a, b) in enumerate(rows[5:], 5):
            x, y = exact[a], exact[b]
            exact[i] = x + y if code == ADD else x * y if code == MUL else -x
        wanted = rng.choice(np.arange(5, 40), 3, replace=False).tolist()
        events = [Event(20, 21), Event(30, 33)]
        plan = schedule(columns_of(rows), events, wanted)
        found = run(plan, given)
        assert (plan.slot[wanted] >= 0).all()
        for i in wanted:
            assert found[plan.slot[i]] == exact[i] or abs(exact[i]) > 2**53
