"""least_squares against SciPy by itself, with differences for derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg
from retrograd.solvers import least_squares

T = np.linspace(0, 2, 15)
DATA = 2.5 * np.exp(-1.3 * T) + 0.5
DATA[3] += 4  # an outlier


def residuals(p: Any) -> Any:
    return p["a"] * rg.exp(-p["rates"][0] * T) + p["c"] * p["n"] - DATA


def by_hand(v: Any) -> Any:
    return v[0] * np.exp(-v[2] * T) + v[1] - DATA


X0 = {"a": np.array(1.0), "c": np.array(0.0), "n": np.array(1), "rates": [np.array(1.0)]}


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize("loss", ["linear", "soft_l1", "cauchy"])
def test_the_answers_are_scipys(method: str, loss: str) -> None:
    if method == "lm" and loss != "linear":
        with pytest.raises(rg.OptionError, match="the linear loss"):
            least_squares(residuals, X0, method=method, loss=loss)
        return
    expected = scipy.optimize.least_squares(
        by_hand, [1.0, 0.0, 1.0], method=method, loss=loss, f_scale=0.3, xtol=1e-12, ftol=1e-12
    )
    found = least_squares(residuals, X0, method=method, loss=loss, f_scale=0.3, tol=1e-12)
    x = [found.x["a"].item(), found.x["c"].item(), found.x["rates"][0].item()]
    np.testing.assert_allclose(x, expected.x, rtol=1e-5)
    assert found.cost == pytest.approx(expected.cost, rel=1e-8)
    np.testing.assert_allclose(found.fun, by_hand(x), atol=1e-10)
    assert found.success
    assert found.x["n"].item() == 1
    assert abs(found.grad["a"].item()) < 1e-6


def test_bounds() -> None:
    found = least_squares(residuals, X0, bounds={"a": (0, 2), "c": None, "n": None, "rates": None})
    free = scipy.optimize.least_squares(
        by_hand, [1.0, 0.0, 1.0], bounds=([0, -np.inf, -np.inf], [2, np.inf, np.inf])
    )
    assert found.x["a"].item() == pytest.approx(free.x[0], abs=1e-5)
    assert found.cost == pytest.approx(free.cost, rel=1e-6)


def test_misuse() -> None:
    with pytest.raises(rg.OptionError, match="did you mean 'dogbox'"):
        least_squares(residuals, X0, method="dogbx")
    with pytest.raises(rg.OptionError, match="loss is one of"):
        least_squares(residuals, X0, loss="none")
    with pytest.raises(rg.OptionError, match="lm takes no bounds"):
        least_squares(residuals, X0, method="lm", bounds=(0, 1))
    with pytest.raises(rg.OptionError, match=r"residuals \(1\) as unknowns \(3\)"):
        least_squares(lambda x: x.sum(), np.ones(3), method="lm")
    with pytest.raises(rg.NonFiniteError, match="2 residuals at x0"):
        least_squares(rg.log, np.array([-1.0, -2.0, 3.0]))
    with pytest.raises(rg.ArgumentError, match="takes a function"):
        least_squares(3, np.ones(3))  # type: ignore[arg-type]
