"""Dtypes of special functions where integers stand beside floats: SciPy's, and PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special

import retrograd as rg

TWO = ["xlogy", "expn", "yn", "zeta", "poch", "pdtri", "betaln", "chdtr", "binom", "boxcox"]
THREE = ["bdtr", "betainc"]


@pytest.fixture
def double_by_default() -> Iterator[None]:
    rg.set_default_dtype(rg.float64)
    try:
        yield
    finally:
        rg.set_default_dtype(rg.float32)


def arguments(name: str, integer: str) -> list[Any]:
    """Integers where SciPy takes numbers of events, else first, and float32."""
    one, other = np.array([2, 3], integer), np.array([0.25, 0.75], np.float32)
    return [other, one, other] if name in THREE else [one, other]


@pytest.mark.usefixtures("double_by_default")
@pytest.mark.parametrize("integer", ["int64", "int32", "uint32"])
def test_integers_are_doubles_as_in_scipy_where_python_floats_are(integer: str) -> None:
    for name in (*TWO, *THREE):
        given = arguments(name, integer)
        right = getattr(scipy.special, name)(*given)
        call = getattr(rg.special, name)
        for f in (call, rg.jit(call)):
            found = f(*map(rg.asarray, given))
            assert found.numpy().dtype == right.dtype == np.float64, name
            np.testing.assert_allclose(found.numpy(), right, 1e-12, err_msg=name)


@pytest.mark.usefixtures("double_by_default")
def test_python_integers_and_narrow_ones_leave_float32_alone() -> None:
    x = rg.asarray(np.array([0.25, 0.75], np.float32))
    assert rg.special.xlogy(2, x).dtype is rg.float32
    assert rg.special.expn(2, x).dtype is rg.float32
    assert rg.special.xlogy(np.array([2, 3], np.int16), x).dtype is rg.float32
    assert rg.special.xlogy(x > 0.5, x).dtype is rg.float32
    assert rg.special.gammaln(x).dtype is rg.float32
    assert (rg.asarray([2, 3]) * x).dtype is rg.float32  # promotion itself does not depend on it


def test_integers_take_the_dtype_of_floats_beside_them_else() -> None:
    for kind in (rg.float16, rg.bfloat16, rg.float32, rg.float64):
        x = rg.asarray([0.25, 0.75], dtype=kind)
        assert rg.special.xlogy(rg.asarray([2, 3]), x).dtype is kind
