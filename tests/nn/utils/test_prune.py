"""Masks by hand, and against PyTorch."""

import copy
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError, ShapeError

prune = nn.utils.prune
W = np.random.default_rng(0).normal(size=(4, 6))


def layer() -> Any:
    m = nn.Linear(6, 4, dtype=rg.float64)
    m.weight.replace(W.copy())
    return m


def test_by_magnitude_again_and_removed() -> None:
    m = layer()
    assert prune.l1_unstructured(m, "weight", 0.5) is m
    order = np.argsort(np.abs(W).ravel())
    expected = W.copy().ravel()
    expected[order[:12]] = 0
    np.testing.assert_array_equal(m.weight.numpy().ravel(), expected)
    prune.l1_unstructured(m, "weight", 4)
    expected[order[:16]] = 0
    np.testing.assert_array_equal(m.weight.numpy().ravel(), expected)
    assert prune.is_pruned(nn.Sequential(m))
    m(np.ones(6)).sum().backward()
    grad = m.parametrizations.weight.original.grad.numpy().ravel()
    np.testing.assert_array_equal(grad, expected != 0)
    np.testing.assert_array_equal(copy.deepcopy(m).weight.numpy(), m.weight.numpy())
    prune.remove(m, "weight")
    assert type(m) is nn.Linear
    assert not prune.is_pruned(m)
    np.testing.assert_array_equal(m.weight.numpy().ravel(), expected)


def test_slices_and_random() -> None:
    m = prune.ln_structured(layer(), "weight", 2, n=2, dim=1)
    gone = np.argsort(np.linalg.norm(W, axis=0))[:2]
    expected = W.copy()
    expected[:, gone] = 0
    np.testing.assert_array_equal(m.weight.numpy(), expected)
    r = prune.random_unstructured(layer(), "weight", 0.25, generator=rg.random.Generator(1))
    assert (r.weight.numpy() == 0).sum() == 6
    s = prune.random_structured(layer(), "weight", 1, dim=0, generator=rg.random.Generator(1))
    assert (s.weight.numpy() == 0).all(axis=1).sum() == 1
    assert (s.weight.numpy() != 0).all(axis=1).sum() == 3


def test_several_as_one() -> None:
    a, b = layer(), layer()
    b.weight.replace(10 * W)
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.l1_unstructured, amount=20)
    both = np.abs(np.concatenate([W.ravel(), 10 * W.ravel()]))
    kept = np.ones(48, bool)
    kept[np.argsort(both)[:20]] = False
    found = np.concatenate([a.weight.numpy().ravel(), b.weight.numpy().ravel()]) != 0
    np.testing.assert_array_equal(found, kept)


@pytest.mark.torch
def test_against_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    import torch.nn.utils.prune as theirs

    t = torch.nn.Linear(6, 4).double()
    t.weight.data = torch.tensor(W)
    m = layer()
    for step in (
        lambda p, x: p.l1_unstructured(x, "weight", amount=0.2),
        lambda p, x: p.ln_structured(x, "weight", amount=0.5, n=2, dim=0),
        lambda p, x: p.l1_unstructured(x, "weight", amount=3),
    ):
        step(prune, m)
        step(theirs, t)
        np.testing.assert_array_equal(m.weight.numpy(), t.weight.detach().numpy())


def test_refusals() -> None:
    m = layer()
    for amount, match in ((1.5, "between 0 and 1"), (-1, "a share of 0"), (99, "24 that are left")):
        with pytest.raises(OptionError, match=match):
            prune.l1_unstructured(m, "weight", amount)
    with pytest.raises(OptionError, match="no parameter 'w'"):
        prune.l1_unstructured(m, "w", 1)
    with pytest.raises(OptionError, match="axis 5"):
        prune.ln_structured(m, "weight", 1, 2, 5)
    with pytest.raises(ShapeError, match="a mask of the shape"):
        prune.custom_from_mask(m, "weight", np.ones(3))
    with pytest.raises(OptionError, match="is not pruned"):
        prune.remove(m, "weight")
    with pytest.raises(OptionError, match="pairs of module and name"):
        prune.global_unstructured([])
