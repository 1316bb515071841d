"""Focal, Dice and Tversky losses against the formulas in NumPy, and against PyTorch."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import DTypeError, IndexRangeError, OptionError, ShapeError

F = rg.nn.functional
rng = np.random.default_rng(1)
X = rng.normal(size=(3, 4, 5))
LABELS = rng.integers(0, 4, (3, 5))
BITS = rng.integers(0, 2, X.shape)
P = rng.uniform(0.01, 0.99, X.shape)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0, 3.5])
@pytest.mark.parametrize("alpha", [0.25, -1.0])
def test_sigmoid_focal_loss(gamma: float, alpha: float) -> None:
    p = 1 / (1 + np.exp(-X))
    p = np.where(BITS == 1, p, 1 - p)
    a = np.where(BITS == 1, alpha, 1 - alpha) if alpha >= 0 else 1.0
    found = F.sigmoid_focal_loss(X, BITS, alpha, gamma)
    np.testing.assert_allclose(found.numpy(), -a * (1 - p) ** gamma * np.log(p), rtol=1e-10)
    mean = F.sigmoid_focal_loss(X, BITS, alpha, gamma, reduction="mean")
    assert mean.item() == pytest.approx(found.numpy().mean())
    assert rg.gradcheck(lambda x: F.sigmoid_focal_loss(x, BITS, alpha, gamma), rg.tensor(X))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_focal_loss(gamma: float) -> None:
    weight = np.array([0.5, 1.0, 2.0, 3.0])
    targets = LABELS.copy()
    targets[0, 1] = -100
    p = np.take_along_axis(softmax(X), np.maximum(targets, 0)[:, None], 1)[:, 0]
    w = np.where(targets < 0, 0, weight[np.maximum(targets, 0)])
    each = -w * (1 - p) ** gamma * np.log(p)
    found = F.focal_loss(X, targets, weight, gamma, reduction="none")
    np.testing.assert_allclose(found.numpy(), each, rtol=1e-10)
    mean = F.focal_loss(X, targets, weight, gamma)
    assert mean.item() == pytest.approx(each.sum() / w.sum())
    assert rg.gradcheck(lambda x: F.focal_loss(x, targets, weight, gamma), rg.tensor(X))
    if gamma == 0:
        assert mean.item() == pytest.approx(F.cross_entropy(X, targets, weight).item())


def test_focal_loss_of_certain_predictions_has_a_gradient() -> None:
    for gamma in (0.5, 1.0, 2.0):
        x = rg.tensor([[1000.0, 0.0], [0.0, 1000.0]], requires_grad=True)
        loss = F.focal_loss(x, [0, 0], gamma=gamma)
        loss.backward()
        assert loss.item() == 500
        assert x.grad.tolist() == [[0.0, 0.0], [-0.5, 0.5]]
        y = rg.tensor([1000.0, -1000.0], requires_grad=True)
        F.sigmoid_focal_loss(y, [1.0, 1.0], -1.0, gamma).sum().backward()
        assert y.grad.tolist() == [0.0, -1.0]


@pytest.mark.parametrize("dim", [None, (0, 2), (0, 1, 2), 2])
def test_overlaps(dim: Any) -> None:
    axes = (1, 2) if dim is None else dim
    tp, fp, fn = (np.sum(z, axis=axes) for z in (P * BITS, P * (1 - BITS), (1 - P) * BITS))
    each = 1 - (tp + 0.5) / (tp + 0.3 * fp + 0.7 * fn + 0.5)
    found = F.tversky_loss(P, BITS, 0.3, 0.7, 0.5, dim, "none")
    np.testing.assert_allclose(found.numpy(), each, rtol=1e-12)
    focal = F.tversky_loss(P, BITS, 0.3, 0.7, 0.5, dim, gamma=0.75)
    assert focal.item() == pytest.approx((each**0.75).mean())
    dice = F.dice_loss(P, BITS, 1.0, dim)
    expected = 1 - (2 * tp + 1) / (P.sum(axis=axes) + BITS.sum(axis=axes) + 1)
    assert dice.item() == pytest.approx(expected.mean())
    assert rg.gradcheck(lambda p: F.dice_loss(p, BITS, 1.0, dim), rg.tensor(P))


def test_overlaps_of_classes() -> None:
    p = softmax(X)
    ones = np.moveaxis(np.eye(4)[LABELS], -1, 1)
    tp = (p * ones).sum(2)
    expected = 1 - (2 * tp + 1e-6) / (p.sum(2) + ones.sum(2) + 1e-6)
    np.testing.assert_allclose(
        F.dice_loss(p, LABELS, reduction="none").numpy(), expected, rtol=1e-9
    )
    nothing = F.dice_loss(rg.zeros((2, 6)), rg.zeros((2, 6)))
    assert nothing.item() == 0


@pytest.mark.torch
def test_focal_loss_against_torch() -> None:
    """torchvision's formula, on PyTorch's operations."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x = torch.tensor(X, requires_grad=True)
    t = torch.tensor(BITS).double()
    p = torch.sigmoid(x)
    ce = torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none")
    p_t = p * t + (1 - p) * (1 - t)
    expected = (0.25 * t + 0.75 * (1 - t)) * ce * (1 - p_t) ** 2
    expected.sum().backward()
    y = rg.tensor(X, requires_grad=True)
    found = F.sigmoid_focal_loss(y, BITS)
    found.sum().backward()
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-9)


def test_refusals() -> None:
    with pytest.raises(OptionError, match="gamma is not negative"):
        F.focal_loss(X, LABELS, gamma=-1)
    with pytest.raises(OptionError, match="alpha is at most 1"):
        F.sigmoid_focal_loss(X, BITS, alpha=2)
    with pytest.raises(DTypeError, match="integers"):
        F.focal_loss(X, LABELS * 1.0)
    with pytest.raises(IndexRangeError):
        F.focal_loss(X, LABELS + 4).item()
    with pytest.raises(IndexRangeError):
        F.dice_loss(P, LABELS - 4).item()
    with pytest.raises(ShapeError, match="target"):
        F.dice_loss(P, BITS[:, :2])
    with pytest.raises(OptionError, match="beta is not negative"):
        F.tversky_loss(P, BITS, beta=-1)
    with pytest.raises(OptionError, match="reduction"):
        F.dice_loss(P, BITS, reduction="avg")
    with pytest.raises(OptionError, match="at least one"):
        F.dice_loss(P, BITS, dim=())
