"""From what users pass as data to NumPy arrays, and back: which dtype two dtypes make together;
leaving for NumPy and for Python's numbers, which know nothing of what they were computed from.

Where a gradient is being taken, a value that left would count as a constant, and the gradient be
wrong without a word. So it is refused, unless the tensor was detached.
"""

from __future__ import annotations

import functools
import warnings
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import active, grad_enabled, sought
from retrograd.errors import DTypeError, GradientError, HistoryWarning, ShapeError
from retrograd.ir import (
    Dim,
    DType,
    Node,
    as_dtype,
    complex128,
    float32,
    float64,
    int64,
    uint64,
)
from retrograd.ir.dtype import DEFAULT
from retrograd.ops.elementwise import Cast
from retrograd.ops.identity import StopGradient
from retrograd.runtime.backend import Array

_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def promote(a: DType, b: DType) -> DType:
    """The dtype of a combination: the higher kind of bool < integers < floats < complex wins;
    within a kind, the smallest that holds both. float16 and bfloat16 meet in float32, float64 and
    complex64 in complex128; uint64 and signed integers, as in NumPy, in float64, as no integer
    dtype holds both."""
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
    return {float64: DEFAULT.real, complex128: DEFAULT.complex}.get(own, own)


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


# -- leaving for NumPy and Python ----------------------------------------------------------------
def is_sought(x: LazyTensor) -> bool:
    """Whether a transform around here differentiates a tensor."""
    handles = sought()
    if not ((handles or active()) and x._requires_grad and grad_enabled()):
        return False
    wanted = active().union([h.node for h in handles])
    seen: set[Node] = {x.node}
    todo = [x.node]
    for node in todo:  # which grows
        if node in wanted:
            return True
        if isinstance(node.prim, StopGradient):
            continue
        for y in node.inputs:
            if y not in seen and y.type.is_inexact:
                seen.add(y)
                todo.append(y)
    return False


def number_of(x: LazyTensor, how: str) -> Array:
    """The value of a tensor for Python. Outside of transforms those that require a gradient may
    leave, too: a loss is printed and logged."""
    if is_sought(x):
        raise GradientError(lost(how))
    return x.value()


def scalar_of(x: LazyTensor, how: str) -> Array:
    """The value of a tensor for `float()` and its like, which Python's arithmetic asks for, too:
    nothing can tell later that the number came from a tensor, so there is a warning."""
    found = number_of(x, how)
    if x._requires_grad and grad_enabled():
        warnings.warn(lost(how), HistoryWarning, stacklevel=3)
    return found


def array_of(x: LazyTensor, how: str) -> Array:
    """The value of a tensor for NumPy, read-only. Outside of transforms those that require a
    gradient may leave, too, to be looked at, but not come back: see `returned`."""
    found = number_of(x, how)
    if x._requires_grad and grad_enabled():
        left = np.asarray(_Left(np.ascontiguousarray(found).reshape(-1).view(np.uint8)))
        found = left.view(found.dtype).reshape(found.shape)
    found = found.view()
    found.setflags(write=False)
    return found


class _Left:
    """The memory of a value that left: NumPy makes it the base of arrays on it, and of parts."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__


def returned(a: Any) -> bool:
    """Whether an array, or one in a list, is the value of a tensor that requires a gradient, or
    part of it. Next to such a tensor, `x * x.numpy()`, it would count as a constant."""
    if isinstance(a, list | tuple):
        return any(map(returned, a))
    while isinstance(a, np.ndarray):
        a = a.base
    return isinstance(a, _Left)


def lost(how: str) -> str:
    """What to say of a value that would lose its history."""
    return (
        f"{how} of a tensor that requires a gradient is a plain number or array, which knows "
        "nothing of what it was computed from: its gradient would silently be zero. Compute with "
        "tensors (rg.sin instead of math.sin or np.sin, rg.asarray or rg.stack for lists of "
        "tensors), or use x.detach() first, if a constant is meant"
    )
