"""Elliptic and exponential integrals and the rest: against SciPy and mpmath, at tails and poles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import retrograd as rg
from tests.functions.special.derivatives import check, double

mp = mpmath.mp
X = np.array([-1e4, -300.5, -30, -2.2, -1, -0.5, -1e-3, 0, 1e-9, 0.3, 0.99, 1, 1.5, 2, 30, 1e5])
ONE = ["ellipe", "ellipk", "exp1", "expi", "spence", "zetac"]
ORDERS = np.array([0.0, 1, 2, 5])


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str, backend: str) -> None:
    with np.errstate(all="ignore"), rg.backend(backend):
        found = getattr(rg.special, name)(double(X)).numpy()
        right = getattr(scipy.special, name)(X)
    np.testing.assert_allclose(found, right, 1e-13, 1e-15)


SEVERAL: dict[str, Any] = {
    "ellipkm1": (np.array([0.0, 1e-300, 1e-12, 0.3, 1.0, 7.0, 1e9]),),
    "expn": (ORDERS[:, None], np.abs(X)),
    "yn": (ORDERS[:, None], np.abs(X)),
    "hyp1f1": (ORDERS[1:, None], 2.5, X[3:-1]),
    "hyp2f1": (ORDERS[1:, None], 0.5, 2.5, X[2:11]),
    "lpmv": (ORDERS[:3, None], 3.5, X[5:11]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_arguments(name: str) -> None:
    args = [np.array(a, float) for a in SEVERAL[name]]
    with np.errstate(all="ignore"), rg.backend("reference"):
        found = getattr(rg.special, name)(*map(double, args)).numpy()
        right = getattr(scipy.special, name)(*args)
    np.testing.assert_allclose(found, right, 1e-13, 1e-300)


def zetac(s: Any) -> Any:
    return mp.zeta(s) - 1


def spence(x: Any) -> Any:
    return mp.polylog(2, 1 - x)


CASES: dict[str, Any] = {
    "ellipk": (mp.ellipk, [(-1e6,), (-1.0,), (0.0,), (0.5,), (1 - 2.0**-40,)], [(1,), (2,)]),
    "ellipe": (mp.ellipe, [(-1e6,), (-1.0,), (0.0,), (0.5,), (1 - 2.0**-40,)], [(1,), (2,)]),
    "ellipkm1": (lambda p: mp.ellipk(1 - p), [(1e-9,), (0.5,), (3.0,)], [(1,), (2,)]),
    "exp1": (mp.e1, [(1e-6,), (0.7,), (30.0,)], [(1,), (2,)]),
    "expi": (mp.ei, [(-3.0,), (0.4,), (30.0,)], [(1,), (2,)]),
    "spence": (spence, [(1e-6,), (0.7,), (0.999,), (1.001,), (30.0,)], [(1,), (2,)]),
    "zetac": (zetac, [(-9.5,), (-0.5,), (0.3,), (0.999,), (2.0,), (40.0,), (70.0,)], [(1,), (2,)]),
    "expn": (lambda n, x: mp.expint(int(n), x), [(1.0, 0.5), (3.0, 2.0)], [(0, 1), (0, 2)]),
    "yn": (lambda n, x: mp.bessely(int(n), x), [(0.0, 0.5), (3.0, 2.0)], [(0, 1), (0, 2)]),
    "hyp1f1": (mp.hyp1f1, [(0.5, 1.5, -2.0), (2.0, 3.0, 4.0)], [(0, 0, 1), (0, 0, 2)]),
    "hyp2f1": (mp.hyp2f1, [(0.5, 1.5, 2.5, 0.3), (1.0, 2.0, 3.5, -4.0)], [(0, 0, 0, 1)]),
    "lpmv": (lambda m, v, x: mp.legenp(v, int(m), x), [(0.0, 3.0, 0.3), (1.0, 2.5, 0.6)],
             [(0, 0, 1), (0, 0, 2)]),
}  # fmt: skip


LONG = {"hyp2f1", "lpmv", "yn", "zetac"}  # in mpmath
WAYS = [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in CASES]


@pytest.mark.parametrize("name", WAYS)
def test_derivatives(name: str) -> None:
    exact, points, orders = CASES[name]
    with rg.backend("reference"):
        if name in ("expn", "yn", "lpmv"):  # whole numbers are not to be differentiated in
            for *fixed, x in points:
                orders_of_x = [(o[-1],) for o in orders]
                part = Part(name, tuple(fixed))
                part.check(lambda t, f=fixed: exact(*map(mp.mpf, f), t), x, orders_of_x)
        else:
            check(name, exact, points, orders, 2e-10 if name.startswith("hyp") else 1e-11)


class Part:
    """A function of its last argument."""

    def __init__(self, name: str, fixed: tuple[float, ...]) -> None:
        self.f, self.fixed = getattr(rg.special, name), [double(v) for v in fixed]

    def check(self, exact: Any, x: float, orders: Sequence[tuple[int, ...]]) -> None:
        for (times,) in orders:
            found: Any = lambda t: self.f(*self.fixed, t)
            for _ in range(times):
                found = rg.grad(found)
            with mp.workdps(70):
                right = float(mp.diff(exact, mp.mpf(x), times, h=mp.mpf(10) ** -22))
            np.testing.assert_allclose(found(double(x)).numpy(), right, 1e-11)


def test_poles_and_ends() -> None:
    f = rg.special
    with rg.backend("reference"), np.errstate(all="ignore"):
        assert f.ellipk(double([1.0, 1.5])).tolist()[0] == np.inf
        assert rg.grad(f.ellipk)(double(1.0)).item() == np.inf
        assert rg.grad(f.ellipe)(double(1.0)).item() == -np.inf
        assert rg.grad(f.spence)(double(0.0)).item() == -np.inf
        assert rg.grad(f.spence)(double(1.0)).item() == -1.0
        assert rg.grad(f.exp1)(double(0.0)).item() == -np.inf
        assert np.isnan(rg.grad(f.expn)(double(2.0), double(0.5)).item())


def test_compiled_programs_call_it() -> None:
    x = np.linspace(0.1, 3.0, 7)
    found = rg.jit(rg.vmap(rg.grad(lambda t: rg.special.spence(t) * rg.special.exp1(t))))(double(x))
    right = scipy.special.exp1(x) * np.log(x) / (1 - x) - scipy.special.spence(x) * np.exp(-x) / x
    np.testing.assert_allclose(found.numpy(), right, 1e-13)
