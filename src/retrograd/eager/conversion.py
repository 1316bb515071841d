"""From what users pass as data to NumPy arrays; which dtype two dtypes make together."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.tensor.host_values import number_of
from retrograd.ir import (
    Dim,
    DType,
    Node,
    as_dtype,
    complex64,
    complex128,
    float32,
    float64,
    int64,
    uint64,
)
from retrograd.ops.elementwise import Cast
from retrograd.runtime.backend import Array

_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def promote(a: DType, b: DType) -> DType:
    """The dtype of a combination: the higher kind of bool < integers < floats < complex wins;
    within a kind, the smallest that holds both. float16 and bfloat16 meet in float32, float64 and
    complex64 in complex128."""
    if a is b:
        return a
    if _RANK[a.kind] != _RANK[b.kind]:
        high, low = (a, b) if _RANK[a.kind] > _RANK[b.kind] else (b, a)
        return promote(high, low.complex) if high.is_complex and low.is_float else high
    if a.is_complex:
        return a if a.itemsize > b.itemsize else b
    if a.is_float:
        return (a if a.itemsize > b.itemsize else b) if a.itemsize != b.itemsize else float32
    joined = np.promote_types(a.dtype, b.dtype)
    if joined.kind == "f":
        raise DTypeError(f"no integer dtype holds both {a} and {b}; cast one of them")
    return as_dtype(joined)


def integer_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer dtype."""
    info = np.iinfo(dtype.dtype)
    return int(info.min), int(info.max)


def as_array(data: Any, dtype: Any = None) -> Array:
    """A NumPy array of a dtype retrograd computes with.

    Python floats become float32, complex numbers complex64, ints int64; next to arrays they take
    the dtype of those. Ragged nesting is a `ShapeError`; objects, strings, and Python numbers the
    dtype cannot hold are a `DTypeError`.
    """
    if isinstance(data, LazyTensor):
        values = number_of(data, "the value")
    elif _is_masked(data):
        raise DTypeError("a masked array has no counterpart here; fill it first: data.filled(0)")
    else:
        values = np.asarray(data) if _is_array(data) else _from_python(data, dtype)
    if values.dtype.kind == "O" and any(isinstance(v, Dim) for v in values.flat):
        raise DTypeError(
            f"{type(data).__name__} data holds symbolic sizes, which have no value yet; compute "
            "with tensors: rg.asarray(x.shape[0]) is one, rg.stack joins several"
        )
    if values.dtype.kind in "OSU":
        raise DTypeError(
            f"{type(data).__name__} data holds {values.dtype.name} elements, which are no numbers"
        )
    if not _is_array(data):
        found = _python_dtype(data, as_dtype(values.dtype)) if dtype is None else as_dtype(dtype)
        _check_range(values, found)
    else:
        found = as_dtype(values.dtype if dtype is None else dtype)
    if values.dtype == found.dtype:
        return values
    converted: Array = Cast(found).reference(values)
    return converted


def holds_arrays(data: Any) -> bool:
    """Whether there are arrays, tensors or nodes in nested sequences."""
    return any(True for _ in _dtypes(data))


def _is_masked(x: Any) -> bool:
    """Whether it is a masked array. Only subclasses of arrays are asked: to ask imports `np.ma`."""
    known = type(x) is np.ndarray or not isinstance(x, np.ndarray)
    return not known and isinstance(x, np.ma.MaskedArray)


def _is_array(x: Any) -> bool:
    return isinstance(x, LazyTensor | np.ndarray | np.generic | memoryview | array)


def _from_python(data: Any, dtype: Any) -> Array:
    plain = _plain(data)
    try:
        values = np.asarray(plain)
    except ValueError as error:
        raise ShapeError(
            f"the nested sequence is ragged, its rows differ in length: {error}"
        ) from None
    kind = None if dtype is None else as_dtype(dtype)
    if values.dtype.kind == "O" or (values.dtype.kind == "f" and (np.abs(values) >= 2**63).any()):
        # Integers beyond 64 bits, or some that need a sign beside some that leave no room for one.
        exact = np.asarray(plain, object)
        if all(isinstance(x, int | np.integer) for x in exact.flat):
            if kind is not None and kind.is_inexact:
                return exact.astype(np.float64)
            _check_range(exact, kind or int64)
            return exact.astype((kind or int64).dtype)
    return values


def _plain(data: Any) -> Any:
    """Nested sequences with tensors replaced by their arrays."""
    if isinstance(data, LazyTensor):
        return number_of(data, "the value")
    return [_plain(x) for x in data] if isinstance(data, list | tuple) else data


def _python_dtype(data: Any, own: DType) -> DType:
    """The dtype of Python data of which NumPy makes `own`."""
    given = list(_dtypes(data))
    if given:
        joined = functools.reduce(promote, given)
        if own.is_complex and joined.is_inexact:
            return joined.complex
        if _RANK[own.kind] <= _RANK[joined.kind]:
            return joined
    elif own is uint64:
        return int64
    return {float64: float32, complex128: complex64}.get(own, own)


def _dtypes(data: Any) -> Iterator[DType]:
    """The dtypes of the arrays, tensors and nodes in nested sequences."""
    if isinstance(data, list | tuple):
        for x in data:
            yield from _dtypes(x)
    elif isinstance(data, LazyTensor | Node):
        yield data.dtype
    elif hasattr(data, "__array__"):
        yield as_dtype(np.asarray(data).dtype)


def _check_range(values: Array, dtype: DType) -> None:
    """Refuse Python numbers that an integer dtype cannot hold."""
    if not dtype.is_integer or values.dtype in (dtype.dtype, np.bool_) or values.size == 0:
        return
    low, high = values.min(), values.max()  # a NaN comes through, and fails the comparison
    first, last = integer_range(dtype)
    if not (low >= first and high <= last):
        raise DTypeError(f"{high if low >= first else low} does not fit into {dtype}")
