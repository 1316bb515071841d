"""Single steps: the conditions of order, errors that shrink as they should, the choice of steps."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.solvers import dormand_prince as dp

A = np.array([[*row, *[0.0] * (7 - len(row))] for row in dp.A])
B, C = A[-1], np.array(dp.C)


def scalar(x: float) -> rg.Tensor:
    return rg.tensor(x, dtype="float64")


def step(h: float) -> tuple[float, list[rg.Tensor], rg.Tensor, rg.Tensor]:
    """One step of `y' = y cos t` from 1 at 0, whose solution is `exp(sin t)`."""
    y = rg.tensor([1.0], dtype="float64")

    def f(t, y):
        return y * rg.cos(t)

    new, slopes = dp.attempt(f, scalar(0.0), y, scalar(h), f(scalar(0.0), y))
    return new.item(), slopes, y, new


def test_coefficients_fulfil_the_conditions_of_order_5() -> None:
    np.testing.assert_allclose(A.sum(axis=1), C, atol=1e-14)
    for k in range(5):
        assert B @ C**k == pytest.approx(1 / (k + 1), abs=1e-14)
    assert pytest.approx(1 / 6, abs=1e-14) == B @ A @ C
    assert pytest.approx(1 / 24, abs=1e-14) == B @ A @ A @ C
    assert pytest.approx(1 / 15, abs=1e-14) == (B * C) @ A @ C**2
    for k in range(4):  # that of the error is the difference of two methods of order 4
        assert np.array(dp.E) @ C**k == pytest.approx(0, abs=1e-14)


def test_the_error_of_a_step_shrinks_with_its_sixth_power() -> None:
    errors = [abs(step(h)[0] - math.exp(math.sin(h))) for h in (0.4, 0.2)]
    assert 45 < errors[0] / errors[1] < 90


def test_the_continuous_output_runs_through_the_step() -> None:
    h = 0.2
    _, slopes, y, new = step(h)
    c = dp.continuous(scalar(h), slopes, y, new)
    for theta in (0.0, 0.3, 0.7, 1.0):
        exact = math.exp(math.sin(theta * h))
        assert dp.at(scalar(theta), c).item() == pytest.approx(exact, abs=2e-6)


def test_steps_grow_and_shrink_within_bounds() -> None:
    h = scalar(0.5)
    found = [dp.next_step(h, scalar(e)).item() for e in (0.0, 1.0, 2.0**5, 1e30, math.nan)]
    np.testing.assert_allclose(found, [5.0, 0.45, 0.225, 0.1, 0.1])


def test_the_error_is_relative_to_the_tolerance() -> None:
    h = 0.2
    _, slopes, y, new = step(h)
    fine, coarse = (dp.error_of(scalar(h), slopes, y, new, tol, tol).item() for tol in (1e-8, 1e-6))
    assert fine == pytest.approx(100 * coarse, rel=1e-12)
    estimate = h * sum(e * k.item() for e, k in zip(dp.E, slopes, strict=True))
    assert coarse == pytest.approx(abs(estimate) / (1e-6 * (1 + new.item())), rel=1e-12)


def test_the_first_step_goes_the_right_way_and_stands_for_what_stands_still() -> None:
    y = rg.tensor([1.0], dtype="float64")

    def first(rate, sign):
        f = lambda t, y: rate * y
        return dp.first_step(f, scalar(0.0), y, f(None, y), sign, 1e-6, 1e-6).item()

    # A fifth root of a hundredth over the second derivative, in units of the tolerance.
    assert first(-1.0, 1.0) == pytest.approx((0.01 * 2e-6) ** 0.2, rel=1e-6)
    assert first(-1.0, -1.0) == pytest.approx(-((0.01 * 2e-6) ** 0.2), rel=1e-6)
    assert first(-100.0, 1.0) == pytest.approx((0.01 * 2e-6 / 1e4) ** 0.2, rel=1e-6)
    assert first(0.0, 1.0) > 0
