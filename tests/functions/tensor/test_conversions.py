"""Conversions of a tensor under PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterator

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


def test_conversions_return_the_tensor_itself_where_nothing_changes() -> None:
    x = rg.ones(2)
    assert x.float() is x
    assert x.to(rg.float32) is x.cpu() is x.contiguous() is x.to("cpu") is x
    assert x.double().dtype is x.to("cpu", rg.float64).dtype is rg.float64
    assert x.to(rg.zeros(1, dtype=rg.int8)).dtype is rg.int8
    assert [getattr(x, n)().dtype for n in ("half", "int", "long", "bool", "byte")] == [
        rg.float16, rg.int32, rg.int64, rg.bool, rg.uint8
    ]  # fmt: skip


def test_new_tensors_are_like_the_one_they_are_made_of() -> None:
    x = rg.tensor(A)
    assert x.new_full((2,), 3).tolist() == [3.0, 3.0]
    assert x.new_zeros(2, 3).dtype is rg.float64
    assert x.new_tensor([1], requires_grad=True).requires_grad
