"""Positions as linear functions, and the rows that they stay in, against all iterations."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.ops.leaf import input_node
from retrograd.schedule.affine_index import AffineIndex
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import live
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling.affine import RowSlice, Touch, not_negative, touches
from tests.schedule.evaluation import evaluate

N = Dim("N")


def test_what_is_surely_not_negative() -> None:
    assert [not_negative(x) for x in (0, 3, -1, N, N + 2, N - 1, -1 * N)] == [
        True, True, False, True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_said_to_be_kept_only_where_they_are(seed: int) -> None:
    """Of random accesses: whoever is `within` touches no element of another row."""
    rng = np.random.default_rng(seed)
    x = input_node(spec((1000,), float32))
    buffer = Buffer("temporary", 0, x.type, x)
    said = 0
    for _ in range(300):
        loops: list[int | Dim] = [int(n) for n in rng.integers(1, 5, 3)]
        steps: dict[int, int | Dim] = {k: int(rng.integers(0, 9)) for k in range(3)}
        extra, start = int(rng.integers(1, 3)), int(rng.integers(0, 2))
        cut = RowSlice((0,), 1, 1) if seed % 2 else RowSlice((), 0, int(rng.integers(1, 3)))
        share = int(rng.choice([s for s in (*steps.values(), 4, 8) if isinstance(s, int)]))
        share *= 1 if seed % 2 else int(cut.times)
        touch = Touch(buffer, AffineIndex(start, steps), extra)
        if not touch.within(loops, cut, share):
            continue
        said += 1
        for at in itertools.product(*(range(int(n)) for n in loops)):
            count = at[0] * int(loops[1]) + at[1] if seed % 2 else at[0]
            row = count // int(cut.times)
            first = start + sum(int(s) * at[k] for k, s in steps.items())
            assert row * share <= first
            assert first + extra <= (row + 1) * share
    assert said > 3


def test_loads_of_a_plan() -> None:
    """Each load that is told has the position that its body computes."""

    def f(x, y):
        return x.T + y, (x[::2] * 3.0).sum(0), x[:, :4] * y[0]

    plan = KernelPlan(rg.trace(f, spec((4, 6), float32), spec((6, 4), float32)))
    found = 0
    for nest in (n for k in plan.kernels for n in k.nests):
        read, written = touches(nest)
        assert {t.buffer for t in written} >= {s.buffer for s in nest.stores}
        loads = [v for v in live(nest) if v.op == "load"]
        for at in itertools.product(*(range(int(n)) for n in nest.loops)):
            for load in loads:
                place = evaluate(load.args[0], at, {})
                told = [t.position for t in read if t.buffer is load.attr]
                assert place in [
                    int(p.start) + sum(int(s) * at[k] for k, s in p.steps.items())
                    for p in told
                    if p is not None
                ]
                found += 1
    assert found > 50
