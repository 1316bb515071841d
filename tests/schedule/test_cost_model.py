"""Costs: operations and bytes counted by hand."""

from typing import Any

import pytest

import retrograd as rg
from retrograd.ir import Dim, float32, float64, int64, spec
from retrograd.passes import optimize
from retrograd.schedule.cost_model import (
    is_far,
    known,
    nanoseconds,
    operations,
    traffic,
)
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING

N = Dim("N")


def kernels(f: Any, *shapes: Any, dtype: Any = float32) -> list[Kernel]:
    return KernelPlan(optimize(rg.trace(f, *[spec(s, dtype) for s in shapes]))).kernels


def counted(f: Any, *shapes: Any) -> Any:
    total: Any = 0
    for k in kernels(f, *shapes):
        for n in k.nests:
            total = total + operations(n)
    return total


def test_operations() -> None:
    assert counted(lambda x, y: x * y + 1, (10, 3), (10, 3)) == 60
    assert counted(lambda x: x.sum(1), (10, 3)) == 30
    for size in (4, 200):  # by loops and by the routine
        assert counted(lambda x, y: x @ y, (size, 7), (7, 5)) == 2 * size * 7 * 5
    assert counted(lambda x: rg.exp(x) * 2.0, (N, 3)) == 6 * N
    steps = counted(lambda x: rg.scan(lambda c, r: (c * r + 1, None), x[0], x)[0], (11, 6))
    assert steps == 11 * 6 * 2


def test_bytes() -> None:
    """Of each buffer once, however often it is read."""
    (k,) = kernels(lambda x, y: x * y + x, (10, 3), (10, 3), dtype=float64)
    assert traffic(k) == 3 * 240
    (k,) = kernels(lambda x: (rg.exp(x), rg.sin(x)), (N,))
    assert traffic(k) == 12 * N


def test_time_grows_with_work_and_with_sizes() -> None:
    def time(f: Any, *shapes: Any, **sizes: int) -> float:
        return sum(nanoseconds(k, sizes or None) for k in kernels(f, *shapes))

    assert time(lambda x: x + 1, (100,)) < time(lambda x: rg.exp(x), (100,))
    assert time(lambda x: x / 3.0 / x, (100,)) > time(lambda x: x * 3.0 * x, (100,))
    named = time(lambda x: rg.exp(x), (N,), N=500)
    assert named == pytest.approx(time(lambda x: rg.exp(x), (500,)))
    assert time(lambda x: rg.exp(x), (N,)) == pytest.approx(
        time(lambda x: rg.exp(x), (TUNING.assumed_size,))
    )
    once = time(lambda x: rg.tanh(x @ x), (8, 8))
    looped = time(lambda x: rg.fori_loop(0, 50, lambda i, y: rg.tanh(y @ y), x), (8, 8))
    assert 20 * once < looped < 200 * once


def test_products_take_the_time_of_arithmetic_or_of_memory() -> None:
    for sizes in (((300, 300), (300, 300)), ((4000, 2), (2, 300))):
        (k,) = kernels(lambda x, y: x @ y, *sizes)
        arithmetic = nanoseconds(k, moving=())
        memory = TUNING.byte_ns * known(traffic(k))
        assert nanoseconds(k) == pytest.approx(max(arithmetic, memory))
        assert (arithmetic > memory) is (sizes[0][1] == 300)


def test_sizes_as_numbers() -> None:
    assert known(7) == 7
    assert known(N * N + 1) == TUNING.assumed_size**2 + 1
    assert known(N * Dim("M"), {"N": 3}) == 3 * TUNING.assumed_size


def test_only_large_temporaries_are_far() -> None:
    plan = KernelPlan(rg.trace(lambda x: rg.cumsum(rg.cumsum(x)).sum(), spec((1 << 23,), int64)))
    assert [is_far(b) for b in plan.temporaries if b.type.size == 1 << 23] == [True, True]
    assert not is_far(plan.inputs[0])
