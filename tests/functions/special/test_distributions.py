"""Distribution functions: against SciPy on grids that reach into both tails, and mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import retrograd as rg
from tests.functions.special.derivatives import check, double

mp = mpmath.mp
X = np.array([-3.0, -0.5, 0, 1e-9, 0.3, 1, 2.5, 10, 30, 150.5])
P = np.abs(X)
U = np.array([1e-9, 1e-3, 0.1, 0.3, 0.6, 0.9, 0.999])
D = np.array([0.5, 1, 3.5, 30, 300])
K = np.array([-1.0, 0, 1, 2.5, 5, 10])
N = np.array([1.0, 2, 5, 10, 100])
CALLS: dict[str, Any] = {
    "bdtr": (K, N, U), "bdtrc": (K, N, U), "bdtri": (K, N, U),
    "chdtr": (D, X), "chdtrc": (D, X), "chdtri": (D, U),
    "fdtr": (D, D, X), "fdtrc": (D, D, X), "fdtri": (D, D, U),
    "gdtr": (D, D, X), "gdtrc": (D, D, X),
    "nbdtr": (K[[0, 1, 2, 4]], N, U), "nbdtrc": (K[[0, 1, 2, 4]], N, U),
    "nbdtri": (K[[0, 1, 2, 4]], N, U),
    "pdtr": (K, P), "pdtrc": (K, P), "pdtri": (K[[0, 1, 2, 4]], U),
    "stdtr": (D, X), "stdtrit": (D, U),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:non-integer arg")
@pytest.mark.filterwarnings("ignore:floating point number truncated")
def test_values(name: str) -> None:
    args = np.meshgrid(*CALLS[name], indexing="ij")
    whole = [a.astype(int) if name == "pdtri" and i == 0 else a for i, a in enumerate(args)]
    with np.errstate(all="ignore"), rg.backend("reference"):
        found = getattr(rg.special, name)(*map(double, args)).numpy()
        right = getattr(scipy.special, name)(*whole)
    # SciPy's inverses and its distribution of t lose up to half of the digits in the tails.
    loose = {"bdtri", "nbdtri", "stdtr", "stdtrit"}
    np.testing.assert_allclose(found, right, 1e-7 if name in loose else 1e-12, 1e-300)


def lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def student(df: Any, t: Any) -> Any:
    tail = beta(df / 2, mp.mpf(1) / 2, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def student_inverse(df: Any, p: Any) -> Any:
    start = mp.mpf(float(scipy.special.stdtrit(float(df), float(p))))
    return mp.findroot(lambda t: student(df, t) - p, start)


FIRST = [(1, 0), (0, 1), (0, 2)]
CASES: dict[str, Any] = {
    "chdtr": (lambda v, x: lower(v / 2, x / 2), [(3.0, 2.0), (30.0, 3.0)], [(0, 0), *FIRST]),
    "chdtrc": (lambda v, x: 1 - lower(v / 2, x / 2), [(3.0, 2.0), (3.0, 60.0)], [(0, 0), *FIRST]),
    "gdtr": (lambda a, b, x: lower(b, a * x), [(2.0, 3.0, 0.4)],
             [(1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    "fdtr": (lambda a, b, x: beta(a / 2, b / 2, a * x / (b + a * x)),
             [(3.0, 5.0, 0.4), (3.0, 5.0, 70.0)], [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    "fdtrc": (lambda a, b, x: 1 - beta(a / 2, b / 2, a * x / (b + a * x)), [(3.0, 5.0, 70.0)],
              [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    "stdtr": (student, [(3.0, -0.4), (3.0, 0.05), (3.0, -40.0), (30.0, 2.0), (30.0, -9.0)],
              [(0, 0), (1, 0), (0, 1), (0, 2)]),
    "stdtrit": (student_inverse, [(3.0, 0.01), (3.0, 0.4), (5.0, 0.8)], [(0, 0), (1, 0), (0, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(3)
def test_derivatives(name: str) -> None:
    exact, points, orders = CASES[name]
    with rg.backend("reference"):
        check(name, exact, points, orders, 1e-10)


def test_inverses_in_the_tails() -> None:
    """Where SciPy's lose digits: by going back."""
    with rg.backend("reference"):
        for p in (1e-12, 0.3, 0.999):
            found = rg.special.bdtri(double(5.0), double(10.0), double(p)).item()
            with mp.workdps(40):
                assert float(beta(5, 6, 1 - mp.mpf(found))) == pytest.approx(p, rel=1e-9)
        assert rg.special.nbdtri(double(0.0), double(100.0), double(1e-12)).item() == pytest.approx(
            1e-12 ** (1 / 100), rel=1e-14
        )


def test_slope_in_the_middle() -> None:
    with rg.backend("reference"):
        for df in (1.0, 7.0):
            slope = rg.grad(rg.special.stdtr, argnums=1)(double(df), double(0.0)).item()
            back = rg.grad(rg.special.stdtrit, argnums=1)(double(df), double(0.5)).item()
            assert slope == pytest.approx(
                scipy.special.gamma((df + 1) / 2)
                / (np.sqrt(df * np.pi) * scipy.special.gamma(df / 2))
            )
            assert slope * back == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize(
    ("df", "p"), [(0.02, 0.3), (0.5, 0.45), (3.0, 0.3), (30.0, 1e-3), (1e6, 0.1), (1e6, 0.01)]
)
def test_students_quantiles_from_either_end_of_the_beta_distribution(df: float, p: float) -> None:
    """Few degrees of freedom have far quantiles beside the centre, many have near ones beyond."""
    with rg.backend("reference"):
        t = rg.special.stdtrit(double(df), double(p)).item()
    with mp.workdps(40):
        n, x = mp.mpf(df), mp.mpf(t)
        tail = mp.betainc(n / 2, mp.mpf(0.5), 0, n / (n + x * x), regularized=True) / 2
        density = (1 + x * x / n) ** (-(n + 1) / 2) / mp.beta(n / 2, mp.mpf(0.5)) / mp.sqrt(n)
        wrong = float((tail - mp.mpf(p)) / density / x)
    assert abs(wrong) < 1e-13


@pytest.mark.parametrize(
    ("dfn", "dfd", "p"), [(0.025, 1.215, 0.644), (200.0, 3.0, 0.01), (2.0, 2.0, 1e-10)]
)
def test_quantiles_of_f_from_either_end(dfn: float, dfd: float, p: float) -> None:
    with rg.backend("reference"):
        x = rg.special.fdtri(double(dfn), double(dfd), double(p)).item()
    with mp.workdps(60):
        a, b = mp.mpf(dfn) / 2, mp.mpf(dfd) / 2
        y = dfn * mp.mpf(x)
        w = y / (dfd + y)
        density = w**a * (1 - w) ** b / mp.beta(a, b) / x
        wrong = float((mp.betainc(a, b, 0, w, regularized=True) - mp.mpf(p)) / density / x)
    assert abs(wrong) < 1e-13
