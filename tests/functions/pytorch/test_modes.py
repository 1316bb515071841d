"""Gradients on and off under PyTorch's names."""

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


def test_modes() -> None:
    x = rg.tensor(1.0, requires_grad=True)

    @rg.inference_mode()
    def plain(x: Any) -> Any:
        return x * 2

    @rg.enable_grad()
    def tracked(x: Any) -> Any:
        return x * 2

    assert not plain(x).requires_grad
    with rg.no_grad():
        assert tracked(x).requires_grad
    before = rg.set_grad_enabled(False)
    assert not rg.is_grad_enabled()
    assert not (x * 2).requires_grad
    rg.set_grad_enabled(True)
    with before:
        assert not rg.is_grad_enabled()
    assert rg.is_grad_enabled()


def test_compile_is_what_it_is_given():
    @rg.compile()
    def f(x):
        return x * 2

    assert f(rg.ones(2)).tolist() == [2.0, 2.0]
    model = rg.nn.Linear(2, 1)
    assert rg.compile(model, dynamic=True) is model
    with pytest.raises(rg.ArgumentError, match="not int"):
        rg.compile(3)
