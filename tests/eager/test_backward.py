"""Tensor.backward: gradients of the leaves below, once, whenever anybody looks."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.eager.looking import leaf, looking


@looking
def test_a_second_backward_is_an_error_unless_the_first_retains_the_graph(look):
    x = leaf()
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    if look:
        loss.item()
    loss.backward()
    if look:
        loss.item()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(
        rg.GradientError, match=r"second time.*retain_graph.*reduce_sum|second time"
    ):
        loss.backward()
    assert x.grad.tolist() == [4, 8]


@looking
def test_nothing_goes_through_a_loss_again(look):
    x = leaf()
    loss = (x * x).sum()
    loss.backward()
    if look:
        loss.item()
    assert not loss.requires_grad
    with pytest.raises(rg.GradientError, match=r"second time.*test_backward\.py"):
        ((x * 2).sum() + loss).backward()
    ((x * 2).sum() + loss.detach()).backward()
    assert x.grad.tolist() == [4, 6]


@looking
def test_two_losses_share_a_trunk(look):
    x = leaf()
    h = x * x
    one, two = h.sum(), (h * h).sum()
    one.backward()
    if look:
        one.item(), x.grad.numpy(), h.numpy()
    two.backward()
    assert x.grad.tolist() == [2 + 4, 4 + 32]


@looking
def test_a_gradient_is_a_constant_in_further_computations(look):
    x = leaf()
    (x**3).sum().backward()
    g = x.grad
    if look:
        g.numpy()
    assert not g.requires_grad
    (g * x).sum().backward()  # the derivative of g is not part of it
    assert x.grad.tolist() == [3 + 3, 12 + 12]
    with pytest.raises(rg.GradientError, match="requires a gradient"):
        g.sum().backward()


def test_backward_inside_of_a_trace_does_not_leak():
    w = leaf()

    def step(x):
        loss = (x * w).sum()
        loss.backward()
        return loss

    for transform in (rg.jit, rg.vmap):
        with pytest.raises(rg.TraceError, match=r"rg\.grad"):
            transform(step)(rg.ones((2, 2)))
    assert w.grad is None


def test_setting_a_gradient():
    x = leaf()
    x.grad = rg.ones(2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [4, 4]
    with pytest.raises(rg.DTypeError, match="ndarray"):
        x.grad = np.ones(2)  # type: ignore[assignment]
    with pytest.raises(rg.ShapeError, match=r"f32\[3\]"):
        x.grad = rg.ones(3)
    x.grad = None
    assert x.grad is None


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_loss_and_its_gradients_on_nodes_are_one_program(first):
    """What a scan stands for is a node; whatever is looked at first, the loop runs once."""
    x, w = leaf(), leaf()
    _, y = rg.scan(lambda c, row: (c * w + row, c * row), rg.zeros(2), rg.stack([x, x * w, x]))
    loss = (y * y).sum()
    loss.backward()
    looks = [loss, x.grad, w.grad]
    before = rg.cache_stats()
    values = [looks[first].numpy(), *[h.numpy() for h in looks]]
    after = rg.cache_stats()
    assert after["hits"] + after["misses"] - before["hits"] - before["misses"] == 1
    assert values[0].tobytes() == values[1 + first].tobytes()
