"""Methods whose functions stand above the class, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4))
C = rng.normal(size=(2, 3, 4))
I = np.array([[0, 2, 1], [3, 3, 0]])  # noqa: E741


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("fmax", (B,)), ("fmin", (B,)), ("fmod", (B,)), ("deg2rad", ()), ("rad2deg", ()),
        ("heaviside", (B,)), ("nan_to_num", ()), ("isposinf", ()), ("isneginf", ()), ("isreal", ()),
        ("logaddexp2", (B,)), ("float_power", (2,)), ("fliplr", ()), ("flipud", ()), ("rot90", ()),
        ("corrcoef", ()), ("cov", ()), ("isclose", (B,)), ("allclose", (A,)), ("unique", ()),
        ("nansum", (1,)), ("nanmean", (1,)), ("diagflat", (1,)),
    ],
)  # fmt: skip
def test_values(name: str, args: tuple[Any, ...]) -> None:
    found = getattr(rg.tensor(A), name)(*args)
    wanted = getattr(np, name)(A, *args)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-12)


def test_unique_gives_what_pytorch_gives() -> None:
    values, inverse, counts = rg.tensor([[3, 1], [3, 3]]).unique(
        return_inverse=True, return_counts=True
    )
    assert (values.tolist(), counts.tolist()) == ([1, 3], [1, 3])
    assert inverse.tolist() == [[1, 0], [1, 1]]


def test_parts() -> None:
    parts = rg.tensor(C).dsplit(2)
    np.testing.assert_array_equal(parts[1].numpy(), np.dsplit(C, 2)[1])
    assert [p.shape for p in rg.tensor(A).hsplit(2)] == [(3, 2), (3, 2)]
    assert [p.shape for p in rg.tensor(A).vsplit(3)] == [(1, 4)] * 3
