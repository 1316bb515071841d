"""Pools of a given number of results, power means, windows as columns and maxima put back: against
PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from tests.nn.functional.torch_cases import (
    IMAGE,
    Case,
    compare,
    draw,
    floats,
    normal,
    uniform,
)

F = nn.functional

CASES: dict[str, Case] = {
    "adaptive_max_pool1d": (lambda m, x: m.adaptive_max_pool1d(x, 3), (normal(2, 3, 8),)),
    "adaptive_max_pool2d": (
        lambda m, x: m.adaptive_max_pool2d(x, (3, None), return_indices=True),
        (IMAGE,),
    ),
    "adaptive_max_pool3d": (
        lambda m, x: m.adaptive_max_pool3d(x, (2, 3, 1), return_indices=True),
        (normal(2, 3, 5, 4, 3),),
    ),
    "lp_pool1d": (lambda m, x: m.lp_pool1d(x, 3.0, 2), (uniform(2, 3, 7),)),
    "lp_pool2d": (lambda m, x: m.lp_pool2d(x, 2.0, (2, 3), stride=2, ceil_mode=True), (IMAGE,)),
    "lp_pool3d": (lambda m, x: m.lp_pool3d(x, 2.0, 2), (normal(1, 2, 4, 5, 3),)),
    "unfold": (
        lambda m, x: m.unfold(x, (2, 3), dilation=2, padding=(1, 2), stride=(2, 1)),
        (IMAGE,),
    ),
    "unfold alone": (lambda m, x: m.unfold(x, 2), (normal(3, 4, 5),)),
    "fold": (
        lambda m, x: m.fold(x, (5, 7), (2, 3), dilation=(2, 1), padding=1, stride=(1, 2)),
        (normal(2, 12, 20),),
    ),
    "fold alone": (lambda m, x: m.fold(x, 4, 2), (normal(8, 9),)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str) -> None:
    f, arrays = CASES[name]
    compare(f, arrays, name)


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool(rank: int) -> None:
    def f(m: Any, x: Any) -> Any:
        y, at = getattr(m, f"max_pool{rank}d")(x, 2, return_indices=True)
        return getattr(m, f"max_unpool{rank}d")(y, at, 2, output_size=x.shape[2:])

    compare(f, (normal(2, 3, *(5, 4, 7)[:rank]),), "max_unpool")


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool_sets(rank):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    size = (2, 3, *(3,) * rank)
    name = f"max_unpool{rank}d"
    x = floats(*size)
    at = draw.integers(0, 6**rank, size=size)
    expected = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(at), 2)
    np.testing.assert_array_equal(getattr(F, name)(x, at, 2), expected)
    unbatched = getattr(F, name)(x[0], at[0], 2)
    np.testing.assert_array_equal(unbatched, expected[0])


def test_max_unpool_has_the_gradient_of_what_it_sets():
    """PyTorch's goes to every maximum, also to one that another has taken the place of."""
    x, at = rg.tensor([[[1.0, 2.0, 3.0, 4.0]]], requires_grad=True), np.array([[[0, 2, 2, 1]]])
    y = F.max_unpool1d(x, at, 2)
    assert y.tolist() == [[[1, 4, 3, 0, 0, 0, 0, 0]]]
    y.backward(rg.arange(1.0, 9.0)[None, None])
    assert x.grad.tolist() == [[[1, 0, 3, 2]]]
    row = np.linspace(-1, 1, 12).reshape(1, 1, 12)
    v, found = F.max_pool1d(rg.asarray(row), 3, 1, return_indices=True)
    assert rg.gradcheck(lambda v: F.max_unpool1d(v, found, 3, 1), v.numpy())
    for bad in ([[[0, 2, 2, 8]]], [[[0, 2, -1, 1]]]):
        with pytest.raises(IndexError):
            F.max_unpool1d(np.ones((1, 1, 4)), np.array(bad), 2).numpy()
