"""Box-Cox, exponentials, degrees: values against SciPy, derivatives against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import retrograd as rg
from tests.functions.special.derivatives import check, double

mp = mpmath.mp
X = np.array([-1e4, -300.5, -30, -2.2, -1, -0.5, -1e-3, 0, 1e-9, 0.3, 1, 1.5, 2, 30, 150.5, 1e5])
ONE = ["cosm1", "exprel", "exp10", "sindg", "cosdg", "tandg"]
TWO = ["boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p", "huber", "pseudo_huber"]


@pytest.mark.parametrize("name", ONE + TWO)
def test_values(name: str) -> None:
    args = (X,) if name in ONE else (X, X[:, None].copy())
    with np.errstate(all="ignore"), rg.backend("reference"):
        found = getattr(rg.special, name)(*map(double, args)).numpy()
        right = getattr(scipy.special, name)(*args)
    np.testing.assert_allclose(found, right, 2e-13, 1e-300)


def test_the_rest() -> None:
    with rg.backend("reference"):
        found = rg.special.cotdg(double([0.0, 45.0, 90.0, 270.0])).tolist()
        assert found == pytest.approx([np.inf, 1.0, 0.0, 0.0], rel=1e-15, abs=0)
        # SciPy's loses digits there.
        assert abs(rg.special.cotdg(double(1e-9)).item() * 1e-9 - 180 / np.pi) < 1e-13
        angle = rg.special.radian(double(X), double(3.0), double(2.0)).numpy()
    np.testing.assert_allclose(angle, scipy.special.radian(X, 3.0, 2.0), 1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_one_rounding(dtype: str) -> None:
    """Values are those of float64, rounded."""
    x = np.array([0.1, 0.7, 3.0], dtype)
    with rg.backend("reference"):
        for name in ("exprel", "exp10", "ellipk", "rgamma", "zetac"):
            found = getattr(rg.special, name)(rg.asarray(x[:2])).numpy()
            wide = getattr(rg.special, name)(rg.asarray(x[:2].astype(np.float64))).numpy()
            np.testing.assert_array_equal(found, wide.astype(dtype), strict=True)


def exprel(x: Any) -> Any:
    return mp.expm1(x) / x if x else mp.mpf(1)


def boxcox(x: Any, s: Any) -> Any:
    return (mp.power(x, s) - 1) / s if s else mp.log(x)


def inv_boxcox(y: Any, s: Any) -> Any:
    return mp.power(1 + s * y, 1 / s) if s else mp.exp(y)


def cosine(x: Any) -> Any:
    return mp.cospi(x / 180)


CASES: dict[str, Any] = {
    "exprel": (exprel, [(-30.0,), (0.3,), (1.0,), (9.0,), (1e-9,)], [(1,), (2,)]),
    "exp10": (lambda x: mp.power(10, x), [(-3.0,), (2.0,)], [(1,), (2,)]),
    "cosm1": (lambda x: mp.cos(x) - 1, [(1e-4,), (2.0,)], [(1,), (2,)]),
    "boxcox": (boxcox, [(2.0, 0.3), (0.5, -2.0), (1.5, 1e-7), (30.0, 4.0)],
               [(1, 0), (0, 1), (1, 1), (0, 2)]),
    "boxcox1p": (lambda x, s: boxcox(1 + x, s), [(1e-8, 0.3), (2.0, 0.5)], [(1, 0), (0, 1)]),
    "inv_boxcox": (inv_boxcox, [(2.0, 0.3), (0.5, 1e-7), (-0.2, -2.0)],
                   [(1, 0), (0, 1), (1, 1), (0, 2)]),
    "inv_boxcox1p": (lambda y, s: inv_boxcox(y, s) - 1, [(1e-8, 0.3), (2.0, 0.5)],
                     [(1, 0), (0, 1)]),
    "pseudo_huber": (lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1),
                     [(2.0, 1e-6), (0.5, -3.0)], [(1, 0), (0, 1), (0, 2)]),
    "cosdg": (cosine, [(60.0,), (-401.0,)], [(1,), (2,)]),
    "sindg": (lambda x: mp.sinpi(x / 180), [(59.0,), (180.0,)], [(1,)]),
    "tandg": (lambda x: mp.tan(mp.pi * x / 180), [(59.0,), (100.0,)], [(1,), (2,)]),
    "cotdg": (lambda x: mp.cot(mp.pi * x / 180), [(59.0,), (100.0,)], [(1,)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(4)
def test_derivatives(name: str) -> None:
    exact, points, orders = CASES[name]
    with rg.backend("reference"):
        check(name, exact, points, orders)


def test_where_branches_meet() -> None:
    """Derivatives at the ends of domains and where a parameter is 0."""
    with rg.backend("reference"):
        x, zero = double(2.0), double(0.0)
        by_parameter = rg.grad(rg.special.boxcox, argnums=1)(x, zero).item()
        assert by_parameter == pytest.approx(np.log(2.0) ** 2 / 2, rel=1e-14)
        assert rg.grad(rg.special.exprel)(zero).item() == 0.5
        assert rg.grad(rg.grad(rg.special.exprel))(zero).item() == pytest.approx(1 / 3, rel=1e-15)
        assert rg.grad(rg.special.huber, argnums=1)(double(1.0), double(-3.0)).item() == -1.0
        assert rg.grad(rg.special.pseudo_huber, argnums=1)(zero, x).item() == 0.0


@pytest.mark.parametrize(("f", "at"), [(rg.special.boxcox, 0.0), (rg.special.boxcox1p, -1.0)])
@pytest.mark.parametrize("s", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_box_cox_where_the_power_is_of_zero(f: Any, at: float, s: float) -> None:
    """`x**(s - 1)` is the slope, `(s - 1) x**(s - 2)` the next; in s those of `-1 / s`."""
    with rg.backend("reference"):
        slope = rg.grad(f)
        with np.errstate(divide="ignore"):
            expected = (
                np.float64(0) ** (s - 1),
                0.0 if s == 1 else (s - 1) * np.float64(0) ** (s - 2),
            )
        assert f(at, np.float64(s)).item() == pytest.approx(-1 / s)
        assert slope(np.float64(at), s).item() == expected[0]
        assert rg.grad(slope)(np.float64(at), s).item() == expected[1]
        by_power = rg.grad(f, argnums=1)
        np.testing.assert_allclose(by_power(at, np.float64(s)).item(), 1 / s**2)
        np.testing.assert_allclose(rg.grad(by_power, 1)(at, np.float64(s)).item(), -2 / s**3)
