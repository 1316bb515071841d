"""What scans and scatters have so far: sums in twice the precision, with and without float64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from retrograd.ops.index import ScatterAdd
from retrograd.ops.scan import CumSum
from tests.wgpu.gpu import device_with, needs_gpu, run

pytestmark = needs_gpu


@pytest.fixture(params=[True, False], ids=["float64", "pairs"])
def wide(request: pytest.FixtureRequest) -> Iterator[bool]:
    with device_with(float64=request.param):
        yield request.param


def cancelling(count: int, seed: int = 0) -> Any:
    """Large numbers that go away, and small ones that stay."""
    r = np.random.default_rng(seed)
    large = r.standard_normal(count // 2).astype(np.float32) * 1e6
    x = np.concatenate([large, -large, r.random(count - 2 * (count // 2)).astype(np.float32)])
    return r.permutation(x).astype(np.float32) + r.standard_normal(count).astype(np.float32) * 1e-3


@pytest.mark.parametrize("count", [1, 2, 65, 1000, 5000])
@pytest.mark.sample(2)
def test_running_sums_lose_nothing(wide: bool, count: int) -> None:
    """Each is the exact sum, rounded, but for the last bits of float32: cancellation would take
    most of them."""
    x = cancelling(count)
    found = run(CumSum(axis=0), x)
    total, seen = Fraction(0), 0.0
    for k, v in enumerate(x.tolist()):
        total, seen = total + Fraction(v), seen + abs(v)
        assert abs(found[k] - float(total)) <= 2.0**-23 * abs(float(total)) + 2.0**-44 * seen


def test_updates_that_meet_lose_nothing(wide: bool) -> None:
    u = cancelling(3000).reshape(3000, 1)
    index = np.zeros(3000, np.int32)
    found = run(ScatterAdd(axis=0), np.zeros((2, 1), np.float32), index, u)
    exact = math.fsum(u[:, 0].tolist())
    assert abs(found[0, 0] - exact) <= 2.0**-23 * abs(exact) + 2.0**-44 * np.abs(u).sum()
    assert found[1, 0] == 0


def test_sums_that_are_not_finite(wide: bool) -> None:
    x = np.array([1.0, np.inf, 2.0, -np.inf, 1.0], np.float32)
    np.testing.assert_array_equal(
        run(CumSum(axis=0), x), np.array([1, np.inf, np.inf, np.nan, np.nan], np.float32)
    )
    y = np.array([3e38, 3e38, 1.0], np.float32)
    found = run(CumSum(axis=0), y)
    assert found[0] == np.float32(3e38)
    assert np.isinf(found[1:]).all()


def test_a_sum_of_negative_zeros_keeps_its_sign(wide: bool) -> None:
    x = np.array([-0.0, -0.0], np.float32)
    with np.errstate(all="ignore"):
        expected = np.signbit(np.cumsum(x))
    np.testing.assert_array_equal(np.signbit(run(CumSum(axis=0), x)), expected)
