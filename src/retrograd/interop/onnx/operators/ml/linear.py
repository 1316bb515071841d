"""Linear models, and support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import FormatError
from retrograd.interop.onnx.operators.ml.scores import (
    ML,
    classes,
    decided,
    floats,
    of_two,
    transformed,
)
from retrograd.interop.onnx.registry import NodeCall, rule


def _vector(call: NodeCall, name: str, dtype: Any) -> Any:
    found = call.get(name, None)
    return None if not found else np.asarray(found, dtype.dtype)


def _table(values: Any, rows: int, what: str) -> Any:
    if values is None or rows <= 0 or values.size % rows:
        count = 0 if values is None else values.size
        raise FormatError(f"{count} {what} cannot stand in {rows} rows")
    return values.reshape(rows, -1)


def _affine(call: NodeCall, x: Any, rows: int) -> Any:
    weights = _table(_vector(call, "coefficients", x.dtype), rows, "coefficients")
    shift = _vector(call, "intercepts", x.dtype)
    y = x @ rg.asarray(np.ascontiguousarray(weights.T))
    return y if shift is None else y + rg.asarray(shift)


@rule("LinearRegressor", domain=ML)
def linear_regressor(call: NodeCall, x: Any) -> Any:
    y = _affine(call, floats(x), call.get("targets", 1))
    return transformed(y, call.get("post_transform", "NONE")).astype(rg.float32)


@rule("LinearClassifier", domain=ML)
def linear_classifier(call: NodeCall, x: Any) -> Any:
    """Labels and scores; one row of coefficients for two classes gives the score of the second."""
    x, labels = floats(x), classes(call, "classlabels_ints")
    x = x.astype(rg.float32)
    rows = len(call.get("coefficients")) // max(x.shape[-1], 1)
    scores = _affine(call, x, rows)
    how = call.get("post_transform", "NONE")
    if rows == 1 and len(labels) == 2:
        score = scores[:, 0]
        chosen = rg.where(score > 0, int(labels[1]), int(labels[0]))
        return chosen, of_two(score, how, is_probability=True)
    if rows != len(labels):
        raise FormatError(f"LinearClassifier has {len(labels)} classes and scores of {rows}")
    return decided(labels, scores), transformed(scores, how)


def kernel(call: NodeCall, x: Any, vectors: Any) -> Any:
    """Of each row with each support vector."""
    gamma, shift, degree = call.get("kernel_params", None) or (0.0, 0.0, 0.0)
    product = x @ rg.asarray(np.ascontiguousarray(vectors.T))
    match call.get("kernel_type", "LINEAR").upper():
        case "LINEAR":
            return product
        case "POLY":
            return rg.pow(gamma * product + shift, float(int(degree)))
        case "SIGMOID":
            return rg.tanh(gamma * product + shift)
        case "RBF":
            far = rg.sum(rg.square(x[:, None] - rg.asarray(vectors)), axis=-1)
            return rg.exp(-gamma * far)
    raise FormatError(f"kernel_type is {call.get('kernel_type')!r:.40}, which ONNX does not have")


@rule("SVMRegressor", domain=ML)
def svm_regressor(call: NodeCall, x: Any) -> Any:
    """Of one class: 1 within, -1 outside."""
    x = floats(x).astype(rg.float32)
    weights, shift = _vector(call, "coefficients", x.dtype), _vector(call, "rho", x.dtype)
    if weights is None or shift is None:
        raise FormatError("SVMRegressor has no coefficients, or no rho")
    count = call.get("n_supports", 0)
    if count > 0:
        vectors = _table(_vector(call, "support_vectors", x.dtype), count, "support vectors")
        y = kernel(call, x, vectors) @ rg.asarray(weights.reshape(-1, 1))
    else:
        y = x @ rg.asarray(weights.reshape(-1, 1))
    y = y + float(shift[0])
    if call.get("one_class", 0):
        return rg.where(y > 0, 1.0, -1.0).astype(rg.float32)
    return transformed(y, call.get("post_transform", "NONE"))
