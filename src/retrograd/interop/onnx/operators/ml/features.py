"""Features: scaled, filled up, encoded, chosen, counted."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import BackendError, FormatError
from retrograd.interop.onnx.operators.ml.scores import ML, floats
from retrograd.interop.onnx.registry import NodeCall, rule


@rule("Scaler", domain=ML)
def scaler(call: NodeCall, x: Any) -> Any:
    x = x.astype(rg.float32)
    shift, scale = (
        np.asarray(call.get(name, None) or [default], np.float32)
        for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    return (x - rg.asarray(shift)) * rg.asarray(scale)


@rule("Normalizer", domain=ML)
def normalizer(call: NodeCall, x: Any) -> Any:
    """Each row by its maximum, sum of sizes or length; where that is 0 the row stays."""
    x, norm = x.astype(rg.float32), call.get("norm", "MAX")
    match norm:
        case "MAX":
            size = rg.max(x, axis=-1, keepdims=True)
        case "L1":
            size = rg.sum(rg.abs(x), axis=-1, keepdims=True)
        case "L2":
            squares = rg.sum(rg.square(x), axis=-1, keepdims=True)
            size = rg.sqrt(rg.where(squares == 0, 1, squares))
        case _:
            raise FormatError(f"Normalizer has the norm {norm!r:.40}, which ONNX does not have")
    return x / rg.where(size == 0, 1, size)


@rule("Binarizer", domain=ML)
def binarizer(call: NodeCall, x: Any) -> Any:
    return (x > call.get("threshold", 0.0)).astype(x.dtype)


@rule("Imputer", domain=ML)
def imputer(call: NodeCall, x: Any) -> Any:
    """One value of an input is replaced, NaN for example."""
    kind = "float" if x.dtype.is_float else "int64"
    filled = call.get(f"imputed_value_{kind}s", None)
    if not filled:
        raise FormatError(f"Imputer has no imputed_value_{kind}s, for an input of {x.dtype}")
    gone = call.get(f"replaced_value_{kind}", 0)
    lacks = rg.isnan(x) if gone != gone else x == gone
    return rg.where(lacks, rg.asarray(np.asarray(filled, x.dtype.dtype)), x)


def _texts(call: NodeCall, *names: str) -> None:
    for name in names:
        if call.get(name, None):
            raise BackendError(f"{call.operator} with {name}: a graph has only numbers, no texts")


def _listed(call: NodeCall, what: str) -> Any:
    kinds = {"floats": np.float32, "int64s": np.int64, "tensor": None}
    for kind, dtype in kinds.items():
        found = call.get(f"{what}_{kind}", None)
        if found is not None and len(found):
            return np.asarray(found, dtype)
    return None


@rule("LabelEncoder", domain=ML)
def label_encoder(call: NodeCall, x: Any) -> Any:
    """Keys become values; of equal keys the last counts."""
    _texts(call, "keys_strings", "values_strings")
    keys, values = _listed(call, "keys"), _listed(call, "values")
    if keys is None or values is None or len(keys) != len(values):
        raise FormatError("LabelEncoder needs keys and as many values")
    if values.dtype == np.float32:
        other: Any = call.get("default_float", -0.0)
    else:
        other = call.get("default_int64", -1)
    other = np.asarray(call.get("default_tensor", other)).reshape(()).astype(values.dtype)
    table: dict[Any, int] = {key: i for i, key in enumerate(keys.tolist()) if key == key}
    y = rg.full(x.shape, other.item(), dtype=rg.asarray(values).dtype)
    if (nans := np.flatnonzero(keys != keys)).size:
        y = rg.where(rg.isnan(x), values[nans[-1]].item(), y)
    if not table:
        return y
    order = sorted(table)
    known = rg.asarray(np.asarray(order, keys.dtype))
    place = rg.minimum(rg.searchsorted(known, x), len(order) - 1)
    found = rg.take(rg.asarray(values[[table[key] for key in order]]), place)
    return rg.where(rg.take(known, place) == x, found, y)


@rule("OneHotEncoder", domain=ML)
def one_hot_encoder(call: NodeCall, x: Any) -> Any:
    _texts(call, "cats_strings")
    if not call.get("zeros", 1):
        raise BackendError("OneHotEncoder with zeros=0, which fails on what is no category")
    kinds = np.asarray(call.get("cats_int64s"), np.int64)
    return (x.astype(rg.int64)[..., None] == rg.asarray(kinds)).astype(rg.float32)


@rule("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(_call: NodeCall, x: Any, places: Any) -> Any:
    """Columns of the last axis; a vector gives one row."""
    y = rg.take(x, rg.reshape(places, (-1,)), axis=-1)
    return y if x.ndim > 1 else rg.reshape(y, (1, -1))


@rule("FeatureVectorizer", domain=ML)
def feature_vectorizer(call: NodeCall, *parts: Any) -> Any:
    """Side by side, each cut or filled up to its length."""
    lengths = call.get("inputdimensions", None) or [p.shape[-1] for p in parts]
    made = []
    for part, n in zip(parts, lengths, strict=True):
        x = floats(part).astype(rg.float32)
        x = rg.reshape(x, (-1, 1)) if x.ndim == 1 else x
        cut = x[:, :n]
        made.append(rg.pad(cut, ((0, 0), (0, max(0, n - x.shape[1])))))
    return rg.concat(made, axis=1)


@rule("TfIdfVectorizer")
def tfidf(call: NodeCall, x: Any) -> Any:
    """How often each n-gram of a list stands in a row, also with elements left out between."""
    _texts(call, "pool_strings")
    pool, starts = call.get("pool_int64s"), [*call.get("ngram_counts")]
    places, mode = call.get("ngram_indexes"), call.get("mode")
    least, most = call.get("min_gram_length"), call.get("max_gram_length")
    grams = []
    for n, (a, b) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True), 1):
        if not 0 <= a <= b <= len(pool) or (b - a) % n:
            raise FormatError(f"TfIdfVectorizer has {b - a} numbers in {n}-grams")
        grams += [pool[i : i + n] for i in range(a, b, n)]
    if len(grams) != len(places):
        raise FormatError(f"TfIdfVectorizer has {len(grams)} n-grams and {len(places)} places")
    weights = call.get("weights", None) or [1.0] * len(grams)
    columns = {}
    for gram, place, weight in zip(grams, places, weights, strict=True):
        if least <= len(gram) <= most:
            count = _count(x, gram, call.get("max_skip_count"))
            count = rg.minimum(count, 1) if mode == "IDF" else count
            columns[place] = count if mode == "TF" else count * weight
    zero = rg.zeros(x.shape[:-1], dtype=rg.float32)
    return rg.stack([columns.get(i, zero) for i in range(max(places) + 1)], axis=-1)


def _count(x: Any, gram: list[int], skips: int) -> Any:
    n, length = len(gram), x.shape[-1]
    total = rg.zeros(x.shape[:-1], dtype=rg.float32)
    for step in range(1, (skips if n > 1 else 0) + 2):
        room = length - (n - 1) * step
        if room <= 0:
            break
        parts = [x[..., i * step : i * step + room] == value for i, value in enumerate(gram)]
        found = parts[0]
        for part in parts[1:]:
            found = found & part
        total = total + rg.sum(found.astype(rg.float32), axis=-1)
    return total
