"""Making tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.backends.limits import check_new
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.frontend.broadcasting import integer, number
from retrograd.frontend.conversion import as_array
from retrograd.frontend.recording import Lazy
from retrograd.frontend.source import located
from retrograd.frontend.tensor import Tensor
from retrograd.ir import (
    Dim,
    DType,
    Node,
    Shape,
    TensorType,
    as_dtype,
    as_shape,
    complex64,
    complex128,
    float32,
    float64,
    int64,
)
from retrograd.ir import full as full_node
from retrograd.ops.elementwise import bitwise_and, cast, eq, gt, select
from retrograd.ops.leaf import Iota
from retrograd.ops.shape import expand


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor holding a copy of the data: a number, nested lists, an array, another tensor.

    Python floats become float32, ints int64, bools bool; arrays keep their dtype, and Python
    numbers in a list with arrays or tensors take theirs. A symbolic size is an int64. A Python
    number that the dtype cannot hold is a `DTypeError`. The copy is a constant, whatever was
    copied; to join tensors with their gradients, `rg.stack` them. With `requires_grad` it is a leaf
    that `backward()` computes a gradient for.

    >>> import retrograd as rg
    >>> rg.tensor([[1.0, 2.0], [3.0, 4.0]]).sum().item()
    10.0
    """
    if isinstance(data, Dim):
        return Tensor(number(data, as_dtype(dtype or int64)))
    array = np.array(as_array(data, dtype), order="C")
    made = Tensor.of(array)
    return made.requires_grad_() if requires_grad else made


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """A tensor of the data, sharing the memory of a NumPy array or DLPack exporter if possible.

    As memory is shared, an edit of the array is seen by the tensor, and by what is computed from it
    later: results that nobody has looked at yet. A `backward()` that needs what an operation has
    used and the array does not hold any more raises a `GradientError`. `tensor` copies.

    >>> import numpy as np, retrograd as rg
    >>> data = np.ones(2)
    >>> x, w = rg.asarray(data), rg.tensor(np.ones(2), requires_grad=True)
    >>> loss = (w * x).sum()
    >>> data[0] = 5
    >>> loss.backward()
    Traceback (most recent call last):
    ...
    retrograd.errors.GradientError: backward() needs an array as ... used it, but it was edited...
    """
    _on_cpu(device)
    if isinstance(obj, Lazy) and (dtype is None or as_dtype(dtype) is obj.dtype) and not copy:
        return obj  # type: ignore[return-value]
    if copy or isinstance(obj, Dim):
        return tensor(obj, dtype)
    if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray | np.generic | Lazy):
        obj = np.from_dlpack(obj)
    array = as_array(obj, dtype)
    if copy is False and not (isinstance(obj, np.ndarray) and np.shares_memory(obj, array)):
        raise ValueError("asarray with copy=False would have to copy here")
    made = Tensor.of(array)
    if not isinstance(obj, Lazy) and np.may_share_memory(array, obj):
        made.share()
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor sharing the memory of another library's array; with `copy`, holding a copy."""
    _on_cpu(device)
    if not hasattr(x, "__dlpack__"):
        raise DTypeError(f"from_dlpack takes an array with __dlpack__, not {type(x).__name__}")
    return asarray(np.from_dlpack(x, copy=copy))


@located
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor with one value everywhere."""
    _on_cpu(device)
    if isinstance(fill_value, Dim):
        return Tensor(number(fill_value, as_dtype(dtype or int64), _shape(shape)))
    value = as_array(fill_value, dtype)
    if value.ndim:
        raise ShapeError(f"full takes one number, not an array of shape {value.shape}")
    return Tensor(full_node(value, TensorType(as_dtype(value.dtype), _shape(shape))))


def _on_cpu(device: Any) -> None:
    """Arrays live in the memory of the CPU; anything else that is asked for is refused."""
    if device not in (None, "cpu"):
        raise OptionError(f"tensors are made on the CPU, not on device {device!r}")


def _shape(shape: Any) -> Shape:
    return as_shape(shape.value().tolist() if isinstance(shape, Lazy) else shape)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype=dtype or float32, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of ones."""
    return full(shape, 1, dtype=dtype or float32, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose values do not matter; they are zeros."""
    return zeros(shape, dtype=dtype, device=device)


def _like(x: Any, value: Any, dtype: Any, device: Any) -> Tensor:
    x = asarray(x)
    return full(x.shape, value, dtype=dtype or x.dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value everywhere, with the shape and dtype of x."""
    return _like(x, fill_value, dtype, device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros with the shape and dtype of x."""
    return _like(x, 0, dtype, device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones with the shape and dtype of x."""
    return _like(x, 1, dtype, device)


empty_like = zeros_like


@located
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """`start, start + step, ...` below `stop`; `arange(n)` counts from 0. Ints give int64, floats
    float32. Start and stop may be symbolic sizes, `arange(1, N + 1)`, of which how many numbers
    there are is not negative."""
    _on_cpu(device)
    if stop is None:
        start, stop = 0, start
    if isinstance(start, Dim) or isinstance(stop, Dim):
        return Tensor(_counted(start, stop, step, as_dtype(dtype or int64)))
    first, end, by = (_number(v, "arange") for v in (start, stop, step))
    if any(isinstance(v, complex) for v in (first, end, by)):
        raise DTypeError(f"arange counts real numbers, not from {first} to {end} in steps of {by}")
    if by == 0 or not all(map(math.isfinite, (first, end, by))):
        raise ShapeError(f"arange from {first} to {end} in steps of {by} has no end")
    if not all(isinstance(v, int) for v in (first, end, by)):
        n = max(math.ceil((end - first) / by), 0)
        check_new((n,), 8, "arange")
        return Tensor.of(as_array(first + by * np.arange(n), dtype or float32))
    numbers = range(first, end, by)
    check_new((max(-((first - end) // by), 0),), 8, "arange")
    kind = as_dtype(dtype or int64)
    for v in (numbers[0], numbers[-1]) if numbers else ():
        as_array(v, kind)  # refuses what the dtype cannot hold
    if not kind.is_integer:
        return Tensor.of(np.arange(first, first + len(numbers) * by, by).astype(kind.dtype))
    steps = (np.arange(len(numbers)) * by).astype(kind.dtype)
    return Tensor.of(steps + np.asarray(first % 2**64, np.uint64).astype(kind.dtype))  # mod 2**64


def _counted(start: Any, stop: Any, step: Any, dtype: DType) -> Node:
    """`arange` of which an end is a symbolic size."""
    ends = [v if isinstance(v, Dim) else integer(v, "arange") for v in (start, stop)]
    by = integer(step, "arange: step")
    if by == 0:
        raise ShapeError(f"arange from {start} to {stop} in steps of 0 has no end")
    gap = (ends[1] - ends[0]) * (1 if by > 0 else -1)
    count = (gap + abs(by) - 1) // abs(by)
    if ends[0] == 0 and by == 1:
        return Iota((count,), 0, dtype)()
    place = Iota((count,), 0, int64)() * number(by, int64, (count,))
    return cast(place + number(ends[0], int64, (count,)), dtype)


def _number(value: Any, what: str) -> Any:
    """A Python number, of whatever holds one."""
    if isinstance(value, int):
        return int(value)
    array = as_array(value)
    if array.ndim:
        raise ShapeError(f"{what} takes numbers, not an array of shape {array.shape}")
    return array.item()


@located
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from start to stop, stop included if `endpoint`; float32, or
    complex64 where one of both is complex, unless a dtype is given."""
    _on_cpu(device)
    (count,) = _shape((num,))
    if isinstance(count, Dim):
        return Tensor(_spaced(start, stop, count, dtype, endpoint))
    first, last = _number(start, "linspace"), _number(stop, "linspace")
    check_new((count,), 8, "linspace")
    values = np.linspace(first, last, count, endpoint=endpoint)
    kind = complex64 if isinstance(first, complex) or isinstance(last, complex) else float32
    return Tensor.of(as_array(values, dtype or kind))


@located
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Ones on diagonal k, zeros elsewhere."""
    _on_cpu(device)
    rows, columns = _shape((n_rows, n_rows if n_cols is None else n_cols))
    kind = as_dtype(dtype or float32)
    if isinstance(rows, Dim) or isinstance(columns, Dim):
        row, column = (Iota((rows, columns), axis, int64)() for axis in (0, 1))
        return Tensor(cast(eq(column - row, full_node(k, row.type)), kind))
    check_new((rows, columns), kind.itemsize, "eye")
    return Tensor.of(np.eye(rows, columns, k, dtype=kind.dtype))


def _spaced(start: Any, stop: Any, count: Dim, dtype: Any, endpoint: bool) -> Node:
    """`linspace` of a symbolic number of elements."""
    first, last = _number(start, "linspace"), _number(stop, "linspace")
    whole = isinstance(first, complex) or isinstance(last, complex)
    wide = TensorType(complex128 if whole else float64, (count,))
    place = Iota((count,), 0, int64)()
    gaps = cast(number(count - 1 if endpoint else count, int64), float64)
    ones = full_node(1, gaps.type)
    gaps = cast(select(gt(gaps, ones), gaps, ones), wide.dtype)
    step = full_node(last - first, gaps.type) / gaps
    values = cast(place, wide.dtype) * expand(step, (count,), (0,)) + full_node(first, wide)
    if endpoint:
        end = number(count - 1, int64, (count,))
        # A single element is the first.
        is_last = bitwise_and(eq(place, end), gt(place, full_node(0, place.type)))
        values = select(is_last, full_node(last, wide), values)
    return cast(values, as_dtype(dtype or (complex64 if whole else float32)))
