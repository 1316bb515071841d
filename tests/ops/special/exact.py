"""Derivatives of special functions against mpmath's, by differences of many digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from retrograd.ir import Node
from tests.ops.derive import derive, derive_forward

mp = mpmath.mp
Exact = Callable[..., Any]


def partial(f: Exact, xs: Sequence[float], orders: Sequence[int]) -> float:
    """A partial derivative of a function of mpmath's numbers."""
    with mp.workdps(70):
        at = tuple(map(mp.mpf, xs))
        h = mp.mpf(10) ** -12
        return float(mp.re(mp.diff(f, at, tuple(orders), h=h) if any(orders) else f(*at)))


def orders_of(count: int, *inputs: int) -> tuple[int, ...]:
    """How often a function of so many arguments is differentiated in each."""
    return tuple(inputs.count(i) for i in range(count))


def check_derivatives(
    op: Callable[..., Node], f: Exact, xs: Sequence[float], missing: Sequence[int] = ()
) -> None:
    """The gradient of `op` at xs and its derivatives, in both modes, against those of `f`. Those in
    `missing` are NaN, at once or as second ones."""
    _, gradient, hessian = derive(op, *xs)
    ahead, twice = derive_forward(op, *xs)
    n = len(xs)
    for i in range(n):
        found = [gradient[i], ahead[i]]
        if i in missing:
            assert np.isnan(found).all(), (xs, i)
            continue
        where = f"{xs}, by {i}"
        np.testing.assert_allclose(found, partial(f, xs, orders_of(n, i)), 1e-11, 0, err_msg=where)
        for j in set(range(n)).difference(missing):
            expected = partial(f, xs, orders_of(n, i, j))
            found = [hessian[i, j], twice[i, j]]
            np.testing.assert_allclose(found, expected, 1e-9, 1e-30, err_msg=f"{where} and {j}")
