"""The confusion matrix and what is read off it, written out."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import MemoryLimitError, OptionError

M = rg.metrics
P, T = [0, 0, 2, 2, 0, 2], [2, 0, 2, 2, 0, 1]


def test_the_matrix():
    assert M.confusion_matrix(P, T).tolist() == [[2, 0, 0], [0, 0, 1], [1, 0, 2]]
    assert M.confusion_matrix(P, T).dtype is rg.int64
    assert M.confusion_matrix(P, T, labels=[2, 0]).tolist() == [[2, 1], [0, 2]]
    assert M.confusion_matrix([0], [0], num_classes=2).tolist() == [[1, 0], [0, 0]]
    assert M.confusion_matrix(P, T, normalize="pred")[:, 0].tolist() == [2 / 3, 0.0, 1 / 3]
    weighed = M.confusion_matrix(P, T, sample_weight=np.full(6, 0.5))
    assert weighed.tolist() == [[1.0, 0, 0], [0, 0, 0.5], [0.5, 0, 1.0]]


def test_numbers_of_it():
    assert M.cohen_kappa(P, T).item() == pytest.approx(3 / 7)
    assert M.cohen_kappa(P, T, weights="linear").item() == pytest.approx(1 - 3 / 6)
    assert M.matthews_corrcoef([1, 0, 1, 1], [1, 1, 1, 0]).item() == pytest.approx(-1 / 3)
    assert M.matthews_corrcoef([1, 1], [1, 0]).item() == 0.0
    assert np.isnan(M.cohen_kappa([1, 1], [1, 1]).numpy())


def test_what_is_refused():
    cases: list[tuple[Any, dict[str, Any]]] = [
        (M.confusion_matrix, {"normalize": "rows"}),
        (M.cohen_kappa, {"weights": "cubic"}),
        (M.confusion_matrix, {"labels": [7]}),
        (M.confusion_matrix, {"num_classes": 0}),
    ]
    for f, options in cases:
        with pytest.raises(OptionError):
            f(P, T, **options)
    with pytest.raises(MemoryLimitError):
        M.confusion_matrix(P, T, num_classes=10**8)
    with pytest.raises(MemoryLimitError):
        M.ConfusionMatrix(10**8).update(P, T)
