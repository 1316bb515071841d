"""Positions as linear functions, against all iterations."""

import itertools

from retrograd.ir import Dim
from retrograd.schedule.affine_index import linear
from retrograd.schedule.ssa import ScalarBlock
from tests.schedule.evaluation import evaluate, number

N = Dim("N")


def test_linear_functions_of_counters() -> None:
    b = ScalarBlock()
    i, j, size = b.loop(0), b.loop(1), b.size
    cases = [
        size(7), i, b.add(b.mul(i, size(N)), j),
        b.sub(b.mul(b.add(i, j), size(3)), b.mul(j, size(3))),
        b.mul(b.add(b.mul(i, size(2)), size(5)), size(N)), b.sub(size(N), i),
    ]  # fmt: skip
    for v in cases:
        found = linear(v)
        assert found is not None
        for at in itertools.product(range(3), repeat=2):
            sizes = {"N": 11}
            total = number(found.start, sizes)
            total += sum(number(s, sizes) * at[k] for k, s in found.steps.items())
            assert total == evaluate(v, at, {}, sizes)
    for v in (b.mul(i, j), b.div(i, size(2)), b.mod(j, size(3)), b.add(i, b.mul(i, i))):
        assert linear(v) is None
