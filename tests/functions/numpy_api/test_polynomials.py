"""Polynomials, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import agree, numbers

P, Q = np.array([2.0, -1.0, 0.5, 3.0]), np.array([1.0, -2.0])


def test_arithmetic() -> None:
    for name in ("polyadd", "polysub", "polymul", "polydiv"):
        for a, b in ((P, Q), (Q, P), (P, P)):
            if name == "polydiv" and a is b:  # NumPy drops leading zeros of a remainder
                continue
            agree(name, a, b)
    found = rg.polydiv(P, P)
    np.testing.assert_allclose(found[0].numpy(), [1.0])
    np.testing.assert_allclose(found[1].numpy(), [0.0, 0.0, 0.0])
    agree("polyadd", P.astype(int), Q.astype(int))
    agree("polymul", P.astype(complex), Q * 1j)


def test_values_and_calculus() -> None:
    for shape in ((), (3,), (2, 2)):
        agree("polyval", P, numbers(0, shape))
    agree("polyval", P[:0], numbers(0, (3,)))
    for m in (0, 1, 2, 5):
        agree("polyder", P, m)
        if m < 5:
            agree("polyint", P, m)
    agree("polyint", P, 2, [5.0, 6.0])
    agree("polyint", P, 1, 7.0)
    agree("polyder", P, -1)


def test_zeros() -> None:
    agree("poly", np.array([1.0, -2.0, 0.5]))
    agree("poly", np.array([[2.0, 1.0], [1.0, 3.0]]), tolerance=1e-12)
    for p in (P, np.array([0.0, 1.0, 0.0, -1.0, 0.0]), np.array([3.0]), np.array([0.0])):
        found, right = np.sort_complex(rg.roots(p).numpy()), np.sort_complex(np.roots(p))
        np.testing.assert_allclose(found, right, 1e-12, 1e-12)
    # The zeros of x**2 - c are the roots of c, whose slope is known.
    slope = rg.grad(lambda c: rg.max(rg.roots(rg.stack([1.0, 0.0, -c])).real))
    assert slope(rg.tensor(4.0, dtype=rg.float64)).item() == pytest.approx(0.25)


def test_fits() -> None:
    x, y = np.linspace(-1, 2, 9), numbers(3, (9,))
    for degree in (0, 1, 3):
        agree("polyfit", x, y, degree, tolerance=1e-10)
        agree("polyfit", x, y, degree, w=np.abs(y) + 1, tolerance=1e-10)
    agree("polyfit", x, np.stack([y, y * 2], 1), 2, tolerance=1e-10)
    with pytest.raises(rg.ArgumentError, match="lstsq"):
        rg.polyfit(x, y, 1, full=True)
    with pytest.raises(rg.ShapeError):
        rg.polyfit(x, y[:3], 1)
