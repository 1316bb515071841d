"""Linear models, and support vector machines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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


@rule("SVMClassifier", domain=ML)
def svm_classifier(call: NodeCall, x: Any) -> Any:
    """Labels and scores as ONNX Runtime has them. A machine of support vectors decides between each
    two classes; the class with most votes wins, the first of them. Without support vectors there is
    a linear score for each class. With `prob_a` the scores are probabilities."""
    x, labels = floats(x).astype(rg.float32), classes(call, "classlabels_ints")
    weights, shift = _vector(call, "coefficients", x.dtype), _vector(call, "rho", x.dtype)
    if weights is None or shift is None:
        raise FormatError("SVMClassifier has no coefficients, or no rho")
    how, count = call.get("post_transform", "NONE"), len(labels)
    owned = [int(n) for n in call.get("vectors_per_class", None) or ()]
    positive, label = bool((weights >= 0).all()), rg.asarray(labels)
    if owned:
        scores = _of_pairs(call, x, weights, shift, owned, count)
        chosen = rg.take(label, _most_voted(scores, count))
        slope, offset = _vector(call, "prob_a", x.dtype), _vector(call, "prob_b", x.dtype)
        if slope is not None and offset is not None:
            scores = coupled(1 - rg.sigmoid(scores * slope + offset), count)
    else:
        rows = _table(weights, count, "coefficients")
        scores = x @ rg.asarray(np.ascontiguousarray(rows.T)) + float(shift[0])
        chosen = decided(labels, scores)
        if count == 2:
            greatest = rg.max(scores, axis=-1)
            most = greatest >= 0.5 if positive else greatest > 0
            chosen = rg.where(most, int(labels[1]), chosen)
    if scores.shape[-1] == 1 and how != "PROBIT":
        return chosen, of_two(scores[:, 0], how, is_probability=how != "NONE")
    return chosen, transformed(scores, how)


def _of_pairs(
    call: NodeCall, x: Any, weights: Any, shift: Any, owned: Sequence[int], count: int
) -> Any:
    """The score of each pair of classes: those of its support vectors, by their coefficients."""
    total = sum(owned)
    vectors = _table(_vector(call, "support_vectors", x.dtype), total, "support vectors")
    rows = _table(weights, count - 1, "coefficients")
    pairs = list(itertools.combinations(range(count), 2))
    if len(owned) != count or rows.shape[1] != total or len(shift) < len(pairs):
        raise FormatError(
            f"SVMClassifier of {count} classes has vectors_per_class {list(owned)!r:.60}, "
            f"{weights.size} coefficients and {len(shift)} numbers in rho, which do not fit"
        )
    start = np.concatenate([[0], np.cumsum(owned)])
    table = np.zeros((total, len(pairs)), np.float32)
    for column, (i, j) in enumerate(pairs):
        first, second = slice(start[i], start[i + 1]), slice(start[j], start[j + 1])
        table[first, column], table[second, column] = rows[j - 1, first], rows[i, second]
    return kernel(call, x, vectors) @ rg.asarray(table) + rg.asarray(shift[: len(pairs)])


def _most_voted(scores: Any, count: int) -> Any:
    """The class that wins most of its pairs."""
    votes: list[Any] = [0] * count
    for column, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        won = (scores[:, column] > 0).astype(rg.int32)
        votes[i], votes[j] = votes[i] + won, votes[j] + (1 - won)
    return rg.argmax(rg.stack([rg.asarray(v) for v in votes], axis=-1), axis=-1)


def coupled(pairs: Any, count: int) -> Any:
    """Probabilities of classes from those of pairs: steps of a fixed point until all rows rest (Wu,
    Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling",
    JMLR 5, 2004, algorithm 2), as many as ONNX Runtime and libsvm do."""
    pairs = rg.clip(pairs, 1e-7, 1 - 1e-7)
    wins = {}
    for column, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        wins[i, j], wins[j, i] = pairs[:, column], 1 - pairs[:, column]

    def entry(i: int, j: int) -> Any:
        if i != j:
            return -wins[j, i] * wins[i, j]
        return sum((wins[k, i] * wins[k, i] for k in range(count) if k != i), start=0 * pairs[:, 0])

    q = rg.stack([rg.stack([entry(i, j) for j in range(count)], -1) for i in range(count)], -2)

    def moved(p: Any) -> tuple[Any, Any]:
        """The next probabilities, and the rows that are not at rest."""
        qp = (q @ p[..., None])[..., 0]
        pqp = rg.sum(p * qp, axis=-1)
        far = rg.max(rg.abs(qp - pqp[:, None]), axis=-1) >= 0.005 / count
        new = p
        for i in range(count):
            by = (pqp - qp[:, i]) / q[:, i, i]
            one = np.eye(count, dtype=np.float32)[i]
            pqp = (pqp + by * (by * q[:, i, i] + 2 * qp[:, i])) / (1 + by) / (1 + by)
            qp = (qp + by[:, None] * q[:, i]) / (1 + by)[:, None]
            new = (new + by[:, None] * rg.asarray(one)) / (1 + by)[:, None]
        return rg.where(far[:, None], new, p), far

    def step(at: Any) -> Any:
        new, far = moved(at[1])
        return at[0] + 1, new, rg.any(far)

    start = rg.full_like(q[..., 0], 1 / count)
    first = (rg.asarray(0), start, rg.asarray(True))
    return rg.while_loop(lambda at: at[2] & (at[0] < 100), step, first)[1]
