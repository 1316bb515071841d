"""Sets, against NumPy, and gradients of the elements that stay."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import SHAPES, agree, numbers


def test_unique() -> None:
    for seed, shape in enumerate(SHAPES):
        x = numbers(seed, shape, wild=True)
        for flags in itertools.product((False, True), repeat=3):
            agree("unique", x, *flags)
            agree("unique", x, *flags, equal_nan=False)
    x = numbers(1, (4, 2))[[0, 1, 0, 2, 1]]
    for axis in (0, 1):
        agree("unique", x, True, True, True, axis=axis)


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_two_sets(name: str) -> None:
    for n, m in ((5, 4), (0, 3), (3, 0), (9, 9)):
        agree(name, numbers(n, (n,)), numbers(m + 20, (m,)))
        agree(name, numbers(n, (n,), "int64"), numbers(m + 20, (m,), "int64"))
    agree(name, numbers(1, (2, 3)), numbers(2, (3, 1)))
    if name != "union1d":
        agree(name, np.array([3.0, 1.0]), np.array([2.0, 3.0]), assume_unique=True)
    with pytest.raises(rg.TraceError, match="size"):
        rg.jit(getattr(rg, name))(rg.ones(2), rg.ones(2))


def test_gradient_goes_to_the_first() -> None:
    x = rg.tensor([3.0, 1.0, 3.0], requires_grad=True)
    (rg.unique(x) * [10.0, 1.0]).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 10.0, 0.0]
