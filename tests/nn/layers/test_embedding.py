"""Options of lookups against PyTorch."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

WEIGHT = np.random.default_rng(0).standard_normal((7, 3)) * 2
INDEX = np.array([[1, 2, 1], [6, 1, 2]])


def pair(name: str, **options: Any) -> tuple[Any, Any, Any]:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = getattr(torch.nn, name)(7, 3, **options).double()
    theirs.weight.data = torch.tensor(WEIGHT)
    mine = getattr(nn, name)(7, 3, **options, dtype=rg.float64)
    mine.load_state_dict({"weight": WEIGHT})
    return mine, theirs, torch


def dense(gradient: Any) -> Any:
    return gradient.to_dense() if gradient.is_sparse else gradient


def by_frequency(gradient: Any, index: Any) -> Any:
    """The gradient of a table, each row divided by how often it was looked up: that of PyTorch
    without `scale_grad_by_freq`. With it, its EmbeddingBag on CPUs, as of 2.13, divides the k-th
    row that was used by the frequency of the k-th smallest index, repetitions included."""
    return gradient / np.maximum(np.bincount(index.ravel(), minlength=len(gradient)), 1)[:, None]


@pytest.mark.torch
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["Embedding", "EmbeddingBag"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding_idx": 2},
        {"scale_grad_by_freq": True},
        {"max_norm": 1.5},
        {"max_norm": 1.0, "norm_type": 1.0, "scale_grad_by_freq": True},
    ],
)
def test_options(name: str, options: dict[str, Any], sparse: bool) -> None:
    if sparse and options.get("scale_grad_by_freq"):
        options = {**options, "scale_grad_by_freq": False}  # PyTorch has no sparse one
    mine, theirs, torch = pair(name, **options, sparse=sparse)
    scaled = name == "EmbeddingBag" and theirs.scale_grad_by_freq
    theirs.scale_grad_by_freq &= not scaled
    for _ in range(2):
        y, expected = mine(INDEX), theirs(torch.tensor(INDEX))
        np.testing.assert_allclose(y.numpy(), expected.detach(), rtol=1e-10)
        (y * y).sum().backward()
        (expected * expected).sum().backward()
    assert isinstance(mine.weight.grad, nn.RowSparse) == sparse
    gradient = dense(theirs.weight.grad).numpy()
    gradient = by_frequency(gradient, INDEX) if scaled else gradient
    np.testing.assert_allclose(mine.weight.grad.numpy(), gradient, rtol=1e-10)
    np.testing.assert_allclose(mine.weight.numpy(), theirs.weight.detach(), rtol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_several_sizes(mode: str) -> None:
    for scaled in (False, True)[: 1 if mode == "max" else 2]:
        mine, theirs, torch = pair(
            "EmbeddingBag", mode=mode, padding_idx=4, scale_grad_by_freq=scaled
        )
        theirs.scale_grad_by_freq = False
        index, offsets = np.array([1, 4, 1, 2, 4, 6, 6]), np.array([0, 3, 3, 5])
        y = mine(index, offsets)
        expected = theirs(torch.tensor(index), torch.tensor(offsets))
        np.testing.assert_allclose(y.numpy(), expected.detach(), rtol=1e-10)
        (y * y).sum().backward()
        (expected * expected).sum().backward()
        gradient = theirs.weight.grad.numpy()
        gradient = by_frequency(gradient, index) if scaled else gradient
        np.testing.assert_allclose(mine.weight.grad.numpy(), gradient, rtol=1e-10)


def test_sparse_bags_touch_only_their_rows() -> None:
    bag: Any = nn.EmbeddingBag(7, 3, mode="sum", sparse=True, padding_idx=4)
    bag(np.array([5, 4, 3]), np.array([0, 1, 2])).sum().backward()
    assert sorted(set(bag.weight.grad.rows.tolist())) == [3, 5]
    bag.weight.grad = None
    assert bag(np.array([4, 4]), np.array([0])).numpy().tolist() == [[0, 0, 0]]


def test_refusals() -> None:
    layer: Any = nn.Embedding(7, 3, max_norm=1.0)
    with rg.no_grad(), pytest.raises(rg.OptionError, match="max_norm changes the weight in place"):
        rg.jit(lambda m: m([1]))(layer)
    with pytest.raises(rg.OptionError, match="max_norm changes the weight in place"):
        nn.functional.embedding([1], rg.ones((3, 2)), max_norm=1.0)
    with pytest.raises(rg.OptionError, match="max_norm is not negative"):
        nn.Embedding(7, 3, max_norm=-1.0)([1])
    with pytest.raises(rg.OptionError, match="not for mode 'max'"):
        nn.EmbeddingBag(7, 3, mode="max", scale_grad_by_freq=True)
    with pytest.raises(rg.OptionError, match="not for mode 'max'"):
        nn.functional.embedding_bag([[1]], rg.ones((3, 2)), mode="max", scale_grad_by_freq=True)


def test_embedding():
    layer: Any = nn.Embedding(5, 3)
    index = np.array([[0, 4], [2, 2]])
    np.testing.assert_array_equal(layer(index).numpy(), layer.weight.numpy()[index])
    layer(index).sum().backward()
    assert layer.weight.grad.numpy()[:, 0].tolist() == [1, 0, 2, 0, 1]
    with pytest.raises(rg.DTypeError, match="in Embedding"):
        layer([0.5])
    for i in (5, -1):
        with pytest.raises(rg.IndexRangeError):
            layer([i]).numpy()


@pytest.mark.parametrize("index", [1, -4])
def test_padding_is_zero_and_not_trained(index):
    layer: Any = nn.Embedding(5, 3, padding_idx=index)
    assert layer.weight.numpy()[1].tolist() == [0, 0, 0]
    layer([1, 1, 2]).sum().backward()
    assert layer.weight.grad.numpy()[:, 0].tolist() == [0, 0, 1, 0, 0]
