"""The numbers that samples are computed with: arrays of NumPy's, or nodes of a graph.

A formula of this package is written once, for either. With arrays it is the meaning of a draw, with
nodes what a compiler gets; every operation is rounded correctly, so the bits are the same.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from retrograd.ir import DType, Node, float32, full
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.reduce import ArgMax
from retrograd.ops.shape import expand, permute, reshape, slice_axis
from retrograd.ops.special import portable


class SampleMath(Protocol):
    """What the formulas ask of numbers, beside their operators. Where one of two is a Python
    number, it is taken in the dtype of the other."""

    def bits(self, key: Any, shape: Any) -> Any:
        """Random words of 32 bits."""

    def rows(self, x: Any) -> list[Any]:
        """What there is along axis 0, which has a known size."""

    def cast(self, x: Any, dtype: DType) -> Any: ...
    def left(self, x: Any, count: int) -> Any: ...
    def right(self, x: Any, count: int) -> Any:
        """Shifted; zeros come in."""

    def choose(self, c: Any, a: Any, b: Any) -> Any: ...
    def is_zero(self, x: Any) -> Any: ...
    def max(self, x: Any, y: Any) -> Any: ...
    def min(self, x: Any, y: Any) -> Any: ...
    def clamp(self, x: Any, low: Any, high: Any) -> Any: ...
    def abs(self, x: Any) -> Any: ...
    def floor(self, x: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def log(self, x: Any) -> Any: ...
    def exp(self, x: Any) -> Any: ...
    def atan(self, x: Any) -> Any: ...
    def log_factorial(self, x: Any) -> Any: ...
    def constant(self, value: float, like: Any) -> Any: ...
    def several(self, x: Any, count: int) -> Any:
        """The same along a new axis 0."""

    def first(self, values: Any, accepted: Any) -> Any:
        """Along axis 0, the first value that is accepted; of none, the first."""


class NumPySampleMath:
    """NumPy's."""

    choose = staticmethod(np.where)
    abs, floor, sqrt = staticmethod(np.abs), staticmethod(np.floor), staticmethod(np.sqrt)
    log, exp = staticmethod(portable.log_of_arrays), staticmethod(portable.exp_of_arrays)
    atan = staticmethod(portable.atan_of_arrays)
    log_factorial = staticmethod(portable.log_factorial_of_arrays)

    def bits(self, key: Any, shape: Any) -> Any:
        return RandomBits(shape).reference(key)

    def rows(self, x: Any) -> list[Any]:
        return list(x)

    def cast(self, x: Any, dtype: DType) -> Any:
        return np.asarray(x).astype(dtype.dtype)

    def left(self, x: Any, count: int) -> Any:
        return x << x.dtype.type(count)

    def right(self, x: Any, count: int) -> Any:
        return x >> x.dtype.type(count)

    def is_zero(self, x: Any) -> Any:
        return x == 0.0

    def max(self, x: Any, y: Any) -> Any:
        return el.max.formula(x, y)

    def min(self, x: Any, y: Any) -> Any:
        return el.min.formula(x, y)

    def clamp(self, x: Any, low: Any, high: Any) -> Any:
        return el.clamp.formula(x, low, high)

    def constant(self, value: float, like: Any) -> Any:
        return np.full_like(like, value)

    def several(self, x: Any, count: int) -> Any:
        return np.asarray(x)[None]  # repeated by whoever reads it

    def first(self, values: Any, accepted: Any) -> Any:
        first = np.argmax(accepted, axis=0)
        return np.take_along_axis(values, first[None], 0)[0]


class GraphSampleMath:
    """Of a graph; they have the shapes of their operations."""

    abs, floor, sqrt, is_zero = el.abs, el.floor, el.sqrt, staticmethod(el.is_zero)
    log, exp = portable.portable_log, portable.portable_exp
    atan, log_factorial = portable.portable_atan, portable.portable_log_factorial

    def bits(self, key: Node, shape: Any) -> Node:
        return RandomBits(tuple(shape))(key)

    def rows(self, x: Node) -> list[Node]:
        count: Any = x.shape[0]
        return [reshape(slice_axis(x, 0, i, i + 1), x.shape[1:]) for i in range(count)]

    def cast(self, x: Node, dtype: DType) -> Node:
        return el.cast(x, dtype)

    def left(self, x: Node, count: int) -> Node:
        return el.shift_left(x, full(count, x.type))

    def right(self, x: Node, count: int) -> Node:
        return el.shift_right(x, full(count, x.type))

    def choose(self, c: Node, a: Any, b: Any) -> Node:
        return el.select(c, _lifted(a, b), _lifted(b, a))

    def max(self, x: Node, y: Any) -> Node:
        return el.max(x, _lifted(y, x))

    def min(self, x: Node, y: Any) -> Node:
        return el.min(x, _lifted(y, x))

    def clamp(self, x: Node, low: Any, high: Any) -> Node:
        return el.clamp(x, _lifted(low, x), _lifted(high, x))

    def constant(self, value: float, like: Node) -> Node:
        return full(value, like.type)

    def several(self, x: Node, count: int) -> Node:
        return expand(x, (count, *x.shape), (0,))

    def first(self, values: Node, accepted: Node) -> Node:
        first = ArgMax(0)(el.cast(accepted, float32))
        rank = values.type.rank
        stacked = permute(values, (*range(1, rank), 0))
        index = reshape(first, (*first.shape, 1))
        return reshape(Gather(rank - 1, rank - 1)(stacked, index), first.shape)


def _lifted(value: Any, like: Node) -> Node:
    return value if isinstance(value, Node) else full(value, like.type)
