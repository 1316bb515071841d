"""Clipping: laziness, both forms, overflow, non-finite gradients."""

from typing import Any, cast

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


def test_percentile_of_all_elements() -> None:
    rng = np.random.default_rng(0)
    grads = [rng.normal(size=(3, 4)), rng.normal(size=5)]
    params: Any = [rg.tensor(np.zeros_like(g), requires_grad=True) for g in grads]
    limit = np.percentile(np.abs(np.concatenate([g.ravel() for g in grads])), 70)
    for p, g in zip(params, grads, strict=True):
        p.grad = rg.tensor(g)
    assert optim.clip_grad_percentile(params, 70).item() == pytest.approx(limit, rel=1e-12)
    pure, _ = optim.clip_by_percentile([rg.tensor(g) for g in grads], 70)
    for p, q, g in zip(params, pure, grads, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), np.clip(g, -limit, limit), rtol=1e-12)
        np.testing.assert_array_equal(p.grad.numpy(), q.numpy())
    for bad in (-1, 101):
        with pytest.raises(rg.OptionError, match="from 0 to 100"):
            optim.clip_by_percentile(pure, bad)
    with pytest.raises(rg.ShapeError, match="no gradients"):
        optim.clip_by_percentile([rg.ones(0)], 50)


def test_adaptive() -> None:
    """Units are outputs; of a convolution too."""
    rng = np.random.default_rng(0)
    for shape in ((3, 4), (2, 3, 2, 2), (5,), ()):
        w, g = rng.normal(size=shape), 0.1 * rng.normal(size=shape)
        w = w * np.where(np.arange(w.size).reshape(shape) < 4, 1e-6, 1)
        axes = tuple(range(1, len(shape))) or None
        of_w, of_g = (np.sqrt(np.sum(x**2, axis=axes, keepdims=True)) for x in (w, g))
        most = 0.05 * np.maximum(of_w, 1e-3)
        expected = np.where(of_g > most, g * most / of_g, g).reshape(shape)
        p: Any = rg.tensor(w, requires_grad=True)
        p.grad = rg.tensor(g)
        optim.clip_grad_adaptive([p], 0.05)
        np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-12)
        pure = rg.jit(lambda p, g: optim.clip_by_adaptive(p, g, 0.05))(
            {"w": rg.tensor(w)}, {"w": rg.tensor(g)}
        )
        np.testing.assert_allclose(pure["w"].numpy(), expected, rtol=1e-12)
    with pytest.raises(rg.OptionError, match="not negative"):
        optim.clip_grad_adaptive([p], -1.0)
    with pytest.raises(rg.ShapeError, match="has a gradient of"):
        optim.clip_by_adaptive([rg.ones(2)], [rg.ones(3)])


def test_gradients_in_the_place_of_parameters() -> None:
    """What `rg.grad` returns has no `.grad`; the message names the form that takes it."""
    with pytest.raises(rg.ArgumentError, match=r"not str; .* returned: optim.clip_by_norm"):
        optim.clip_grad_norm(cast(Any, {"w": rg.ones(2)}), 1.0)
    with pytest.raises(rg.GradientError, match=r"call backward\(\) first; .*optim.clip_by_value"):
        optim.clip_grad_value([rg.ones(2)], 1.0)


def test_percentile_of_norms_so_far() -> None:
    rng = np.random.default_rng(0)
    clip, short, norms = optim.AutoClip(25), optim.AutoClip(25, history=2), []
    for _ in range(6):
        g = rng.normal(size=4)
        norms.append(np.linalg.norm(g))
        for rule, seen in ((clip, norms), (short, norms[-2:])):
            p: Any = rg.tensor(np.zeros(4), requires_grad=True)
            p.grad = rg.tensor(g)
            assert rule([p]).item() == pytest.approx(norms[-1], rel=1e-12)
            limit = np.percentile(seen, 25)
            expected = g * min(1, limit / (norms[-1] + 1e-6))
            np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-12)
    again = optim.AutoClip(25)
    again.load_state_dict(clip.state_dict())
    assert again.norms == clip.norms
    with pytest.raises(rg.OptionError, match="history"):
        optim.AutoClip(10, history=0)
