"""From scores to probabilities and labels, against SciPy and what the specification writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.interop.onnx.operators.ml import scores
from retrograd.interop.onnx.registry import NodeCall

special = pytest.importorskip("scipy.special")
X = np.random.default_rng(0).normal(size=(5, 4)) * 2


@pytest.fixture(autouse=True)
def by_meaning() -> Any:
    with rg.backend("reference"):
        yield


def call_of(**attributes: Any) -> NodeCall:
    return NodeCall("Classifier", attributes, 3, ["y"], list, list)


@pytest.mark.parametrize(("how", "exact"), [
    ("NONE", lambda x: x),
    ("LOGISTIC", special.expit),
    ("SOFTMAX", lambda x: special.softmax(x, axis=-1)),
])  # fmt: skip
def test_scores_are_transformed(how: str, exact: Any) -> None:
    found = scores.transformed(rg.asarray(X), how)
    np.testing.assert_allclose(found.numpy(), exact(X), rtol=1e-12)


def test_the_others() -> None:
    p = np.linspace(0.01, 0.99, 12).reshape(3, 4)
    found = scores.transformed(rg.asarray(p), "PROBIT")
    np.testing.assert_allclose(found.numpy(), special.ndtri(p), rtol=1e-9, atol=1e-12)
    with pytest.raises(rg.FormatError, match="post_transform is 'CUBE'"):
        scores.transformed(rg.asarray(X), "CUBE")


def test_softmax_leaves_out_zeros() -> None:
    """Of a row of them alone nothing is known: ONNX Runtime gives halves."""
    x = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [-900.0, 0.0, 1e-8]])
    found = scores.transformed(rg.asarray(x), "SOFTMAX_ZERO").numpy()
    a, b = special.softmax([1.0, -2.0])
    np.testing.assert_allclose(found[0], [a, 0, b], rtol=1e-12)
    assert found[1].tolist() == [0.5, 0.5, 0.5]
    assert np.isfinite(found).all()


def test_two_classes_of_one_score() -> None:
    s = rg.asarray(X[:, 0])
    logistic = scores.of_two(s, "LOGISTIC", True).numpy()
    np.testing.assert_allclose(logistic.sum(1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(logistic[:, 1], special.expit(X[:, 0]), rtol=1e-12)
    for is_probability, first in ((True, 1 - X[:, 0]), (False, -X[:, 0])):
        found = scores.of_two(s, "SOFTMAX", is_probability).numpy()
        np.testing.assert_array_equal(found, np.stack([first, X[:, 0]], 1))


def test_classes_and_what_is_decided() -> None:
    labels = scores.classes(call_of(classlabels_ints=[7, -1, 3, 9]), "classlabels_ints")
    found = scores.decided(labels, rg.asarray(X))
    np.testing.assert_array_equal(found.numpy(), np.array([7, -1, 3, 9])[X.argmax(1)])
    with pytest.raises(rg.BackendError, match="labels that are texts"):
        scores.classes(call_of(classlabels_strings=["a"]), "classlabels_ints")
    with pytest.raises(rg.FormatError, match="no classes"):
        scores.classes(call_of(classlabels_ints=[]), "classlabels_ints")


def test_numbers_of_an_attribute() -> None:
    doubles = np.array([0.1, 0.2])
    both = call_of(w=[1.0], w_as_tensor=doubles)
    assert scores.values_of(both, "w") is not None
    np.testing.assert_array_equal(scores.values_of(both, "w"), doubles)
    empty = call_of(w=[0.1], w_as_tensor=np.zeros(0))
    assert scores.values_of(empty, "w").tolist() == [float(np.float32(0.1))]
    assert scores.values_of(call_of(), "w") is None
    assert scores.floats(rg.asarray([1, 2])).dtype is rg.float32
    assert scores.floats(rg.asarray(doubles)).dtype is rg.float64
