"""Special functions: native code's formulas written with arrays; SciPy's on the host."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
import scipy.special as sp

from retrograd.xla.lowering.all_rules import how
from tests.xla.lowering.programs import operations, value

X = np.concatenate([np.linspace(0.01, 30, 200), [1e-8, 150.0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("lgamma", "gammaln"),
        ("digamma", "digamma"),
        ("erfinv", "erfinv"),
        ("i0e", "i0e"),
        ("j1", "j1"),
    ],
)
def test_against_scipy(name: str, other: str) -> None:
    x = X / 200 if name == "erfinv" else X
    found = value(getattr(rg, name, None) or getattr(rg.special, name), x)
    np.testing.assert_allclose(found, getattr(sp, other)(x), rtol=2e-13, atol=2e-15)


def test_no_call_of_the_host() -> None:
    assert "custom_call" not in operations(rg.lgamma, X[:3])
    assert how("lgamma") == how("gammainc") == "native"


def test_those_of_scipy_run_on_the_host() -> None:
    assert how("hyp1f1") == how("spence") == "host"
    with pytest.raises(rg.BackendError, match="calls functions on the host"):
        operations(rg.special.spence, X[:3])
    np.testing.assert_allclose(value(rg.special.spence, X[:3]), sp.spence(X[:3]), rtol=1e-14)
