"""Making tensors."""

from __future__ import annotations

import math
from array import array as buffer
from typing import Any

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.lazy_tensor import Array, LazyTensor, evaluate, is_taped
from retrograd.eager.weak_types import is_weak
from retrograd.errors import DTypeError, OptionError, ShapeError, TraceError
from retrograd.functions.broadcasting import (
    as_node,
    broadcast,
    broadcast_to,
    flat,
    integer,
    joined_dtype,
    nested,
    normal_axis,
    number,
    one_axis,
    rounded,
)
from retrograd.functions.tensor.conversions import on_cpu
from retrograd.functions.tensor.dlpack import imported, is_capsule
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import (
    Dim,
    DType,
    Node,
    Shape,
    TensorType,
    as_dtype,
    as_shape,
    complex128,
    float64,
    int64,
)
from retrograd.ir import full as full_node
from retrograd.ir.dtype import DEFAULT
from retrograd.ir.source import located
from retrograd.memory_limit import check_new
from retrograd.ops.elementwise import bitwise_and, cast, eq, floor, gt, select
from retrograd.ops.identity import Alias
from retrograd.ops.leaf import Iota
from retrograd.ops.shape import expand


@respells
def tensor(
    data: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None
) -> Tensor:
    """A tensor holding a copy of the data: a number, nested lists, an array, another tensor.

    Python floats become float32, ints int64, bools bool; arrays keep their dtype, and Python
    numbers in a list with arrays or tensors take theirs. A symbolic size is an int64. A Python
    number that the dtype cannot hold is a `DTypeError`. What is made of tensors keeps their
    gradients, and may be made of traced ones. With `requires_grad` it is a leaf that `backward()`
    computes a gradient for, without a history; to make one of what a transform is differentiating
    is a `GradientError`.

    The shape is that of the data. `ShapeError` for ragged lists.

    >>> import retrograd as rg
    >>> rg.tensor([[1.0, 2.0], [3.0, 4.0]]).sum().item()
    10.0
    """
    on_cpu(device)
    if isinstance(data, Dim):
        return Tensor(number(data, as_dtype(dtype or int64)))
    if not requires_grad and has_history(data):
        return _copied(data, dtype) if isinstance(data, LazyTensor) else _joined(data, dtype)
    array = np.array(as_array(_taken(data), dtype), order="C")
    made = Tensor.of(array)
    return made.requires_grad_() if requires_grad else made


def _taken(data: Any) -> Any:
    """Data, or an array on the memory of that of another library: NumPy has not all dtypes."""
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray | np.generic | LazyTensor):
        return imported(data)
    return data


def has_history(data: Any) -> bool:
    """Whether there are tensors in nested sequences whose history may be asked for, or which have
    no value: those that are traced."""
    tensors = [x for x in flat(data) if isinstance(x, LazyTensor)]
    if not tensors:
        return False
    if any(x._requires_grad or is_weak(x.leaf_or_node) for x in tensors) or is_taped(tensors):
        return True
    try:
        evaluate(tensors)
    except TraceError:
        return True
    return False


@op_function
def _copied(x: ArrayLike, dtype: Any) -> Any:
    x = as_node(x)
    return Alias()(x) if dtype is None else rounded(x, as_dtype(dtype))


@op_function
def _joined(data: ArrayLike, dtype: Any) -> Any:
    return nested(data, None if dtype is None else as_dtype(dtype), even=True)


@respells
def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """A tensor of the data, sharing the memory of a NumPy array or DLPack exporter if possible.

    As memory is shared, an edit of the array is seen by the tensor, and by operations on it that
    are called later. An operation uses what the array holds when it is called, whenever its result
    or a gradient is computed: it takes a copy, which one that follows shares if nothing was edited.
    `tensor` copies once.

    Shape and dtype are those of the data, unless a dtype is given. `DTypeError` for what is no
    array of numbers, `OptionError` for a device other than the CPU, `ValueError` where `copy=False`
    cannot be had.

    >>> import numpy as np, retrograd as rg
    >>> data = np.ones(2)
    >>> x, w = rg.asarray(data), rg.tensor(np.ones(2), requires_grad=True)
    >>> loss = (w * x).sum()
    >>> data[0] = 5
    >>> loss.backward()
    >>> loss.item(), w.grad.tolist(), x.tolist()
    (2.0, [1.0, 1.0], [5.0, 1.0])
    """
    on_cpu(device)
    if isinstance(obj, LazyTensor) and (dtype is None or as_dtype(dtype) is obj.dtype) and not copy:
        return obj  # type: ignore[return-value]
    if copy or isinstance(obj, Dim) or has_history(obj):
        if copy is False:
            raise ValueError("asarray with copy=False would have to copy here")
        return tensor(obj, dtype)
    obj = _taken(obj)
    array = as_array(obj, dtype)
    if copy is False and not (isinstance(obj, np.ndarray) and np.shares_memory(obj, array)):
        raise ValueError("asarray with copy=False would have to copy here")
    made = Tensor.of(array)
    if not (isinstance(obj, LazyTensor) or _is_own(array, obj)):
        made.share()
    return made


def _is_own(array: Array, obj: Any) -> bool:
    """Whether nobody else has the memory of an array that was made of data."""
    if isinstance(obj, np.ndarray | np.generic | memoryview | buffer):
        return not np.may_share_memory(array, obj)
    return not hasattr(obj, "__array__")  # what that gives may be anybody's


@respells
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor sharing the memory of another library's array, as `asarray` does; with `copy`,
    holding a copy. A tensor of this library keeps its history.

    Raises `DTypeError` for what has no `__dlpack__` or numbers that there are none of here,
    `BufferError` where the other library cannot export the array.

    Shape and dtype are those of the array.

    >>> import numpy as np, retrograd as rg
    >>> rg.from_dlpack(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    on_cpu(device)
    if isinstance(x, LazyTensor):
        return asarray(x, copy=copy)
    if not (hasattr(x, "__dlpack__") or is_capsule(x)):
        raise DTypeError(f"from_dlpack takes an array with __dlpack__, not {type(x).__name__}")
    array = imported(x, copy)
    return tensor(array) if copy else asarray(array)


@respells
@located
def full(
    shape: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor with one value everywhere.

    Of the given shape; the dtype is that of the value unless one is given: float32, int64, bool,
    complex64 of Python numbers. A given integer dtype truncates it: 0.5 becomes 0. `ShapeError` for
    a value that is no single number or a negative size, `DTypeError` for a number beyond the range
    of an integer dtype.

    >>> import retrograd as rg
    >>> rg.full((2, 2), 0.5).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    on_cpu(device)
    if requires_grad:
        return full(shape, fill_value, dtype=dtype).detach().requires_grad_()
    if isinstance(fill_value, Dim):
        return Tensor(number(fill_value, as_dtype(dtype or int64), _shape(shape)))
    if isinstance(fill_value, LazyTensor):
        return _filled(fill_value, _shape(shape), dtype)
    value = as_array(fill_value, dtype)
    if value.ndim:
        raise ShapeError(f"full takes one number, not an array of shape {value.shape}")
    type = TensorType(as_dtype(value.dtype), _shape(shape))
    # One constant serves all that are filled with a small whole number, its array included.
    common = fill_value.__class__ is int and abs(fill_value) <= 1
    return Tensor(full_node(fill_value if common else value, type))


@op_function
def _filled(value: ArrayLike, shape: Shape, dtype: Any) -> Any:
    value = as_node(value)
    if value.shape:
        raise ShapeError(f"full takes one number, not an array of shape {value.shape}")
    return broadcast_to(value if dtype is None else rounded(value, as_dtype(dtype)), shape)


def shape_of(shape: Any, sizes: tuple[Any, ...], size: Any) -> Any:
    """A shape given as one, by sizes one after the other, or by PyTorch's keyword `size`."""
    if size is not None:
        if shape is not None:
            raise OptionError(f"shape {shape!r} and size {size!r} are one thing; give one")
        return size
    if shape is None:
        raise ShapeError("a shape is needed: rg.zeros((2, 3)), or rg.zeros(()) for a number")
    return (shape, *sizes) if sizes else shape


def _shape(shape: Any) -> Shape:
    return as_shape(shape.value().tolist() if isinstance(shape, LazyTensor) else shape)


def zeros(
    shape: Any = None,
    *sizes: int,
    dtype: Any = None,
    device: Any = None,
    size: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros.

    Of the given shape, float32 unless a dtype is given; sizes may be given one by one. `ShapeError`
    for a negative size, `OptionError` for a device other than the CPU.

    >>> import retrograd as rg
    >>> rg.zeros((2,)).tolist()
    [0.0, 0.0]
    """
    made = full(shape_of(shape, sizes, size), 0, dtype=dtype or DEFAULT.real, device=device)
    return made.requires_grad_() if requires_grad else made


def ones(
    shape: Any = None,
    *sizes: int,
    dtype: Any = None,
    device: Any = None,
    size: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones.

    Of the given shape, float32 unless a dtype is given; sizes may be given one by one. `ShapeError`
    for a negative size, `OptionError` for a device other than the CPU.

    >>> import retrograd as rg
    >>> rg.ones((2,), dtype=rg.int64).tolist()
    [1, 1]
    """
    made = full(shape_of(shape, sizes, size), 1, dtype=dtype or DEFAULT.real, device=device)
    return made.requires_grad_() if requires_grad else made


def empty(
    shape: Any = None,
    *sizes: int,
    dtype: Any = None,
    device: Any = None,
    size: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor whose values do not matter; they are zeros.

    Of the given shape, float32 unless a dtype is given; sizes may be given one by one. `ShapeError`
    for a negative size, `OptionError` for a device other than the CPU.

    >>> import retrograd as rg
    >>> rg.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, *sizes, dtype=dtype, device=device, size=size, requires_grad=requires_grad)


def _like(x: Any, value: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    x = asarray(x)
    kind = dtype or x.dtype
    return full(x.shape, value, dtype=kind, device=device, requires_grad=requires_grad)


@respells
def full_like(
    x: Any,
    /,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """One value everywhere, with the shape and dtype of x.

    A value is truncated to an integer dtype, which x may have. `ShapeError` for a value that is no
    single number, `DTypeError` for a number beyond the range of the dtype.

    >>> import retrograd as rg
    >>> rg.full_like([1, 2], 7).tolist()
    [7, 7]
    """
    return _like(x, fill_value, dtype, device, requires_grad)


@respells
def zeros_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros with the shape and dtype of x.

    `DTypeError` for what is no array of numbers, `OptionError` for a device other than the CPU.

    >>> import retrograd as rg
    >>> rg.zeros_like([1.5, 2.5]).tolist()
    [0.0, 0.0]
    """
    return _like(x, 0, dtype, device, requires_grad)


@respells
def ones_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Ones with the shape and dtype of x.

    `DTypeError` for what is no array of numbers, `OptionError` for a device other than the CPU.

    >>> import retrograd as rg
    >>> rg.ones_like([1.5, 2.5]).tolist()
    [1.0, 1.0]
    """
    return _like(x, 1, dtype, device, requires_grad)


empty_like = zeros_like


@respells
@located
def arange(
    start: Any = None,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    end: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`start, start + step, ...` below `stop`; `arange(n)` counts from 0. Ints give int64, floats
    float32. Start and stop may be symbolic sizes, `arange(1, N + 1)`, of which how many numbers
    there are is not negative. Where they are tensors, how many numbers there are follows from their
    values, and the numbers have gradients in start and step.

    A vector of the shape `[ceil((stop - start) / step)]`. `ShapeError` for a step of 0, infinities,
    and arrays in place of numbers; `DTypeError` for complex numbers, and for those that the dtype
    cannot hold.

    >>> import retrograd as rg
    >>> rg.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    on_cpu(device)
    if requires_grad:
        return arange(start, stop, step, dtype=dtype, end=end).requires_grad_()
    stop = one_axis(stop, end)
    if start is None or stop is None:
        start, stop = 0, start if stop is None else stop
    if stop is None:
        raise DTypeError(
            "arange takes where to stop, no NoneType: rg.arange(n), rg.arange(start, stop)"
        )
    if isinstance(start, Dim) or isinstance(stop, Dim):
        return Tensor(_counted(start, stop, step, as_dtype(dtype or int64)))
    if any(has_history(v) for v in (start, stop, step)):
        return _moving(start, stop, step, dtype)
    first, end, by = (_number(v, "arange") for v in (start, stop, step))
    if any(isinstance(v, complex) for v in (first, end, by)):
        raise DTypeError(f"arange counts real numbers, not from {first} to {end} in steps of {by}")
    if by == 0 or not all(isinstance(v, int) or math.isfinite(v) for v in (first, end, by)):
        raise ShapeError(f"arange from {first} to {end} in steps of {by} has no end")
    if not all(isinstance(v, int) for v in (first, end, by)):
        kind = dtype or _span_dtype(
            *[v.node if isinstance(v, LazyTensor) else v for v in (start, step)]
        )
        return Tensor.of(as_array(_steps(first, end, by), kind))
    numbers = range(first, end, by)
    check_new((max(-((first - end) // by), 0),), 8, "arange")
    kind = as_dtype(dtype or int64)
    for v in (numbers[0], numbers[-1]) if numbers else ():
        as_array(v, kind)  # refuses what the dtype cannot hold
    if not kind.is_integer:
        return Tensor.of(np.arange(first, first + len(numbers) * by, by).astype(kind.dtype))
    steps = (np.arange(len(numbers)) * by).astype(kind.dtype)
    return Tensor.of(steps + np.asarray(first % 2**64, np.uint64).astype(kind.dtype))  # mod 2**64


def _moving(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """`arange` of tensors with a history."""
    values = [v.detach().item() if isinstance(v, Tensor) else v for v in (start, stop, step)]
    (count,) = arange(*values).shape
    return _paced(start, step, count, dtype)


@op_function
def _paced(start: ArrayLike, step: ArrayLike, count: int | Dim, dtype: Any) -> Any:
    kind = _span_dtype(start, step) if dtype is None else as_dtype(dtype)
    place = Iota((count,), 0, float64)()
    values = place * _wide(step, float64, count) + _wide(start, float64, count)
    return cast(values, kind)


def _span_dtype(*ends: Any) -> DType:
    """The dtype of numbers from one to another: that of the tensors, if it is floating."""
    kind = joined_dtype([v for v in ends if isinstance(v, Node)] or [0.0])
    return kind if kind.is_inexact else DEFAULT.real


def _wide(value: Any, dtype: DType, count: int | Dim) -> Node:
    """A number in double precision, for each of a count of elements."""
    if not isinstance(value, Node):
        return full_node(value, TensorType(dtype, (count,)))
    if value.shape:
        raise ShapeError(f"a span has numbers for ends, not an array of shape {value.shape}")
    return expand(rounded(value, dtype), (count,), (0,))


def _steps(first: float, end: float, by: float) -> Array:
    """As NumPy counts: how many follows from a quotient in double precision, and one differs from
    the one before by what the second differs from the first."""
    try:
        count = max(math.ceil((end - first) / by), 0)
        start, second = float(first), float(first + by)
    except OverflowError:
        raise ShapeError(
            f"arange from {first} to {end} in steps of {by}: more numbers than can be counted"
        ) from None
    check_new((count,), 8, "arange")
    return start + np.arange(count) * (second - start)


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
    """A Python number, as it is, of whatever holds one."""
    if isinstance(value, int | float | complex):
        return value.item() if isinstance(value, np.generic) else value + 0
    array = as_array(value)
    if array.ndim:
        raise ShapeError(f"{what} takes numbers, not an array of shape {array.shape}")
    return array.item()


@respells
@located
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
    axis: int = 0,
    steps: int | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`num` evenly spaced numbers from start to stop, stop included if `endpoint`; float32, or
    complex64 where one of both is complex, unless a dtype is given. Where they are tensors, the
    numbers have their dtype and gradients in both. Where they are arrays, so for each pair of
    elements, along a new `axis` of the result.

    A vector of the shape `[num]`: `start + i (stop - start) / (num - 1)`, or divided by `num`
    without `endpoint`. `ShapeError` for a negative `num` and for ends that do not broadcast.

    >>> import retrograd as rg
    >>> rg.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    on_cpu(device)
    if requires_grad:
        made = linspace(start, stop, num, dtype=dtype, endpoint=endpoint, axis=axis, steps=steps)
        return made.detach().requires_grad_()
    num = one_axis(num, steps)
    if num is None:
        raise ShapeError("linspace needs the number of elements: num, or steps as PyTorch calls it")
    (count,) = _shape((num,))
    if any(np.ndim(v) for v in (start, stop)):
        return _rows_between(start, stop, count, dtype, endpoint, axis)
    if isinstance(count, Dim) or isinstance(start, LazyTensor) or isinstance(stop, LazyTensor):
        first, last = (
            v if isinstance(v, LazyTensor) else _number(v, "linspace") for v in (start, stop)
        )
        return _spaced(first, last, count, dtype, endpoint)
    first, last = _number(start, "linspace"), _number(stop, "linspace")
    check_new((count,), 8, "linspace")
    values = np.linspace(first, last, count, endpoint=endpoint)
    whole = isinstance(first, complex) or isinstance(last, complex)
    kind = DEFAULT.complex if whole else DEFAULT.real
    return Tensor.of(as_array(values, dtype or kind))


@respells
@located
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones on diagonal k, zeros elsewhere.

    `[n_rows, n_cols]`, square by default; float32 unless a dtype is given. `ShapeError` for a
    negative size.

    >>> import retrograd as rg
    >>> rg.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    on_cpu(device)
    if requires_grad:
        return eye(n_rows, n_cols, k=k, dtype=dtype).requires_grad_()
    rows, columns = _shape((n_rows, n_rows if n_cols is None else n_cols))
    kind = as_dtype(dtype or DEFAULT.real)
    if isinstance(rows, Dim) or isinstance(columns, Dim):
        row, column = (Iota((rows, columns), axis, int64)() for axis in (0, 1))
        return Tensor(cast(eq(column - row, full_node(k, row.type)), kind))
    check_new((rows, columns), kind.itemsize, "eye")
    return Tensor.of(np.eye(rows, columns, k, dtype=kind.dtype))


@op_function
def _spaced(
    start: ArrayLike, stop: ArrayLike, count: int | Dim, dtype: Any, endpoint: bool, /
) -> Any:
    """`linspace` of a symbolic number of elements, or between tensors."""
    kind = _span_dtype(start, stop) if dtype is None else as_dtype(dtype)
    whole = any(v.dtype.is_complex if isinstance(v, Node) else isinstance(v, complex)
                for v in (start, stop))  # fmt: skip
    wide = TensorType(complex128 if whole else float64, (count,))
    place = Iota((count,), 0, int64)()
    gaps = cast(number(count - 1 if endpoint else count, int64, (count,)), float64)
    ones = full_node(1, gaps.type)
    gaps = cast(select(gt(gaps, ones), gaps, ones), wide.dtype)
    first, last = (_wide(v, wide.dtype, count) for v in (start, stop))
    values = cast(place, wide.dtype) * ((last - first) / gaps) + first
    if endpoint:
        end = number(count - 1, int64, (count,))
        # A single element is the first.
        is_last = bitwise_and(eq(place, end), gt(place, full_node(0, place.type)))
        values = select(is_last, last, values)
    return cast(values, kind)


@op_function
def _rows_between(
    start: ArrayLike, stop: ArrayLike, count: int | Dim, dtype: Any, endpoint: bool, axis: int, /
) -> Any:
    """`linspace` between arrays."""
    first, last = broadcast(start, stop, floating=True)
    kind = first.dtype if dtype is None else as_dtype(dtype)
    at = normal_axis(axis, first.type.rank, "linspace", 1)
    wide = complex128 if first.dtype.is_complex else float64
    shape = (*first.shape[:at], count, *first.shape[at:])
    first, last = (expand(cast(v, wide), shape, (at,)) for v in (first, last))
    place = Iota(shape, at, int64)()
    gaps = number(count - 1 if endpoint else count, int64, shape)
    share = cast(place, wide) / cast(select(gt(gaps, full_node(1, gaps.type)), gaps,
                                            full_node(1, gaps.type)), wide)  # fmt: skip
    values = first + (last - first) * share
    if endpoint:
        is_last = bitwise_and(eq(place, gaps), gt(place, full_node(0, place.type)))
        values = select(is_last, last, values)
    return cast(floor(values) if kind.is_integer else values, kind)
