"""Accuracy, written out."""

import pytest

import retrograd as rg
from retrograd.errors import IndexRangeError, OptionError, ShapeError

M = rg.metrics
SCORES = [[0.5, 0.2, 0.2], [0.3, 0.4, 0.2], [0.2, 0.4, 0.3], [0.7, 0.2, 0.1]]
TARGETS = [0, 1, 2, 2]


@pytest.mark.parametrize(("k", "value"), [(1, 0.5), (2, 0.75), (3, 1.0), (9, 1.0)])
def test_the_top_k(k, value):
    assert M.accuracy(SCORES, TARGETS, top_k=k).item() == value
    assert M.top_k_accuracy(SCORES, TARGETS, k=k).item() == value


def test_equal_scores():
    """The first counts as greater, as for `argmax`; in `top_k_accuracy` the last one."""
    assert [M.accuracy([[1, 1, 1]], [t], top_k=2).item() for t in range(3)] == [1, 1, 0]
    assert [M.top_k_accuracy([[1, 1, 1]], [t], k=2).item() for t in range(3)] == [0, 1, 1]


def test_options():
    assert M.accuracy(TARGETS, [0, 1, 2, 0], normalize=False).item() == 3
    assert M.accuracy(TARGETS, [0, 1, -1, 0], ignore_index=-1).item() == 2 / 3
    assert M.accuracy(SCORES, [0, -1, 0, -1], ignore_index=-1, top_k=2).item() == 0.5
    assert M.accuracy(["a", "b"], ["a", "a"], sample_weight=[3, 1]).item() == 0.75
    assert M.top_k_accuracy(SCORES, ["a", "b", "c", "c"], labels=["a", "b", "c"]).item() == 0.75
    assert M.top_k_accuracy([0.2, 0.7], [0, 1], k=1).item() == 1.0
    assert M.balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0]).item() == 0.75
    assert M.balanced_accuracy([0, 1, 0, 0], [0, 1, 1, 0], adjusted=True).item() == 0.5


def test_what_is_refused():
    with pytest.raises(OptionError, match="top_k"):
        M.accuracy(SCORES, TARGETS, top_k=0)
    with pytest.raises(OptionError, match="top_k"):
        M.Accuracy(top_k=1.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="one more axis"):
        M.accuracy([0, 1], [0, 1], top_k=2)
    with pytest.raises(IndexRangeError):
        M.accuracy(SCORES, [0, 1, 2, 3], top_k=2)
    with pytest.raises(OptionError, match="3 columns"):
        M.top_k_accuracy(SCORES, TARGETS, labels=[0, 1])
    with pytest.raises(OptionError, match="none of the labels"):
        M.top_k_accuracy(SCORES, [0, 1, 2, 9], labels=[0, 1, 2])
    with pytest.raises(OptionError, match="all weights"):
        M.accuracy(SCORES, [-1] * 4, ignore_index=-1)
    with pytest.raises(OptionError, match="all weights"):
        M.Accuracy().update([1], [1], [0.0]).compute()
