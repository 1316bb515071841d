"""Linear and bilinear maps as functions, by hand and against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd import nn
from tests.nn.functional.torch_cases import (
    Case,
    agree,
    compare,
    floats,
    normal,
)

F = nn.functional

CASES: dict[str, Case] = {
    "bilinear": (
        lambda m, a, b, w, c: m.bilinear(a, b, w, c),
        (normal(4, 2, 3), normal(4, 2, 5), normal(6, 3, 5), normal(6)),
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str) -> None:
    f, arrays = CASES[name]
    compare(f, arrays, name)


@pytest.mark.torch
@pytest.mark.parametrize(
    "shapes",
    [((4,), (4,)), ((2, 4), (4,)), ((2, 3, 4), (4,)), ((2, 3, 4), (4,), ()), ((4,), (5, 4), (5,)),
     ((2, 4), (5, 4), ()), ((0, 4), (5, 4), (5,)), ((2, 0), (5, 0), (5,)), ((2, 4), (5, 4), (1,))],
)  # fmt: skip
def test_linear(shapes):
    assert agree("linear", *(np.asarray(floats(*s)) for s in shapes))


def test_by_hand() -> None:
    x, w, b = normal(2, 4), normal(3, 4, seed=1), normal(3, seed=2)
    np.testing.assert_allclose(F.linear(x, w, b).numpy(), x @ w.T + b, rtol=1e-12)
    y, v = normal(2, 5, seed=3), normal(3, 4, 5, seed=4)
    expected = np.einsum("ni,kij,nj->nk", x, v, y) + b
    np.testing.assert_allclose(F.bilinear(x, y, v, b).numpy(), expected, rtol=1e-12)
