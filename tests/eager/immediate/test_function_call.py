"""Calls as grad_fn: the nodes of a history, second derivatives, what is freed."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import trace_buffer
from retrograd.tuning import TUNING


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    trace_buffer.end_run()


def test_the_nodes_of_a_history_are_those_of_the_calls():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    y = rg.sum(rg.exp(x) * 0.3)[None]
    ops, todo = [], [y.node]
    for node in todo:
        ops.append(node.op)
        todo += node.inputs
    assert {"exp", "mul", "reduce_sum"} <= set(ops)
    assert "test_function_call" in str(y.node.source)


def test_gradients_of_composites_through_nodes():
    x = rg.tensor([[1.0, 2.0, 0.5]], requires_grad=True)
    loss = rg.nn.functional.cross_entropy(x * 1.5, rg.tensor([1]))
    inner = loss * loss
    inner.retain_grad()  # is found on nodes
    inner.backward()
    z = np.exp([1.5, 3.0, 0.75])
    p, value = z / z.sum(), -np.log(z[1] / z.sum())
    p[1] -= 1
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy()[0], 2 * value * p * 1.5, rtol=1e-5)


def test_composites_with_whole_numbers_through_nodes():
    data = np.random.default_rng(0).normal(size=(2, 4, 3))
    found = []
    for inner in (False, True):
        x = rg.tensor(data, requires_grad=True)
        y = (rg.nn.functional.group_norm(x * 1.5, 2) ** 3).sum()
        if inner:
            y.retain_grad()
            (y * 1.0).backward()  # on nodes
        else:
            y.backward()
        assert x.grad is not None
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-14)
    assert np.abs(found[0]).max() > 0.1


def test_transforms_run_call_by_call():
    def f(x):
        y = x * x
        return (y * y if float(y.detach().sum().item()) > 0 else y).sum()

    assert rg.grad(f)(rg.tensor([2.0])).tolist() == [32]
    assert rg.grad(lambda x: rg.grad(f)(x).sum())(rg.tensor([2.0])).tolist() == [48]


def test_a_history_is_gone_after_the_first_backward():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    y = (rg.tanh(x) * 2.5).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(rg.GradientError, match="second time"):
        y.backward()
    with pytest.raises(rg.GradientError, match=r"second time.*test_function_call"):
        (rg.exp(y) + (x * 2.5).sum()).backward()


def test_a_parameter_that_has_changed_is_noticed():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    y = (w * w).sum()
    with rg.no_grad():
        w += 1.0
    with pytest.raises(rg.GradientError, match="changed a parameter"):
        y.backward()


def test_gradients_go_through_calls_and_recordings():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    y = rg.exp(x)  # at once
    trace_buffer.record_instead()
    z = rg.sin(y) * x  # recorded
    z.numpy()
    (z * y).sum().backward()
    e, v = np.exp([1.0, 2.0]), np.array([1.0, 2.0])
    expected = np.sin(e) * e + v * (np.cos(e) * e * e + np.sin(e) * e)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)
