"""From the scores of a classifier to probabilities and labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import BackendError, FormatError
from retrograd.interop.onnx.registry import NodeCall

ML = "ai.onnx.ml"


def transformed(scores: Any, how: str) -> Any:
    """The scores of each row after `post_transform`."""
    match how:
        case "NONE":
            return scores
        case "LOGISTIC":
            return rg.sigmoid(scores)
        case "SOFTMAX":
            return rg.softmax(scores, axis=-1)
        case "SOFTMAX_ZERO":  # scores of 0 stay 0
            kept = rg.abs(scores) > 1e-7
            parts = rg.exp(scores - rg.max(scores, axis=-1, keepdims=True))
            parts = rg.where(kept, parts, 0)
            total = rg.sum(parts, axis=-1, keepdims=True)
            return rg.where(total == 0, 0.5, parts / rg.where(total == 0, 1, total))
        case "PROBIT":
            return math.sqrt(2) * rg.erfinv(2 * scores - 1)
    raise FormatError(f"post_transform is {how!r:.40}, which ONNX does not have")


def of_two(score: Any, how: str, is_probability: bool) -> Any:
    """The scores of two classes from that of the second, as ONNX Runtime gives them: a logistic
    function is applied, anything else is not."""
    if how == "LOGISTIC":
        return rg.sigmoid(rg.stack([-score, score], axis=1))
    return rg.stack([1 - score if is_probability else -score, score], axis=1)


def classes(call: NodeCall, numbers: str) -> Any:
    """The labels of the classes, as a vector."""
    if call.get("classlabels_strings", None):
        raise BackendError(
            f"{call.operator} has labels that are texts, and a graph has only numbers: export the "
            "model with labels that are whole numbers"
        )
    found = call.get(numbers, None)
    if not found:
        raise FormatError(f"{call.operator} has no classes ({numbers})")
    return np.asarray(found, np.int64)


def decided(labels: Any, scores: Any) -> Any:
    """Of each row the label of the greatest score."""
    return rg.take(rg.asarray(labels), rg.argmax(scores, axis=-1))


def floats(x: Any) -> Any:
    """Features as floating numbers; whole ones in float32."""
    return x if x.dtype.is_float else x.astype(rg.float32)


def values_of(call: NodeCall, name: str, dtype: Any = np.float32) -> Any:
    """An attribute that stands as numbers, or as a tensor where it is of another dtype."""
    tensor = call.get(f"{name}_as_tensor", None)
    if tensor is not None and np.asarray(tensor).size:
        return np.asarray(tensor)
    found = call.get(name, None)
    return None if not found else np.asarray(found, dtype)
