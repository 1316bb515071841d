"""Predictions of any form: labels, scores of classes, probabilities, logits."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import (
    DTypeError,
    IndexRangeError,
    NonFiniteError,
    OptionError,
    ShapeError,
)

M = rg.metrics
TARGETS = [0, 1, 1, 0]


@pytest.mark.parametrize(
    "predictions",
    [
        [0, 1, 0, 0], [False, True, False, False], [0.0, 1.0, 0.0, 0.0], [0.2, 0.9, 0.4, 0.5],
        [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.5, 0.5]], [[2, 1], [-3, 1], [7, 0], [1, 0]],
        [[0.2], [0.9], [0.4], [0.5]],
    ],
)  # fmt: skip
def test_forms_of_predictions(predictions):
    assert M.accuracy(predictions, TARGETS).item() == 0.75
    assert M.recall(predictions, TARGETS).item() == 0.5
    assert M.confusion_matrix(np.array(predictions), np.array(TARGETS)).tolist() == [[2, 0], [1, 1]]


def test_logits_of_the_positive_class_need_a_threshold():
    logits = [-2.0, 3.5, -0.5, -1.0]
    assert M.accuracy(logits, TARGETS, threshold=0).item() == 0.75
    assert M.Accuracy(threshold=0).update(logits, TARGETS).compute().item() == 0.75
    with pytest.raises(OptionError, match="give threshold=0 if they are logits"):
        M.accuracy(logits, TARGETS)


def test_columns_count_as_vectors():
    assert M.accuracy([[0], [1]], [0, 1]).item() == 1.0
    assert M.accuracy([[0.2, 0.8], [0.9, 0.1]], [[1], [0]]).item() == 1.0


def test_the_axis_of_classes():
    scores = np.zeros((2, 3, 5))
    scores[:, 2] = 1.0
    targets = np.full((2, 5), 2)
    assert M.accuracy(scores, targets, axis=1).item() == 1.0
    with pytest.raises(ShapeError, match="give axis=1"):
        M.accuracy(scores, targets)
    with pytest.raises(ShapeError, match="axis=7"):
        M.accuracy(scores, targets, axis=7)


def test_tokens_are_counted_one_by_one_and_rows_of_zeros_and_ones_as_one():
    assert M.accuracy([[0, 2], [1, 1]], [[0, 2], [1, 0]]).item() == 0.75
    assert M.accuracy([[0, 1], [1, 1]], [[0, 1], [1, 0]]).item() == 0.5
    assert M.accuracy([[0, 1], [1, 1]], [[0, 1], [1, 0]], multilabel=False).item() == 0.75
    assert M.f1([[0, 1], [1, 1]], [[0, 1], [1, 0]], multilabel=False).item() == 0.8


@pytest.mark.parametrize(
    ("predictions", "targets", "error", "says"),
    [
        ([[0.1, 0.9]], [2], IndexRangeError, "targets hold the label 2; with 2 classes"),
        ([[0.1, 0.9]], [-1], IndexRangeError, "label -1"),
        ([[0.1, float("nan")]], [1], NonFiniteError, r"scores hold NaN at \[0, 1\]"),
        ([float("nan")], [1], NonFiniteError, "predictions hold NaN"),
        ([0, 1], [0.0, float("nan")], NonFiniteError, "targets hold NaN"),
        ([0, 1], [0.5, 1.0], DTypeError, "not 0.5"),
        ([0, 1], [1j, 1], DTypeError, "complex"),
        (["a", "b"], [0, 1], DTypeError, "one kind"),
        ([0, 1], ["a", "b"], DTypeError, "one kind"),
        ([[0.5, 0.5]], ["a"], DTypeError, "one kind"),
        ([], [], ShapeError, "no sample"),
        (0, 0, ShapeError, "no sample"),
        (np.zeros((0, 3)), np.zeros(0, int), ShapeError, "no sample"),
        ([0, 1, 1], [0, 1], ShapeError, "predictions are labels"),
        (np.zeros((2, 3, 4)), [0, 1], ShapeError, "predictions are labels"),
    ],
)
def test_what_is_refused(predictions, targets, error, says):
    for f in (M.accuracy, lambda p, t: M.f1(p, t, average="macro"), M.confusion_matrix):
        with pytest.raises(error, match=says):
            f(predictions, targets)


def test_labels_of_running_metrics_are_numbers_from_0():
    for labels in (["a"], [-1], [1 << 40]):
        with pytest.raises((OptionError, IndexRangeError)):
            M.F1(average="macro").update(labels, labels)
    with pytest.raises(OptionError, match="num_classes=2"):
        M.F1().update([[0.1, 0.2, 0.7]], [1])
    with pytest.raises(IndexRangeError):
        M.F1().update([2], [1])


def test_inside_of_jit_the_number_of_classes_has_to_be_known():
    with rg.backend("reference"):
        p, t = rg.tensor([0, 2]), rg.tensor([1, 2])
        assert rg.jit(lambda p, t: M.f1(p, t, average="micro", num_classes=3))(p, t).item() == 0.5
        with pytest.raises(OptionError, match="give num_classes"):
            rg.jit(lambda p, t: M.f1(p, t, average="micro"))(p, t)
        with pytest.raises(DTypeError, match="inside of jit"):
            rg.jit(lambda p, t: M.accuracy(p, t))(p, rg.tensor([1.0, 2.0]))
