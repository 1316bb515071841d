"""Hooks of modules and tensors: what they are told, and what they change."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


def model() -> Any:
    made = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    for p in made.parameters():
        p.data.fill_(0.3)
    return made


def test_hooks_before_and_after_a_call() -> None:
    m, seen = model(), list[Any]()
    plain = m(rg.ones((2, 2)))
    handles = [
        m[0].register_forward_hook(lambda m, args, y: seen.append((len(args), y.shape))),
        m[0].register_forward_pre_hook(lambda m, args: (args[0] * 0,)),
        m.register_forward_hook(lambda m, args, y: y + 100),
        m.register_forward_pre_hook(
            lambda m, args, kwargs: (args, {"x": 1} and kwargs), with_kwargs=True
        ),
    ]
    found = m(rg.ones((2, 2)))
    expected = 100 + 0.3 + 3 * 0.3 * np.tanh(0.3)
    np.testing.assert_allclose(found.detach(), [[expected]] * 2, rtol=1e-6)
    assert seen == [(1, (2, 3))]
    for h in handles:
        h.remove()
        h.remove()
    assert m(rg.ones((2, 2))).tolist() == plain.tolist()


def test_order_and_blocks() -> None:
    m, seen = nn.Identity(), []
    m.register_forward_hook(lambda *_: seen.append("a"))
    m.register_forward_hook(lambda *_: seen.append("b"), prepend=True)
    with m.register_forward_hook(lambda *_: seen.append("c")):
        m(rg.ones(1))
    m(rg.ones(1))
    assert seen == ["b", "a", "c", "b", "a"]
    copy.deepcopy(m)(rg.ones(1))
    assert seen[-2:] == ["b", "a"]


def test_backward_hooks_see_every_pass() -> None:
    m, seen = model(), list[Any]()
    m[1].register_full_backward_hook(
        lambda m, gi, go: seen.append((gi[0][0, 0].item(), go[0][0, 0].item()))
    )
    m[0].register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    handle = m[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 5,))
    slope = 1 - np.tanh(0.9) ** 2
    for _ in range(4):
        m.zero_grad()
        m(rg.ones((1, 2))).sum().backward()
        np.testing.assert_allclose(m[0].weight.grad, np.full((3, 2), 5 * 0.3 * slope), rtol=1e-5)
    assert len(seen) == 8
    np.testing.assert_allclose(seen[0], (1.5 * slope, 1.5), rtol=1e-5)
    assert list(seen[1]) == [None]  # of data
    handle.remove()
    m.zero_grad()
    m(rg.ones((1, 2))).sum().backward()
    np.testing.assert_allclose(m[0].weight.grad, np.full((3, 2), 0.3 * slope), rtol=1e-5)


def test_a_module_with_hooks_under_jit() -> None:
    m, seen = model(), list[Any]()
    m[0].register_forward_hook(lambda m, args, y: seen.append(y.shape))
    f = rg.jit(rg.grad(lambda m, x: m(x).sum()))
    first = f(m, rg.ones((3, 2)))[0].weight.tolist()
    assert f(m, rg.ones((3, 2)))[0].weight.tolist() == first
    assert seen == [(3, 3)]  # traced once


def test_hooks_of_leaves_and_of_what_was_computed() -> None:
    x: Any = rg.tensor([1.0, 2.0], requires_grad=True)
    handle = x.register_hook(lambda g: g * 10)
    for k in (1.0, 2.0, 3.0):
        x.grad = None
        (x * x * k).sum().backward()
        assert x.grad.tolist() == [20 * k, 40 * k]
    handle.remove()
    seen: list[Any] = []
    for looks in (False, True, False):
        x.grad = None
        y = x * 3
        y.register_hook(lambda g: seen.append(g.tolist()))
        y.register_hook(lambda g: g + 1)
        loss = (y * y).sum() + y.sum()
        if looks:
            loss.item()
        loss.backward()
        assert x.grad.tolist() == [3 * (2 * 3 + 2), 3 * (2 * 6 + 2)]
    assert seen == [[7.0, 13.0]] * 3


def test_what_a_hook_may_not_do() -> None:
    x: Any = rg.tensor([1.0, 2.0], requires_grad=True)
    with x.register_hook(lambda g: g.sum()), pytest.raises(rg.GradientError, match="a hook of"):
        (x * x).sum().backward()
    assert x.grad is None
    with pytest.raises(rg.GradientError, match="requires no gradient"):
        rg.ones(2).register_hook(print)
    with pytest.raises(rg.GradientError, match=r"rg.custom_vjp"):
        rg.grad(lambda x: (x.register_hook(print), x.sum())[1])(rg.ones(2))
