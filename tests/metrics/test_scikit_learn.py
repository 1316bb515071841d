"""Every metric equals scikit-learn's on random cases, degenerate ones among them: one class, one
sample, ties, weights of zero, classes that are never predicted, labels of any kind."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg

sk = pytest.importorskip("sklearn.metrics")
M = rg.metrics


def outcome(f, *args, **options):
    """What a function returns, or None if it refuses."""
    theirs = (ValueError, ZeroDivisionError, NotImplementedError)
    refusals = rg.RetrogradError if f.__module__.startswith("retrograd") else theirs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args, **options)
        except refusals:
            return None


def compare(ours, theirs, predictions, targets, **options):
    """The same value, or both refuse. Theirs may also refuse alone where ours says NaN."""
    a = outcome(ours, predictions, targets, **options)
    b = outcome(theirs, targets, predictions, **options)
    if b is None and a is not None:
        assert np.isnan(np.asarray(a)).all()
        return
    assert (a is None) == (b is None), (predictions, targets, options)
    if a is not None:
        a, b = (x if isinstance(x, tuple) else (x,) for x in (a, b))
        for x, y in itertools.zip_longest(a, b):
            assert np.asarray(x).dtype in (np.float64, np.int64)
            np.testing.assert_allclose(np.asarray(x), y, rtol=1e-12, atol=1e-13)


def weights(rng, n):
    kind = rng.choice(["none", "any", "some", "zero", "whole"], p=[0.5, 0.2, 0.2, 0.03, 0.07])
    return {
        "none": None,
        "any": rng.random(n),
        "some": rng.random(n) * (rng.random(n) < 0.5),
        "zero": np.zeros(n),
        "whole": rng.integers(0, 4, n),
    }[kind]


def sizes(rng):
    return int(rng.choice([1, 1, 2, 3, 5, 8, 20]))


def labels(rng, n):
    """Predictions and targets of a few classes, as labels of some kind."""
    classes = int(rng.choice([1, 2, 2, 3, 4]))
    t = rng.integers(0, classes, n)
    p = np.where(rng.random(n) < 0.5, t, rng.integers(0, classes, n))
    kind = rng.choice(["int", "odd", "text", "bool", "float"])
    if kind == "bool" and classes <= 2:
        return p.astype(bool), t.astype(bool)
    if kind == "text":
        names = np.array(["b", "a", "c", "dd"])
        return names[p], names[t]
    return {"odd": (2 * p - 1, 2 * t - 1), "float": (p.astype(float), t.astype(float))}.get(
        kind, (p, t)
    )


RATIOS = [
    (M.precision, sk.precision_score, {}),
    (M.recall, sk.recall_score, {}),
    (M.f1, sk.f1_score, {}),
    *((M.fbeta, sk.fbeta_score, {"beta": b}) for b in (0.0, 0.5, 2.0, np.inf)),
    (M.jaccard, sk.jaccard_score, {}),
]
SEEDS = pytest.mark.parametrize(
    "seed",
    [*range(10), *(pytest.param(s, marks=pytest.mark.slow) for s in range(10, 300))],
)


@SEEDS
def test_labels(seed):
    rng = np.random.default_rng(seed)
    n = sizes(rng)
    (p, t), w = labels(rng, n), weights(rng, n)
    some = None
    if rng.random() < 0.3:
        there = np.unique(np.concatenate([t, p]))
        some = rng.permutation(there)[: rng.integers(1, len(there) + 1)].tolist()
        some += [["zz" if there.dtype.kind == "U" else 77], []][rng.integers(2)]
    compare(M.accuracy, sk.accuracy_score, p, t, sample_weight=w, normalize=bool(seed % 2))
    compare(
        M.balanced_accuracy,
        sk.balanced_accuracy_score,
        p,
        t,
        sample_weight=w,
        adjusted=seed % 3 == 0,
    )
    compare(M.matthews_corrcoef, sk.matthews_corrcoef, p, t, sample_weight=w)
    for how in (None, "linear", "quadratic"):
        compare(
            M.cohen_kappa, sk.cohen_kappa_score, p, t, weights=how, labels=some, sample_weight=w
        )
    for how in (None, "true", "pred", "all"):
        compare(
            M.confusion_matrix,
            sk.confusion_matrix,
            p,
            t,
            normalize=how,
            labels=some,
            sample_weight=w,
        )
    average = [None, "micro", "macro", "weighted", "binary"][rng.integers(5)]
    options: dict[str, Any] = {"average": average, "zero_division": [0, 1, np.nan][rng.integers(3)]}
    if average == "binary":
        options["pos_label"] = rng.choice(np.unique(t)).item()
    else:
        options["labels"] = some
    for ours, theirs, more in RATIOS:
        if not (ours is M.jaccard and np.isnan(options["zero_division"])):  # which theirs refuses
            compare(ours, theirs, p, t, sample_weight=w, **options, **more)


@SEEDS
def test_several_labels_of_a_sample(seed):
    rng = np.random.default_rng(seed)
    n, columns = sizes(rng), int(rng.integers(2, 5))
    t = (rng.random((n, columns)) < rng.choice([0, 0.3, 0.6, 1])).astype(int)
    p = np.where(rng.random(t.shape) < 0.6, t, 1 - t) * int(rng.random() < 0.8)
    w = weights(rng, n)
    compare(M.accuracy, sk.accuracy_score, p, t, sample_weight=w)
    options = {
        "average": [None, "micro", "macro", "weighted", "samples"][rng.integers(5)],
        "zero_division": [0, 1][rng.integers(2)],
        "labels": rng.permutation(columns)[: rng.integers(1, columns + 1)].tolist()
        if rng.random() < 0.3
        else None,
    }
    for ours, theirs, more in RATIOS:
        compare(ours, theirs, p, t, sample_weight=w, **options, **more)
    if w is None or w.any():
        s = rng.random(t.shape) if rng.random() < 0.5 else rng.integers(0, 3, t.shape).astype(float)
        average = options["average"]
        compare(M.roc_auc, sk.roc_auc_score, s, t, sample_weight=w, average=average)
        compare(
            M.average_precision, sk.average_precision_score, s, t, sample_weight=w, average=average
        )


def area_under_pr(targets, scores, sample_weight=None):
    precision, recall, _ = sk.precision_recall_curve(targets, scores, sample_weight=sample_weight)
    return sk.auc(recall, precision)


@SEEDS
def test_scores_of_two_classes(seed):
    rng = np.random.default_rng(seed)
    n = sizes(rng)
    s = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 4, n).astype(float)
    t = rng.integers(0, 2, n) * (2 if seed % 4 == 0 else 1) - (seed % 4 == 0)
    w = weights(rng, n)
    if w is None or w.any():
        most = [None, 0.1, 0.5, 1.0][rng.integers(4)]
        compare(M.roc_auc, sk.roc_auc_score, s, t, sample_weight=w, max_fpr=most)
    compare(M.average_precision, sk.average_precision_score, s, t, sample_weight=w)
    compare(M.pr_auc, area_under_pr, s, t, sample_weight=w)
    for drop in (False, True):
        compare(M.roc_curve, sk.roc_curve, s, t, sample_weight=w, drop_intermediate=drop)
        compare(
            M.precision_recall_curve,
            sk.precision_recall_curve,
            s,
            t,
            sample_weight=w,
            drop_intermediate=drop,
        )
    p = rng.random(n) if rng.random() < 0.7 else rng.integers(0, 2, n).astype(float)
    compare(M.brier_score, sk.brier_score_loss, p, t, sample_weight=w)
    if len(np.unique(t)) == 2:
        compare(M.log_loss, sk.log_loss, p, t, sample_weight=w)
        compare(M.top_k_accuracy, sk.top_k_accuracy_score, s, t, sample_weight=w, k=1 + seed % 2)


@SEEDS
def test_scores_of_many_classes(seed):
    rng = np.random.default_rng(seed)
    n, classes = sizes(rng), int(rng.integers(3, 6))
    s = rng.random((n, classes)) + 0.01
    s = np.round(4 * s) + 1 if rng.random() < 0.4 else s
    s, t = s / s.sum(1, keepdims=True), rng.integers(0, classes, n)
    w, names = weights(rng, n), list(range(classes))
    several = {"multi_class": ["ovr", "ovo"][seed % 2], "labels": names}
    average = ["macro", "weighted", "micro", None][rng.integers(4)]
    if w is None or w.any():
        compare(M.roc_auc, sk.roc_auc_score, s, t, sample_weight=w, average=average, **several)
    if len(np.unique(t)) == classes and (w is None or w.any()):
        compare(
            M.average_precision, sk.average_precision_score, s, t, sample_weight=w, average=average
        )
    k = int(rng.integers(1, classes + 1))
    for ours, theirs, more in [
        (M.top_k_accuracy, sk.top_k_accuracy_score, {"k": k}),
        (M.log_loss, sk.log_loss, {}),
        (M.brier_score, sk.brier_score_loss, {}),
    ]:
        compare(ours, theirs, s, t, sample_weight=w, labels=names, **more)


@SEEDS
def test_numbers(seed):
    rng = np.random.default_rng(seed)
    n, outputs = sizes(rng), int(rng.integers(1, 4))
    shape = (n,) if outputs == 1 and rng.random() < 0.5 else (n, outputs)
    kinds = [rng.normal(size=shape), rng.integers(0, 2, shape).astype(float), np.full(shape, 0.1)]
    t = kinds[rng.choice(3, p=[0.6, 0.3, 0.1])]
    p, w = t + rng.normal(size=shape) * rng.integers(2), weights(rng, n)
    over = ["uniform_average", "raw_values", rng.random(outputs)][
        rng.integers(3 if outputs > 1 else 2)
    ]
    for ours, theirs in [
        (M.mse, sk.mean_squared_error),
        (M.rmse, sk.root_mean_squared_error),
        (M.mae, sk.mean_absolute_error),
        (M.mape, sk.mean_absolute_percentage_error),
        (M.median_absolute_error, sk.median_absolute_error),
    ]:
        compare(ours, theirs, p, t, sample_weight=w, multioutput=over)
    over = "variance_weighted" if outputs > 1 and seed % 3 == 0 else over
    for ours, theirs in [
        (M.r2, sk.r2_score),
        (M.explained_variance, sk.explained_variance_score),
    ]:
        if n > 1 or ours is M.explained_variance:  # theirs is one NaN, whatever the outputs
            finite = bool(seed % 4)
            compare(ours, theirs, p, t, sample_weight=w, multioutput=over, force_finite=finite)
