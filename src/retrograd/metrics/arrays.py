"""What is given to a metric, as arrays: NumPy's where the values are there, in double precision and
checked; tensors where a function is being traced, which are computed on later.

Metrics are written once, for both: `xp` is NumPy or `retrograd`, as in the array API standard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.conversion import as_array, holds_arrays
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import is_tracing
from retrograd.errors import DTypeError, NonFiniteError, OptionError, ShapeError, TraceError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.memory_limit import check_new

EPSILON = float(np.finfo(np.float64).eps)
BFLOAT16 = rg.bfloat16.dtype
Array = Any  # NumPy's or a tensor: what `xp` computes with


def given(*values: Any) -> tuple[Any, list[Any]]:
    """The namespace for these arguments, and each as an array of it. The last, weights, may be
    None."""
    if any(x is None for x in values[:-1]):
        raise DTypeError("None is given where predictions and targets, or values, are expected")
    found = [_concrete(x) for x in values]
    if any(isinstance(x, LazyTensor) for x in found):
        return rg, [None if x is None else rg.asarray(x) for x in found]
    return np, found


def given_once(predictions: Any, targets: Any, sample_weight: Any) -> tuple[Any, list[Any]]:
    """The same of all there is to measure: some of it has a weight."""
    xp, arrays = given(predictions, targets, sample_weight)
    if (w := arrays[2]) is not None and not is_text(w):
        reject_zero_weights(xp, (w != 0).any())
    return xp, arrays


def namespace(tree: Any) -> Any:
    """NumPy if all leaves have values now, `retrograd` where some are being traced."""
    leaves = pytree.flatten(tree)[0]
    return rg if any(isinstance(_concrete(x), LazyTensor) for x in leaves) else np


def _concrete(x: Any) -> Any:
    """The array of an argument; a tensor stays one if it has no value yet. What is measured is a
    constant: nothing is asked about gradients."""
    if x is None:
        return None
    if isinstance(x, LazyTensor):
        if is_tracing():
            return x
        try:
            return x.value()
        except TraceError:  # of `vmap` or `grad` of what is traced
            return x
    if isinstance(x, list | tuple) and holds_arrays(x):
        return as_array(x)
    if isinstance(x, np.ma.MaskedArray):
        raise DTypeError("a masked array has no counterpart here; fill it first: data.filled(0)")
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ShapeError(f"the nested sequence is ragged, its rows differ: {error}") from None
    if array.dtype.kind == "O":
        return _objects(array, x)
    if array.dtype.kind in "mMV" and array.dtype != BFLOAT16:
        raise DTypeError(f"metrics take numbers and texts, not {array.dtype}")
    return array


def _objects(array: Any, x: Any) -> Any:
    """Labels from tables come as objects: texts, or numbers of one kind."""
    items = array.reshape(-1).tolist()
    if array.ndim and all(isinstance(v, str) for v in items):
        return array.astype(str)
    if array.ndim and all(isinstance(v, bool | int | float | np.generic) for v in items):
        numbers = np.asarray(array.tolist())
        return numbers.astype(np.float64) if numbers.dtype.kind == "O" else numbers
    raise DTypeError(
        f"metrics take arrays, tensors, and lists of numbers or texts, not {type(x).__name__}"
        f" {x!r:.60}; make a list or an array of it"
    )


def as_tensors(tree: Any) -> Any:
    """What was computed, as tensors."""
    if isinstance(tree, dict):
        return {k: as_tensors(v) for k, v in tree.items()}
    if isinstance(tree, tuple):
        return tuple(map(as_tensors, tree))
    return tree if isinstance(tree, LazyTensor) else Tensor.of(np.asarray(tree))


# -- checks --------------------------------------------------------------------------------------
def is_text(x: Array) -> bool:
    """Whether an array is one of texts."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "US"


def is_floating(xp: Any, x: Array) -> bool:
    """Whether an array is one of floats; those of bfloat16 are, too."""
    if xp is np:
        return x.dtype.kind == "f" or x.dtype == BFLOAT16
    return bool(x.dtype.is_float)


def floats(xp: Any, x: Array, what: str) -> Array:
    """An array in double precision, every number finite."""
    if is_text(x) or getattr(x.dtype, "kind", "") in ("c", "complex"):
        raise DTypeError(f"{what} should be real numbers, not {x.dtype}")
    wide = x.astype(xp.float64)
    if xp is np and not np.isfinite(wide).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(wide))[0])
        raise NonFiniteError(
            f"{what} hold {wide[where]} at {list(where)}; a metric of it says nothing. Look for "
            "where it comes from with rg.debug(), or leave such samples out"
        )
    return wide


def not_empty(x: Array, what: str) -> None:
    """Raise where there is no sample."""
    if 0 in x.shape or x.ndim == 0:
        raise ShapeError(
            f"{what} of the shape {tuple(x.shape)} hold no sample; a metric takes one or more"
        )


def weights_for(xp: Any, sample_weight: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Weights of samples, one for each, flat, in double precision."""
    if sample_weight is None:
        return None
    w = floats(xp, sample_weight, "sample_weight")
    if w.shape != shape and w.size == 1 and w.ndim == 0:
        w = xp.broadcast_to(w, shape)
    if tuple(w.shape) != tuple(shape):
        raise ShapeError(
            f"sample_weight has the shape {tuple(w.shape)}, the samples {tuple(shape)}; give a "
            "weight for each"
        )
    return w.reshape(-1)


def reject_zero_weights(xp: Any, total: Any) -> None:
    """Raise where nothing was weighed, so that there is no mean."""
    if xp is np and not total:
        raise OptionError(
            "all weights of samples are zero; give at least one sample a weight that is not"
        )


# -- computations that differ --------------------------------------------------------------------
def count(xp: Any, index: Array, weights: Array | None, length: int) -> Array:
    """The sum of the weights for each index, or how often there is each."""
    check_new((length,), 8, "a row of counts")
    if xp is np:
        return np.bincount(index, weights, minlength=length)[:length]
    return rg.bincount(index, weights, length=length).astype(rg.float64)


def ratio(xp: Any, a: Array, b: Array, otherwise: Any) -> Array:
    """a / b; `otherwise` where b is zero."""
    none = b == 0
    return xp.where(none, otherwise, a / xp.where(none, 1.0, b))


def mean_of(xp: Any, values: Array, weights: Array | None, axis: int | None = None) -> Array:
    """The mean along an axis, weighted, as `np.average` computes it; 0 where weights are."""
    if weights is None:
        return xp.mean(values, axis=axis)
    w = weights if values.ndim == 1 else weights.reshape(-1, *[1] * (values.ndim - 1))
    return ratio(xp, xp.sum(values * w, axis=axis), xp.sum(weights), 0.0)


def log_softmax(xp: Any, x: Array) -> Array:
    """The logarithms of probabilities along the last axis."""
    below = x - xp.max(x, axis=-1, keepdims=True)
    return below - xp.log(xp.sum(xp.exp(below), axis=-1, keepdims=True))
