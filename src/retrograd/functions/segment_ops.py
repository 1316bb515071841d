"""Reductions over segments: elements that have the same id are combined.

`data` is `[n, ...]`, `segment_ids` are n integers from 0 to `num_segments - 1`, sorted or not, and
the result is `[num_segments, ...]`. Elements of a segment are combined in their order in `data`,
whatever the number of threads. An id out of range is an `IndexRangeError`; negative ids count from
the back. Half precision is combined in float32. Sums err by no more than those of a block of
sixteen elements, however many there are; see `scatter_add`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.broadcasting import as_node, promote_to_float
from retrograd.functions.searching import known_size
from retrograd.ir import DType, Node, TensorType, as_shape, bool_, float32, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.identity import StopGradient
from retrograd.ops.index import Gather, Scatter, ScatterAdd
from retrograd.ops.reduce import ReduceMax
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul
from retrograd.ops.shape import expand, pad
from retrograd.tensor_type import Tensor


def _number_of(segment_ids: Any, num_segments: Any, what: str) -> Any:
    """The number of segments: as given, or one more than the greatest id."""
    if num_segments is not None:
        return num_segments
    return known_size(_greatest(segment_ids), what, "num_segments") + 1


@op_function
def _greatest(segment_ids: ArrayLike, /) -> Any:
    ids = el.cast(_ids(segment_ids), int64)
    return ReduceMax((0,))(pad(ids, (1,), (0,), value=-1))


def _ids(segment_ids: Any) -> Node:
    ids = as_node(segment_ids)
    if not ids.dtype.is_integer:
        raise DTypeError(f"segment ids are integers, not {ids.dtype}")
    if ids.type.rank != 1:
        raise ShapeError(f"segment ids are a vector, not of the shape {ids.shape}")
    return ids


def _segments(
    op: type[Scatter], data: Any, segment_ids: Any, num_segments: Any, start: Any, what: str
) -> Node:
    """Each segment combined, from a value that changes nothing."""
    x, ids = as_node(data), _ids(segment_ids)
    if x.type.rank == 0 or x.shape[0] != ids.shape[0]:
        raise ShapeError(f"{what} of data {x.shape} by ids {ids.shape}: first sizes differ")
    if x.dtype is bool_:
        raise DTypeError(f"{what} combines numbers, not booleans; cast first")
    (size,) = as_shape((num_segments,))
    wide = el.cast(x, float32) if x.dtype.is_half else x
    first = full(start(x.dtype), wide.type.with_shape((size, *x.shape[1:])))
    made: Any = op
    return el.cast(made(0)(first, ids, wide), x.dtype)


def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """The sum of each segment; 0 for an empty one. The error is at most `17 * eps` times the sum of
    absolute values, whatever the number of elements.

    `num_segments` must be given inside of `jit`; without it there are as many segments as the
    greatest id asks for.

    `[E, ...]` and integers `[E]` give `[num_segments, ...]`; ids outside are an `IndexRangeError`,
    floating ones a `DTypeError`, another number of them than E a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.segment_sum([1.0, 2.0, 3.0], [0, 2, 0], 3).tolist()
    [4.0, 0.0, 2.0]
    """
    n = _number_of(segment_ids, num_segments, "segment_sum")
    return _segment_sum(data, segment_ids, n)


@op_function
def _segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: Any, /) -> Any:
    return _segments(ScatterAdd, data, segment_ids, num_segments, _zero, "segment_sum")


def _zero(dtype: DType) -> int:
    return 0


def segment_mean(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None
) -> Tensor:
    """The mean of each segment; 0 for an empty one. Integers become float32.

    `[E, ...]` and integers `[E]` give `[num_segments, ...]`; ids outside are an `IndexRangeError`,
    floating ones a `DTypeError`, another number of them than E a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.segment_mean([1.0, 2.0, 3.0], [0, 2, 0], 3).tolist()
    [2.0, 0.0, 2.0]
    """
    n = _number_of(segment_ids, num_segments, "segment_mean")
    return _segment_mean(data, segment_ids, n)


@op_function
def _segment_mean(data: ArrayLike, segment_ids: ArrayLike, num_segments: Any, /) -> Any:
    x, ids = promote_to_float(data), _ids(segment_ids)
    total = _segments(ScatterAdd, x, ids, num_segments, _zero, "segment_mean")
    (size,) = as_shape((num_segments,))
    counter = TensorType(int64, (size,))
    count = ScatterAdd(0)(full(0, counter), ids, full(1, TensorType(int64, ids.shape)))
    count = el.cast(el.max(count, full(1, counter)), x.dtype)
    return el.div(total, expand(count, total.shape, tuple(range(1, total.type.rank))))


def segment_prod(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None
) -> Tensor:
    """The product of each segment; 1 for an empty one. The gradient is exact where elements are 0.

    `[E, ...]` and integers `[E]` give `[num_segments, ...]`; ids outside are an `IndexRangeError`,
    floating ones a `DTypeError`, another number of them than E a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.segment_prod([1.0, 2.0, 3.0], [0, 2, 0], 3).tolist()
    [3.0, 1.0, 2.0]
    """
    n = _number_of(segment_ids, num_segments, "segment_prod")
    return _segment_prod(data, segment_ids, n)


@op_function
def _segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: Any, /) -> Any:
    return _segments(ScatterMul, data, segment_ids, num_segments, lambda _: 1, "segment_prod")


def _least(dtype: DType) -> Any:
    return -math.inf if dtype.is_float else np.iinfo(dtype.dtype).min


def _most(dtype: DType) -> Any:
    return math.inf if dtype.is_float else np.iinfo(dtype.dtype).max


def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """The maximum of each segment; -inf, or the least integer, for an empty one. NaN if an element
    is NaN; equal maxima share the gradient.

    `[E, ...]` and integers `[E]` give `[num_segments, ...]`; ids outside are an `IndexRangeError`,
    floating ones a `DTypeError`, another number of them than E a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.segment_max([1.0, 2.0, 3.0], [0, 2, 0], 3).tolist()
    [3.0, -inf, 2.0]
    """
    n = _number_of(segment_ids, num_segments, "segment_max")
    return _segment_max(data, segment_ids, n)


@op_function
def _segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: Any, /) -> Any:
    return _segments(ScatterMax, data, segment_ids, num_segments, _least, "segment_max")


def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """The minimum of each segment; inf, or the greatest integer, for an empty one. NaN if an
    element is NaN; equal minima share the gradient.

    `[E, ...]` and integers `[E]` give `[num_segments, ...]`; ids outside are an `IndexRangeError`,
    floating ones a `DTypeError`, another number of them than E a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.segment_min([1.0, 2.0, 3.0], [0, 2, 0], 3).tolist()
    [1.0, inf, 2.0]
    """
    n = _number_of(segment_ids, num_segments, "segment_min")
    return _segment_min(data, segment_ids, n)


@op_function
def _segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: Any, /) -> Any:
    return _segments(ScatterMin, data, segment_ids, num_segments, _most, "segment_min")


def segment_softmax(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None
) -> Tensor:
    """`exp(x)` divided by its sum over the segment, for each element, without overflow: the shape
    of `data`.

    NaN in a segment whose elements are all -inf, or of which one is inf or NaN.

    Ids outside of 0 to `num_segments - 1` are an `IndexRangeError`, floating ones a `DTypeError`,
    another number of them than rows of `data` a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.segment_softmax([1.0, 2.0, 1.0], [0, 2, 0], 3).tolist()
    [0.5, 1.0, 0.5]
    """
    n = _number_of(segment_ids, num_segments, "segment_softmax")
    return _segment_softmax(data, segment_ids, n)


@op_function
def _segment_softmax(data: ArrayLike, segment_ids: ArrayLike, num_segments: Any, /) -> Any:
    x, ids = promote_to_float(data), _ids(segment_ids)
    dtype = x.dtype
    x = el.cast(x, float32) if dtype.is_half else x
    top = _segments(ScatterMax, StopGradient()(x), ids, num_segments, _least, "segment_softmax")
    e = el.exp(el.sub(x, Gather(0)(top, ids)))
    total = _segments(ScatterAdd, e, ids, num_segments, _zero, "segment_softmax")
    return el.cast(el.div(e, Gather(0)(total, ids)), dtype)
