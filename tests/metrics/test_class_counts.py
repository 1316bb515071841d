"""Averages over classes, written out."""

import math

import pytest

import retrograd as rg
from retrograd.errors import OptionError, ShapeError

M = rg.metrics
# Of class 0 there are 2 hits, 1 that is none, 1 missed; of class 1: 1, 2, 0; of class 2: 0, 0, 2.
P, T = [0, 0, 0, 1, 1, 1], [0, 0, 2, 1, 0, 2]
NAN = math.nan


@pytest.mark.parametrize(
    ("average", "zero", "precision", "recall"),
    [
        (None, 0, [2 / 3, 1 / 3, 0.0], [2 / 3, 1.0, 0.0]),
        (None, 1, [2 / 3, 1 / 3, 1.0], [2 / 3, 1.0, 0.0]),
        ("macro", 0, 1 / 3, 5 / 9),
        ("macro", NAN, 1 / 2, 5 / 9),
        ("micro", 0, 1 / 2, 1 / 2),
        ("weighted", 0, (3 * 2 / 3 + 1 / 3) / 6, (3 * 2 / 3 + 1) / 6),
        ("weighted", NAN, (3 * 2 / 3 + 1 / 3) / 4, (3 * 2 / 3 + 1) / 6),
    ],
)
def test_averages(average, zero, precision, recall):
    for f, value in ((M.precision, precision), (M.recall, recall)):
        found = f(P, T, average=average, zero_division=zero)
        assert found.tolist() == pytest.approx(value, abs=1e-15)


def test_classes_that_do_not_occur_are_left_out_of_the_mean_unless_they_are_named():
    scores = [[9, 0, 0, 0], [0, 9, 0, 0]]
    assert M.f1(scores, [0, 1], average="macro").item() == 1.0
    assert M.f1(scores, [0, 1], average="macro", labels=[0, 1, 3]).item() == 2 / 3
    assert M.f1(scores, [0, 1], average=None).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_labels_choose_classes_and_their_order():
    assert M.recall(P, T, average=None, labels=[2, 0]).tolist() == [0.0, 2 / 3]
    assert M.recall(["b", "a"], ["b", "b"], average=None, labels=["b"]).tolist() == [0.5]
    for labels in ([], [0, 0], ["a"]):
        with pytest.raises((OptionError, TypeError)):
            M.recall(P, T, average=None, labels=labels)


def test_where_no_class_is_true_of_a_sample_all_weigh_the_same():
    found = M.precision([1, 1], [0, 0], average="weighted", labels=[1, 2], zero_division=1)
    assert found.item() == 0.5


def test_the_mean_over_samples():
    p, t = [[1, 0, 1], [0, 0, 0]], [[1, 1, 0], [1, 0, 0]]
    assert M.precision(p, t, average="samples").item() == 0.25
    assert M.precision(p, t, average="samples", zero_division=1).item() == 0.75
    assert M.precision(p, t, average="samples", zero_division=NAN).item() == 0.5
    assert M.precision(p, t, average="samples", sample_weight=[3, 1]).item() == 0.375
    assert M.recall(p, t, average="samples", labels=[0]).item() == 0.5
    with pytest.raises(OptionError, match="columns from 0 to 2"):
        M.recall(p, t, average="samples", labels=[3])
    with pytest.raises(ShapeError, match="several labels"):
        M.recall([0], [1], average="samples")
    with pytest.raises(OptionError, match="several labels"):
        M.recall(p, t, average="samples", multilabel=False)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"average": "mean"}, "'macro'"),
        ({"zero_division": 2}, "0, 1 or NaN"),
        ({"average": "macro", "pos_label": 0}, "labels"),
        ({}, "3 classes"),
        ({"multilabel": True}, "no meaning|NL|N, L"),
    ],
)
def test_options_that_there_are_not(options, says):
    with pytest.raises((OptionError, ValueError), match=says):
        M.f1(P, T, **options)


def test_the_positive_label():
    assert M.precision([1, 2, 2], [1, 2, 1], pos_label=2).item() == 0.5
    assert M.precision(["no", "yes"], ["no", "yes"], pos_label="yes").item() == 1.0
    with pytest.raises(OptionError, match="pos_label=1 is none of the labels"):
        M.precision([2, 3], [2, 3])
    with pytest.raises(OptionError, match="pos_label"):
        M.precision(["no"], ["no"])
    for options in ({"num_classes": 3}, {"pos_label": 5}, {"multilabel": True}):
        with pytest.raises(OptionError):
            M.F1(**options)
