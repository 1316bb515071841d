"""Exact values and derivatives of special functions, by mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

import retrograd as rg

mp = mpmath.mp


def double(x: Any) -> rg.Tensor:
    return rg.tensor(x, dtype=rg.float64)


def check(
    name: str,
    exact: Callable[..., Any],
    points: list[tuple[float, ...]],
    orders: list[tuple[int, ...]],
    tolerance: float = 1e-11,
) -> None:
    """A function and its partial derivatives of these orders at points."""
    f = getattr(rg.special, name)
    for point in points:
        xs = [double(v) for v in point]
        for order in orders:
            found: Any = f
            for i, times in enumerate(order):
                for _ in range(times):
                    found = rg.grad(found, argnums=i)
            with mp.workdps(70):
                right = exact(*map(mp.mpf, point))
                if any(order):
                    right = mp.diff(exact, tuple(map(mp.mpf, point)), order, h=mp.mpf(10) ** -22)
                right = float(mp.re(right))
            np.testing.assert_allclose(
                found(*xs).numpy(), right, tolerance, 1e-300, err_msg=f"{name}{point} {order}"
            )
