"""Likely causes: what fails, by the operation, or by the one that is differentiated."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.runtime.executors.nan_causes import CAUSES, DERIVATIVES, cause_of

BY_ARGUMENT: list[tuple[Any, float, str]] = [
    (rg.log, 0.0, "the logarithm of 0"),
    (rg.sqrt, -1.0, "the square root of a negative number"),
    (rg.exp, 1000.0, "exp overflows"),
    (lambda x: 1 / x, 0.0, "a division by zero"),
    (rg.acos, 2.0, "outside of -1 to 1"),
    (lambda x: x**-1.5, -2.0, "a negative number to a power that is no integer"),
    (lambda x: x * x, 1e30, "larger than the dtype holds"),
]


@pytest.mark.parametrize(("f", "x", "why"), BY_ARGUMENT, ids=[w for _, _, w in BY_ARGUMENT])
def test_of_operations(f: Any, x: float, why: str) -> None:
    with pytest.raises(rg.errors.NonFiniteError) as caught, rg.debug():
        f(rg.tensor(x)).numpy()
    assert why in cause_of(caught.value.node).why
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("f", "x", "why"),
    [(rg.sqrt, 0.0, "the derivative of sqrt at 0"), (rg.asin, 1.0, "ends of the domain"),
     (rg.cbrt, 0.0, "the derivative of cbrt at 0")],
)  # fmt: skip
def test_of_derivatives(f: Any, x: float, why: str) -> None:
    """Where the operation itself is fine, and its derivative is not."""
    assert np.isfinite(f(rg.tensor(x)).item())
    with pytest.raises(rg.errors.NonFiniteError) as caught, rg.debug():
        rg.grad(f)(rg.tensor(x)).numpy()
    assert why in cause_of(caught.value.node).why


def test_elementwise_causes_are_of_operations_that_there_are() -> None:
    others = {
        "reduce_sum", "dot_general", "cumulative_sum", "cumsum", "reduce_prod", "scatter_add",
        "cast", "polygamma", "reciprocal", "floor_divide", "remainder", "square",
    }  # fmt: skip
    assert {*CAUSES, *DERIVATIVES} - others <= ELEMENTWISE.keys()
