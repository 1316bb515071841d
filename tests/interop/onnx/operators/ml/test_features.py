"""Scaling, encoding, choosing and counting of features, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.interop.onnx.one_node import agrees_with_runtime, one_node
from tests.interop.onnx.suite import graph_of, run_file

ML = "ai.onnx.ml"
X = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
X[1], X[2] = -np.abs(X[1]), 0
HOLES = np.where(X > 1, np.float32("nan"), X)
F32, I64 = 1, 7
ROWS, WHOLE = ("x", F32, ["N", 4]), ("x", I64, ["N", 4])
GRAMS = {
    "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 5, "ngram_counts": [0, 4],
    "ngram_indexes": list(range(7)), "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "weights": [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
}  # fmt: skip
CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Scaler", [X], {"offset": [1.0, 2.0, 3.0, 4.0], "scale": [0.5] * 4}),
    ("Scaler", [X.astype(np.int64)], {"offset": [1.0], "scale": [0.5]}),
    ("Normalizer", [X], {"norm": "MAX"}),
    ("Normalizer", [X], {"norm": "L1"}),
    ("Normalizer", [X], {"norm": "L2"}),
    ("Binarizer", [X], {"threshold": 0.25}),
    (
        "Imputer",
        [HOLES],
        {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": np.nan},
    ),
    ("Imputer", [X.astype(np.int64)], {"imputed_value_int64s": [9], "replaced_value_int64": 1}),
    ("LabelEncoder", [X.astype(np.int64)], {"keys_int64s": [1, 0], "values_floats": [2.5, 3.5]}),
    ("LabelEncoder", [np.round(X)], {"keys_floats": [1.0, 2.0], "values_int64s": [7, 8]}),
    ("OneHotEncoder", [X.astype(np.int64)], {"cats_int64s": [1, -1, 0]}),
    ("TfIdfVectorizer", [np.arange(40).reshape(10, 4) % 9], {"mode": "TF", **GRAMS}),
    ("TfIdfVectorizer", [np.arange(40).reshape(10, 4) % 9], {"mode": "IDF", **GRAMS}),
    ("TfIdfVectorizer", [np.arange(40).reshape(10, 4) % 9], {"mode": "TFIDF", **GRAMS}),
]


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("features", values=9, gradients=0)


@pytest.mark.parametrize(("operator", "arrays", "attributes"), CASES)
def test_as_onnx_runtime(operator: str, arrays: list[Any], attributes: dict[str, Any]) -> None:
    described = ROWS if arrays[0].dtype == np.float32 else WHOLE
    domain = "" if operator == "TfIdfVectorizer" else ML
    with rg.backend("reference"):
        agrees_with_runtime(one_node(operator, [described], 1, domain, **attributes), *arrays)


def test_several_inputs() -> None:
    places = np.array([2, 0])
    model = one_node("ArrayFeatureExtractor", [ROWS, ("i", I64, [2])], domain=ML)
    agrees_with_runtime(model, X, places)
    sides = [ROWS, ("z", F32, ["N", 2])]
    model = one_node("FeatureVectorizer", sides, domain=ML, inputdimensions=[4, 2])
    agrees_with_runtime(model, X, X[:, :2].copy())


def test_keys_of_a_label_encoder() -> None:
    """NaN is a key, and of equal keys the last counts, as ONNX says (ONNX Runtime does not)."""
    keys: dict[str, Any] = {"keys_floats": [5.0, np.nan, 5.0], "values_int64s": [1, 2, 3]}
    g = graph_of(one_node("LabelEncoder", [("x", F32, ["N"])], domain=ML, **keys), "m")
    assert g(np.array([5, np.nan, 4], np.float32)).tolist() == [3, 2, -1]


def test_texts_are_refused() -> None:
    model = one_node("OneHotEncoder", [WHOLE], domain=ML, cats_strings=["a"])
    with pytest.raises(rg.BackendError, match="cats_strings: a graph has only numbers"):
        graph_of(model, "m")
