"""Curves and areas, written out."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import IndexRangeError, NonFiniteError, OptionError, ShapeError

M = rg.metrics
S, T = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]


def test_areas():
    assert M.roc_auc(S, T).item() == 0.75
    assert M.average_precision(S, T).item() == pytest.approx(5 / 6)
    assert M.pr_auc(S, T).item() == pytest.approx(19 / 24)
    assert M.roc_auc(S, T, max_fpr=0.5).item() == pytest.approx(2 / 3)
    assert M.roc_auc([[0.9, x] for x in S], T).item() == 0.75


def test_ties_count_half():
    assert M.roc_auc([0.5, 0.5, 0.5], [0, 1, 1]).item() == 0.5
    assert M.roc_auc([0.0, 0.5, 0.5], [0, 0, 1]).item() == 0.75


def test_one_class():
    for t in ([0, 0, 0, 0], [1, 1, 1, 1]):
        assert math.isnan(M.roc_auc(S, t).item())
    assert M.average_precision(S, [0, 0, 0, 0]).item() == 0.0
    fpr, tpr, _ = M.roc_curve(S, [1, 1, 1, 1])
    assert np.isnan(fpr.numpy()).all()
    assert tpr.tolist() == [0.0, 0.25, 1.0]


def test_infinite_scores_are_refused_and_huge_ones_rank():
    assert M.roc_auc([-1e300, 1e300, 0.0], [0, 1, 0]).item() == 1.0
    with pytest.raises(NonFiniteError):
        M.roc_auc([math.nan, 1.0], [0, 1])


@pytest.mark.parametrize("average", ["macro", "weighted", None])
def test_many_classes(average):
    """Each column against the rest, or pairs, as two classes."""
    rng = np.random.default_rng(0)
    s, t = rng.random((30, 3)), rng.integers(0, 3, 30)
    each = [M.roc_auc(s[:, c], t == c).item() for c in range(3)]
    shares = np.bincount(t) / 30
    expected = {"macro": np.mean(each), "weighted": each @ shares, None: each}[average]
    assert M.roc_auc(s, t, average=average).tolist() == pytest.approx(expected)
    names = np.array(["x", "y", "z"])
    assert M.roc_auc(s, names[t], average=average).tolist() == pytest.approx(expected)
    if average == "macro":
        pairs = []
        for a, b in ((0, 1), (0, 2), (1, 2)):
            kept = (t == a) | (t == b)
            pairs += [M.roc_auc(s[kept, c], t[kept] == c).item() for c in (a, b)]
        assert M.roc_auc(s, t, multi_class="ovo").item() == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize(
    ("f", "s", "t", "options", "error"),
    [
        (M.roc_auc, S, [0, 0, 1, 2], {}, OptionError),
        (M.roc_auc, S, [0, 0, 1], {}, ShapeError),
        (M.roc_auc, [], [], {}, ShapeError),
        (M.roc_auc, S, T, {"max_fpr": 0.0}, OptionError),
        (M.roc_auc, S, T, {"multi_class": "all"}, OptionError),
        (M.roc_auc, np.ones((2, 3)), [0, 3], {}, OptionError),
        (M.roc_auc, np.ones((2, 3)), [0, 1], {"labels": [1, 0, 2]}, OptionError),
        (M.roc_auc, np.ones((2, 3)), [0, 1], {"average": "mean"}, OptionError),
        (M.roc_auc, np.ones((2, 3)), [0, 1], {"multi_class": "ovo", "sample_weight": [1, 2]},
         OptionError),
        (M.roc_auc, np.ones((2, 3)), [[0, 1, 2], [0, 0, 0]], {}, IndexRangeError),
        (M.roc_curve, S, [0, 1, 2, 3], {}, OptionError),
        (M.roc_curve, S, [3, 3, 7, 7], {}, OptionError),
        (M.average_precision, S, [3, 3, 7, 7], {}, OptionError),
    ],
)  # fmt: skip
def test_what_is_refused(f, s, t, options, error):
    with pytest.raises(error):
        f(s, t, **options)


def test_what_cannot_be_inside_of_jit():
    s, t = rg.tensor(S), rg.tensor(T)
    with rg.backend("reference"):
        for f in (M.pr_auc, M.roc_curve, lambda s, t: M.roc_auc(s, t, max_fpr=0.5)):
            with pytest.raises(OptionError, match="inside of jit"):
                rg.jit(f)(s, t)
