"""Functions of `rg.nn.functional` beside those of PyTorch: values, and gradients."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, seed: int = 1) -> Any:
    return np.random.default_rng(seed).uniform(low, high, shape)


def compare(f: Callable[..., Any], arrays: tuple[Any, ...], name: str) -> None:
    """`f(F, *xs)` and `f` of both libraries: equal values, equal gradients of a weighted sum."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    xs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    expected = f(torch.nn.functional, *xs)
    ys: list[Any] = [rg.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    found = f(F, *ys)
    results = zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True)
    for i, (y, x) in enumerate(results):
        np.testing.assert_allclose(y.numpy(), x.detach().numpy(), 1e-9, 1e-11, err_msg=name)
        assert y.shape == tuple(x.shape)
        if i == 0 and any(x.requires_grad for x in xs) and x.requires_grad:
            weights = normal(*x.shape, seed=9)
            (x * torch.tensor(weights)).sum().backward()
            (y * weights).sum().backward()
    for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if x.requires_grad and x.grad is not None:
            g = np.zeros(y.shape) if y.grad is None else y.grad.numpy()
            message = f"{name}: gradient {k}"
            np.testing.assert_allclose(g, x.grad.numpy(), 1e-8, 1e-10, err_msg=message)


IMAGE = normal(2, 6, 5, 7)
draw = np.random.default_rng(0)


def floats(*shape):
    return draw.normal(size=shape)


def agree(name, *arrays, grad=True, **options):
    """Value, and gradients of a weighted sum, of a function of both libraries; False where PyTorch
    refuses."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = [torch.tensor(a, requires_grad=grad) if isinstance(a, np.ndarray) else a
              for a in arrays]  # fmt: skip
    try:
        expected = getattr(torch.nn.functional, name)(*theirs, **options)
    except (RuntimeError, ValueError, TypeError):
        return False
    ours: list[Any] = [rg.tensor(a, requires_grad=grad) if isinstance(a, np.ndarray) else a
                       for a in arrays]  # fmt: skip
    got = getattr(F, name)(*ours, **options)
    assert got.shape == tuple(expected.shape), (name, options)
    close: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "err_msg": f"{name} {options}"}
    np.testing.assert_allclose(got, expected.detach(), **close)
    if grad:
        weight = floats(*got.shape)
        (got * weight).sum().backward()
        (expected * torch.tensor(weight)).sum().backward()
        for a, b in zip(ours, theirs, strict=True):
            if isinstance(b, torch.Tensor) and b.grad is not None:
                np.testing.assert_allclose(a.grad, b.grad, **close)
    return True


def some(n, **choices):
    found = [dict(zip(choices, c, strict=True)) for c in itertools.product(*choices.values())]
    return random.Random(0).sample(found, min(n, len(found)))
