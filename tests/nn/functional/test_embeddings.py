"""Lookups and bags as functions, by hand and against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from tests.nn.functional.torch_cases import compare, normal

F = nn.functional


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode: str) -> None:
    table = normal(7, 3)
    for index, options in (
        (np.array([[1, 2, 2], [6, 0, 1]]), {}),
        (np.array([1, 2, 6, 0, 1]), {"offsets": np.array([0, 2, 2]), "padding_idx": 6}),
        (np.array([1, 2, 6, 0]), {"offsets": np.array([0, 2, 4]), "include_last_offset": True}),
    ):

        def f(m: Any, w: Any, index: Any = index, options: Any = options) -> Any:
            given = {k: _like(m, v) for k, v in options.items()}
            return m.embedding_bag(_like(m, index), w, mode=mode, **given)

        compare(f, (table,), mode)


@pytest.mark.torch
def test_embedding_bag_with_weights() -> None:
    index = np.array([[1, 2, 2], [6, 0, 1]])

    def f(m, w, p):
        return m.embedding_bag(_like(m, index), w, mode="sum", per_sample_weights=p)

    compare(f, (normal(7, 3), normal(2, 3)), "weights")


def _like(m: Any, x: Any) -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    return torch.tensor(x) if m is not F and isinstance(x, np.ndarray) else x


@pytest.mark.torch
def test_one_hot_without_classes() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    index = np.array([[0, 2], [3, 1]])
    np.testing.assert_array_equal(
        F.one_hot(index).numpy(), torch.nn.functional.one_hot(torch.tensor(index)).numpy()
    )
    assert F.one_hot(index, 6).shape == (2, 2, 6)
    with pytest.raises(rg.ShapeError, match="num_classes"):
        F.one_hot(np.zeros(0, np.int64))
    with pytest.raises(rg.TraceError):
        rg.jit(F.one_hot)(index)


def test_bags_by_hand() -> None:
    table, index, offsets = normal(7, 3), np.array([1, 2, 6, 0, 1]), np.array([0, 2, 2])
    bags = [table[[1, 2]], table[[]], table[[0, 1]]]  # without the padding, 6
    for mode, f in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        expected = [f(bag, axis=0) if len(bag) else np.zeros(3) for bag in bags]
        found = F.embedding_bag(index, table, offsets, mode=mode, padding_idx=6)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
