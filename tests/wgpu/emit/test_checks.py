"""Indices out of range: noted wherever one stands, whatever integers they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu
X = np.arange(12, dtype=np.float32).reshape(6, 2)


def rows(index: Any) -> Any:
    with rg.backend("wgpu"):
        return rg.jit(lambda x, i: x[i])(rg.tensor(X), rg.tensor(index)).numpy()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
@pytest.mark.sample(1)
def test_ends_of_an_axis(dtype: str) -> None:
    signed = dtype.startswith("i")
    inside = np.array([0, 5, *([-6, -1] if signed else [])], dtype)
    np.testing.assert_array_equal(rows(inside), X[inside])
    far = np.iinfo(dtype)
    for wrong in (6, far.max, *((-7, far.min) if signed else ())):
        index = np.array([0, wrong, 1], dtype)
        with pytest.raises(rg.IndexRangeError, match=rf"the index {wrong} on axis 0 of size 6"):
            rows(index)


@pytest.mark.parametrize("at", [0, 64, 4096, 70_000])
@pytest.mark.sample(1)
def test_one_of_many(at: int) -> None:
    index = np.zeros(70_001, np.int32)
    assert rows(index).shape == (70_001, 2)
    index[at] = 6
    with pytest.raises(rg.IndexRangeError, match="the index 6"):
        rows(index)


def test_which_of_several_checks() -> None:
    """The error is that of the operation whose index is wrong."""

    def f(x: Any, i: Any, j: Any) -> Any:
        return x[i].sum() + rg.zeros((3, 2)).at[j].add(x[: len(j)]).max()

    with rg.backend("wgpu"):
        step, good = rg.jit(f), np.array([1, 2])
        assert np.isfinite(step(X, good, good).item())
        with pytest.raises(rg.IndexRangeError, match="the index 9 on axis 0 of size 6"):
            step(X, np.array([9, 0]), good).item()
        with pytest.raises(rg.IndexRangeError, match="the index 3 on axis 0 of size 3"):
            step(X, good, np.array([0, 3])).item()
        assert np.isfinite(step(X, good, good).item())


def test_of_no_indices() -> None:
    assert rows(np.zeros(0, np.int64)).shape == (0, 2)
