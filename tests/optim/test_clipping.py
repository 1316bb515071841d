"""Clipping: laziness, both forms, overflow, non-finite gradients."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim


def parameters(*grads: Any, dtype: Any = rg.float32) -> list[Any]:
    found = []
    for g in grads:
        p = rg.tensor(np.zeros(np.shape(g)), dtype=dtype, requires_grad=True)
        p.grad = rg.tensor(g, dtype=dtype)
        found.append(p)
    return found


def test_norm_and_value():
    a, b = parameters([3.0, 0.0], [[4.0]])
    assert optim.clip_grad_norm([a, b], 1.0).item() == 5.0
    np.testing.assert_allclose(a.grad.numpy(), np.array([0.6, 0]), rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), [[0.8]], rtol=1e-6)
    a, b = parameters([3.0, -0.5], [[-4.0]])
    optim.clip_grad_value([a, b], 1.0)
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0, -0.5], [[-1.0]])


def test_small_gradients_stay():
    (a,) = parameters([0.3, 0.4])
    optim.clip_grad_norm([a], 1.0)
    assert a.grad.numpy().tolist() == np.array([0.3, 0.4], np.float32).tolist()


def test_it_stays_lazy_and_tied_to_the_loss():
    model: Any = nn.Linear(3, 1)
    loss = model(rg.ones((2, 3))).sum()
    loss.backward()
    norm = optim.clip_grad_norm(model, 0.1)
    optim.clip_grad_value(model, 0.05)
    assert not loss.is_computed
    assert not norm.is_computed
    model.weight.grad.numpy()
    assert loss.is_computed


def test_pure_form():
    grads: dict[str, Any] = {"a": rg.tensor([3.0]), "b": [rg.tensor([4.0], dtype=rg.float64)]}
    clipped, norm = optim.clip_by_norm(grads, 1.0)
    assert norm.item() == 5.0
    assert clipped["a"].item() == pytest.approx(0.6, rel=1e-6)
    assert clipped["b"][0].dtype is rg.float64
    assert optim.clip_by_value(grads, 1.0)["b"][0].item() == 1.0
    assert optim.global_norm(grads, float("inf")).item() == 4.0


def test_pure_form_on_a_module_with_state():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    grads = rg.grad(lambda m: (100 * m(rg.ones((4, 2)))).sum())(model)
    clipped, _ = rg.jit(lambda g: optim.clip_by_norm(g, 1.0))(grads)
    assert optim.global_norm(clipped).item() == pytest.approx(1.0, rel=1e-4)
    assert clipped[1].generator._key.dtype is rg.uint32


def test_squares_do_not_overflow():
    (a,) = parameters([1e30, 1e30])
    assert optim.clip_grad_norm([a], 1.0).item() == pytest.approx(2**0.5 * 1e30)
    np.testing.assert_allclose(a.grad.numpy(), 0.5**0.5, rtol=1e-6)


def test_non_finite():
    model: Any = nn.Linear(2, 1)
    model.weight.grad = rg.tensor([[1.0, float("nan")]])
    model.bias.grad = rg.tensor([1.0])
    with pytest.raises(rg.NonFiniteError, match="weight") as error:
        optim.clip_grad_norm(model, 1.0, error_if_nonfinite=True)
    assert "bias" not in str(error.value)
    assert model.bias.grad.tolist() == [1.0]
    assert np.isnan(optim.clip_grad_norm(model, 1.0).item())
    assert np.isnan(model.bias.grad.item())


def test_what_makes_no_sense():
    model = nn.Linear(2, 1)
    for f in (optim.clip_grad_norm, optim.clip_grad_value):
        with pytest.raises(rg.GradientError, match="backward"):
            f(model, 1.0)
        with pytest.raises(rg.OptionError):
            f(parameters([1.0]), -1.0)
    with pytest.raises(rg.OptionError):
        optim.clip_grad_norm(parameters([1.0]), 1.0, norm_type=0)
    with pytest.raises(rg.ShapeError):
        optim.global_norm({})


def test_sparse_gradients_stay_sparse():
    def table() -> Any:
        w: Any = nn.Parameter(np.zeros((5, 2)))
        nn.functional.embedding([1, 3, 1], w, sparse=True).sum().backward()
        return w

    w = table()
    assert optim.clip_grad_norm([w], 1.0).item() == pytest.approx(np.sqrt(10))
    assert isinstance(w.grad, nn.RowSparse)
    expected = np.zeros((5, 2))
    expected[1], expected[3] = 2 / np.sqrt(10), 1 / np.sqrt(10)
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-5)
    w = table()
    optim.clip_grad_value([w], 1.5)
    assert isinstance(w.grad, nn.RowSparse)
    assert w.grad.numpy()[:, 0].tolist() == [0, 1.5, 0, 1, 0]
