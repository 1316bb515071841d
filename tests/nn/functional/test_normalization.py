"""Normalisation and distances as functions: against PyTorch, on odd shapes, with every option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial import distance

from retrograd import nn
from tests.nn.functional.torch_cases import (
    IMAGE,
    Case,
    agree,
    compare,
    floats,
    normal,
    uniform,
)

F = nn.functional


def library(m: Any) -> Any:
    """Where PyTorch has what stands beside its functions."""
    return m if m is F else pytest.importorskip("torch")


C6 = normal(6, seed=2), normal(6, seed=3)
NORMALISATION: dict[str, Case] = {
    "batch_norm": (
        lambda m, x, w, b, r, v: m.batch_norm(x, r.detach(), v.detach(), w, b, eps=1e-3),
        (IMAGE, *C6, normal(6, seed=4), uniform(6, low=0.5)),
    ),
    "batch_norm in training": (
        lambda m, x, w, b: m.batch_norm(x, None, None, w, b, training=True),
        (IMAGE, *C6),
    ),
    "batch_norm of vectors": (
        lambda m, x: m.batch_norm(x, None, None, training=True),
        (normal(5, 3),),
    ),
    "group_norm": (lambda m, x, w, b: m.group_norm(x, 3, w, b), (IMAGE, *C6)),
    "group_norm plain": (lambda m, x: m.group_norm(x, 2, eps=0.1), (normal(3, 4),)),
    "instance_norm": (lambda m, x, w, b: m.instance_norm(x, weight=w, bias=b), (IMAGE, *C6)),
    "instance_norm running": (
        lambda m, x, r, v: m.instance_norm(x, r.detach(), v.detach(), use_input_stats=False),
        (IMAGE, normal(6), uniform(6, low=0.5)),
    ),
    "layer_norm": (lambda m, x, w: m.layer_norm(x, (5, 7), w), (IMAGE, normal(5, 7, seed=5))),
    "rms_norm": (lambda m, x, w: m.rms_norm(x, (7,), w), (IMAGE, normal(7))),
    "local_response_norm": (lambda m, x: m.local_response_norm(x, 4, 0.3, 0.6, 1.5), (IMAGE,)),
    "local_response_norm odd": (lambda m, x: m.local_response_norm(x, 3), (normal(2, 5, 4),)),
    "normalize": (lambda m, x: m.normalize(x), (IMAGE,)),
    "normalize p": (lambda m, x: m.normalize(x, p=3.0, dim=-1, eps=0.5), (IMAGE,)),
    "cosine_similarity": (
        lambda m, x, y: m.cosine_similarity(x, y),
        (normal(3, 5), normal(3, 5, seed=2)),
    ),
    "cosine_similarity dim": (
        lambda m, x, y: m.cosine_similarity(x, y, dim=-1, eps=0.1),
        (normal(3, 1, 5), normal(1, 4, 5, seed=2)),
    ),
    "pairwise_distance": (
        lambda m, x, y: m.pairwise_distance(x, y),
        (normal(3, 5), normal(3, 5, seed=2)),
    ),
    "pairwise_distance p": (
        lambda m, x, y: m.pairwise_distance(x, y, p=1.5, eps=1e-3, keepdim=True),
        (normal(3, 5), normal(5)),
    ),
    "pdist": (lambda m, x: m.pdist(x), (normal(5, 3),)),
    "pdist p": (lambda m, x: m.pdist(x, p=3.0), (normal(4, 3),)),
    "cdist": (
        lambda m, x, y: library(m).cdist(x, y),
        (normal(2, 3, 4), normal(2, 5, 4, seed=2)),
    ),
    "cdist 1": (
        lambda m, x, y: library(m).cdist(x, y, 1.0),
        (normal(3, 4), normal(5, 4)),
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", NORMALISATION)
def test_as_in_torch(name: str) -> None:
    f, arrays = NORMALISATION[name]
    compare(f, arrays, name)


@pytest.mark.torch
def test_running_statistics() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x, mean, var = normal(4, 3, 5), normal(3), uniform(3)
    running = torch.tensor(mean), torch.tensor(var)
    torch.nn.functional.batch_norm(torch.tensor(x), *running, training=True, momentum=0.3)
    for found, expected in zip(F.running_statistics(x, mean, var, 0.3), running, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(0, 4), (0, 4, 3), (2, 4, 0), (2, 4), (2, 4, 3)])
def test_group_norm(shape):
    for groups in (1, 2, 4):
        agree("group_norm", floats(*shape), groups, grad=4 // groups > 1 or len(shape) > 2)
        agree("group_norm", floats(*shape), groups, floats(4), floats(4), grad=shape[-1] > 0)
    assert agree("group_norm", floats(*shape), 2) or shape == (2, 4, 0)
    assert F.group_norm(floats(*shape), 2).shape == shape


def test_normalised_by_hand() -> None:
    def standard(x: Any, axes: tuple[int, ...]) -> Any:
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    w, b = (c[:, None, None] for c in C6)
    found = F.batch_norm(IMAGE, None, None, *C6, training=True)
    np.testing.assert_allclose(found.numpy(), standard(IMAGE, (0, 2, 3)) * w + b, rtol=1e-10)
    found = F.group_norm(IMAGE, 3, *C6)
    groups = standard(IMAGE.reshape(2, 3, -1), (2,)).reshape(IMAGE.shape)
    np.testing.assert_allclose(found.numpy(), groups * w + b, rtol=1e-10)
    np.testing.assert_allclose(F.instance_norm(IMAGE).numpy(), standard(IMAGE, (2, 3)), rtol=1e-10)


def test_running_statistics_by_hand() -> None:
    """The variance is the estimate without a bias, by n - 1, as PyTorch keeps it."""
    x = normal(4, 3, 5)
    mean, var = F.running_statistics(x, np.zeros(3), np.ones(3), 0.3)
    np.testing.assert_allclose(mean.numpy(), 0.3 * x.mean((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), 0.7 + 0.3 * x.var((0, 2), ddof=1), rtol=1e-12)


@pytest.mark.parametrize(("p", "metric"), [(1.0, "cityblock"), (2.0, "euclidean")])
def test_distances_are_those_of_scipy(p: float, metric: Any) -> None:
    x, y = normal(4, 3), normal(5, 3, seed=1)
    np.testing.assert_allclose(F.cdist(x, y, p).numpy(), distance.cdist(x, y, metric), rtol=1e-10)
    np.testing.assert_allclose(F.pdist(x, p).numpy(), distance.pdist(x, metric), rtol=1e-10)
