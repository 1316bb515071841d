"""Making tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.frontend.function import as_array
from retrograd.frontend.recording import Lazy
from retrograd.frontend.tensor import Tensor
from retrograd.ir import Dim, TensorType, as_dtype, as_shape, bool_, float32, int64
from retrograd.ir import full as full_node
from retrograd.ops.leaf import Iota


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor holding a copy of the data: a number, nested lists, an array, another tensor.

    Python floats become float32, ints int64, bools bool; arrays keep their dtype. With
    `requires_grad` it is a leaf that `backward()` computes a gradient for.

    >>> import retrograd as rg
    >>> rg.tensor([[1.0, 2.0], [3.0, 4.0]]).sum().item()
    10.0
    """
    array = np.array(as_array(data, dtype), order="C")
    made = Tensor.of(array)
    return made.requires_grad_() if requires_grad else made


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """A tensor of the data, sharing the memory of a NumPy array or DLPack exporter if possible."""
    if isinstance(obj, Lazy) and (dtype is None or as_dtype(dtype) is obj.dtype) and not copy:
        return obj  # type: ignore[return-value]
    if copy:
        return tensor(obj, dtype)
    if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray | np.generic | Lazy):
        obj = np.from_dlpack(obj)
    array = as_array(obj, dtype)
    if copy is False and not (isinstance(obj, np.ndarray) and np.shares_memory(obj, array)):
        raise ValueError("asarray with copy=False would have to copy here")
    return Tensor.of(array)


def from_dlpack(x: Any, /) -> Tensor:
    """A tensor sharing the memory of another library's array."""
    return asarray(np.from_dlpack(x))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor with one value everywhere."""
    value = as_array(fill_value)
    kind = as_dtype(value.dtype if dtype is None else dtype)
    if value.ndim:
        raise ShapeError(f"full takes one number, not an array of shape {value.shape}")
    return Tensor(full_node(value, TensorType(kind, as_shape(shape))))


def zeros(shape: Any, *, dtype: Any = float32, device: Any = None) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype=dtype or float32)


def ones(shape: Any, *, dtype: Any = float32, device: Any = None) -> Tensor:
    """A tensor of ones."""
    return full(shape, 1, dtype=dtype or float32)


def empty(shape: Any, *, dtype: Any = float32, device: Any = None) -> Tensor:
    """A tensor whose values do not matter; they are zeros."""
    return zeros(shape, dtype=dtype)


def _like(x: Any, value: Any, dtype: Any) -> Tensor:
    x = asarray(x)
    return full(x.shape, value, dtype=dtype or x.dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value everywhere, with the shape and dtype of x."""
    return _like(x, fill_value, dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros with the shape and dtype of x."""
    return _like(x, 0, dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones with the shape and dtype of x."""
    return _like(x, 1, dtype)


empty_like = zeros_like


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """`start, start + step, ...` below `stop`; `arange(n)` counts from 0. Ints give int64, floats
    float32. `arange(Dim)` counts to a symbolic size."""
    if stop is None:
        start, stop = 0, start
    if isinstance(stop, Dim):
        if start != 0 or step != 1:
            raise ShapeError("arange to a symbolic size counts from 0 in steps of 1")
        return Tensor(Iota((stop,), 0, as_dtype(dtype or int64))())
    if step == 0:
        raise ShapeError("arange needs a step that is not 0")
    floating = any(isinstance(v, float) for v in (start, stop, step))
    kind = as_dtype(dtype or (float32 if floating else int64))
    n = max(math.ceil((stop - start) / step), 0)
    return Tensor.of((start + step * np.arange(n)).astype(kind.dtype))


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from start to stop, stop included if `endpoint`."""
    if num < 0:
        raise ShapeError(f"linspace of {num} numbers")
    kind = as_dtype(dtype or float32)
    return Tensor.of(np.linspace(start, stop, num, endpoint=endpoint).astype(kind.dtype))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Ones on diagonal k, zeros elsewhere."""
    return Tensor.of(np.eye(n_rows, n_cols, k, dtype=as_dtype(dtype or float32).dtype))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a name as "real floating", or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    found = as_dtype(dtype)
    kinds = {
        "bool": found is bool_,
        "signed integer": found.kind == "int",
        "unsigned integer": found.kind == "uint",
        "integral": found.is_integer,
        "real floating": found.is_float,
        "complex floating": False,
        "numeric": found is not bool_,
    }
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    try:
        return found is as_dtype(kind)
    except DTypeError:
        raise ValueError(f"{kind!r} is not a kind of dtype; there are {', '.join(kinds)}") from None
