"""Tensors made with PyTorch's arguments."""

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


def test_creation_takes_sizes_and_requires_grad() -> None:
    assert rg.zeros(2, 3).shape == rg.ones(size=(2, 3)).shape == rg.rand(2, 3).shape == (2, 3)
    for x in (
        rg.zeros(2, requires_grad=True), rg.full((2,), 1.0, requires_grad=True),
        rg.eye(2, requires_grad=True), rg.linspace(0, 1, steps=2, requires_grad=True),
        rg.randn(2, requires_grad=True), rg.ones_like(rg.ones(2), requires_grad=True),
    ):  # fmt: skip
        assert x.requires_grad
        assert x.is_leaf
    assert rg.arange(0, end=3).tolist() == [0, 1, 2]
