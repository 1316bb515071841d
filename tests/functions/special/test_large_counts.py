"""Numbers of events beyond 2**31, and angles beyond 1e14 degrees: what SciPy's functions of the
same name lose there. They keep the last 32 bits of such numbers; what they are made of, SciPy's
incomplete gamma and beta functions, does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed (extra: dev)")

K = np.array([3, 40, 2**31 + 5, 2**33 + 1, 5 * 10**9])
N = np.array([9, 50, 2**31 + 9, 2**33 + 6, 5 * 10**9 + 3])
P = np.array([0.25, 0.7, 0.5, 0.999999999, 0.9999999999])
# How the functions of events are made of the incomplete ones, of floats.
MADE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "bdtr": (lambda k, n, p: special.betaincc(k + 1.0, n - k, p), (K, N, P)),
    "bdtrc": (lambda k, n, p: special.betainc(k + 1.0, n - k, p), (K, N, P)),
    "bdtri": (lambda k, n, y: special.betainccinv(k + 1.0, n - k, y), (K, N, P)),
    "nbdtr": (lambda k, n, p: special.betainc(1.0 * n, k + 1.0, p), (K, N, P)),
    "nbdtrc": (lambda k, n, p: special.betaincc(1.0 * n, k + 1.0, p), (K, N, P)),
    "nbdtri": (lambda k, n, y: special.betaincinv(1.0 * n, k + 1.0, y), (K, N, P)),
    "pdtri": (lambda k, y: special.gammainccinv(k + 1.0, y), (K, P)),
}


@pytest.mark.parametrize("name", MADE)
def test_numbers_of_events(name: str) -> None:
    made, arguments = MADE[name]
    wanted = made(*arguments)
    found = getattr(rg.special, name)(*map(rg.asarray, arguments)).numpy()
    np.testing.assert_allclose(found, wanted, 1e-7)
    with np.errstate(all="ignore"):
        theirs = getattr(special, name)(*arguments)
    np.testing.assert_allclose(theirs[:2], wanted[:2], 1e-7)  # the same function
    assert not np.allclose(theirs[2:], wanted[2:], 1e-2)  # of which SciPy loses these


def test_cotangent_of_many_turns() -> None:
    x = np.array([12345678901234567, 2**55 + 3, -(2**50) - 7])
    degrees = x.astype(np.float64)
    with mpmath.workdps(60):
        wanted = [float(mpmath.cot(mpmath.pi * int(v) / 180)) for v in degrees]
    np.testing.assert_allclose(rg.special.cotdg(rg.asarray(degrees)).numpy(), wanted, 1e-12)
    assert not special.cotdg(degrees).any()


def test_beta_of_negative_and_positive_integers() -> None:
    """At negative integers a the logarithm of B(a, b) is that of B(1 - a - b, b), where b is whole
    and 1 - a - b is positive; SciPy takes only those b for whole that have 32 bits."""
    a, b = -(2.0**40), 2.0**33
    with mpmath.workdps(60):
        x, y = mpmath.mpf(1 - a - b), mpmath.mpf(b)
        wanted = float(mpmath.loggamma(x) + mpmath.loggamma(y) - mpmath.loggamma(x + y))
    found = rg.special.betaln(*(rg.asarray(np.float64(v)) for v in (a, b))).item()
    np.testing.assert_allclose(found, wanted, 1e-12)
    assert special.betaln(a, b) == np.inf
    np.testing.assert_allclose(special.betaln(-(2.0**20), 2.0**13), rg.special.betaln(
        rg.asarray(-(2.0**20), dtype=rg.float64), rg.asarray(2.0**13, dtype=rg.float64)
    ).item(), 1e-9)  # fmt: skip
