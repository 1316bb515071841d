"""Arrays of whatever holds numbers: NumPy's, tensors of retrograd and PyTorch, images, lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograd.eager.conversion import as_array
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.creation import asarray
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import as_dtype

Array = np.ndarray[Any, Any]
TEXT = "OUS"  # kinds of arrays whose elements are no numbers: they stay lists


def is_array(x: Any) -> bool:
    """Whether something is an array of whatever library, or an image."""
    return (
        isinstance(x, np.ndarray | Tensor)
        or hasattr(x, "__array__")
        or hasattr(x, "__array_interface__")
        or hasattr(x, "__dlpack__")
    )


def host_array(x: Any) -> Array:
    """The array of something that `is_array`, with the same memory where that can be. `DTypeError`
    for elements that are no numbers."""
    if isinstance(x, Tensor):
        return x.detach().numpy()
    if not isinstance(x, np.ndarray):
        x = x.detach().cpu() if hasattr(x, "detach") else x
        try:
            x = np.asarray(x)
        except TypeError:  # NumPy has no bfloat16 by itself
            x = asarray(x).numpy()
    elif type(x) is not np.ndarray:  # that of a file mapped into memory, for one
        x = as_array(x) if isinstance(x, np.ma.MaskedArray) else x.view(np.ndarray)
    if x.dtype.kind in TEXT or (kind := as_dtype(x.dtype)).dtype == x.dtype:
        return x
    return x.astype(kind.dtype)  # of another order of bytes


def as_samples(data: Any) -> Any:
    """Arrays whose rows are samples, in the tree of dicts and tuples they are given in."""
    if isinstance(data, Mapping):
        return {k: as_samples(v) for k, v in data.items()}
    if isinstance(data, tuple) and data and all(is_array(x) and np.ndim(x) for x in data):
        return tuple(as_samples(x) for x in data)
    if is_array(data):
        array = host_array(data)
    elif isinstance(data, list | tuple) and data and isinstance(data[0], str | bytes):
        array = np.array(data, object)
    else:
        array = as_array(data)
    if array.ndim == 0:
        raise ShapeError(f"the rows of an array are samples, but {data!r} has no axis")
    return array


def column(array: Array, indices: Array) -> Any:
    """The rows of an array at some indices; a list where they are text."""
    flags, kind = array.flags, array.dtype.kind
    if kind in TEXT:
        return array[indices].tolist()
    if flags.c_contiguous:  # NumPy would copy all of another
        return array.take(indices, 0)
    return array[indices]


def as_tensors(tree: Any) -> Any:
    """A tree of NumPy arrays as one of tensors."""
    kind = type(tree)
    if kind is np.ndarray:
        return Tensor.dehydrated(tree)
    if kind is tuple:
        return tuple([as_tensors(x) for x in tree])
    if kind is dict:
        return {k: as_tensors(x) for k, x in tree.items()}
    if isinstance(tree, tuple):  # a named one
        return kind(*[as_tensors(x) for x in tree])
    return tree


def refused(x: Any, where: str) -> DTypeError:
    """What to say of something that no batch can be made of."""
    name = f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")
    if isinstance(x, np.ndarray | np.generic):
        name = f"an array of {x.dtype}"
    return DTypeError(
        f"{where} is {'None' if x is None else name}, of which no batch can be made: samples are "
        "arrays, numbers, text, and tuples, lists and dicts of these; change it in the dataset "
        "(MapDataset), or join samples by a function of your own: DataLoader(..., collate_fn=f)"
    )
