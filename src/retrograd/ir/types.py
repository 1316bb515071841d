"""The type of a node: a dtype and a shape whose dimensions are ints or `Dim`s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrograd.errors import ShapeError
from retrograd.ir.dim import Dim, evaluate, product
from retrograd.ir.dtype import NOTHING, DType, as_dtype

Shape = tuple["int | Dim", ...]


class TensorType:
    """`float32[N, 3]`: what is known about a value before it is computed. Immutable.

    >>> from retrograd.ir import TensorType, float32, Dim
    >>> TensorType(float32, (Dim("N"), 3))
    f32[N, 3]
    """

    __slots__ = ("_hash", "_size", "dtype", "shape")

    _size: int | Dim

    def __init__(self, dtype: DType, shape: Shape) -> None:
        self.dtype = dtype
        self.shape = shape
        self._hash = hash((dtype.name, shape))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int | Dim:
        """The number of elements."""
        try:
            return self._size
        except AttributeError:  # asked for the first time
            self._size = product(self.shape)
            return self._size

    @property
    def is_inexact(self) -> bool:
        """Whether values of this type have derivatives."""
        return self.dtype.is_inexact

    @property
    def is_static(self) -> bool:
        return not any(isinstance(d, Dim) for d in self.shape)

    @property
    def dim_names(self) -> frozenset[str]:
        """Names of the symbolic sizes that occur in the shape."""
        return frozenset().union(*(d.names for d in self.shape if isinstance(d, Dim)))

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def bind(self, sizes: Mapping[str, int]) -> TensorType:
        """The same type with every named size replaced by its value."""
        return TensorType(self.dtype, tuple(evaluate(d, sizes) for d in self.shape))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TensorType)
            and self.dtype is other.dtype
            and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.dtype.code}[{', '.join(map(str, self.shape))}]"

    __repr__ = __str__


class TupleType(TensorType):
    """`(f32[3], i64[])`: the type of a node of several results, which `item` nodes take apart.

    As an array such a node has no elements and is of no dtype, so that walks which look at dtypes
    and sizes need not know of it.
    """

    __slots__ = ("items",)

    def __init__(self, items: Sequence[TensorType]) -> None:
        self.dtype = NOTHING
        self.shape = (0,)
        self.items = tuple(items)
        self._hash = hash(self.items)

    @property
    def is_inexact(self) -> bool:
        return any(t.is_inexact for t in self.items)

    @property
    def is_static(self) -> bool:
        return all(t.is_static for t in self.items)

    @property
    def dim_names(self) -> frozenset[str]:
        return frozenset().union(*(t.dim_names for t in self.items))

    def with_shape(self, shape: Shape) -> TensorType:
        raise ShapeError(f"{self} is the type of several results, which have shapes of their own")

    def with_dtype(self, dtype: DType) -> TensorType:
        raise ShapeError(f"{self} is the type of several results, which have dtypes of their own")

    def bind(self, sizes: Mapping[str, int]) -> TupleType:
        return TupleType([t.bind(sizes) for t in self.items])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TupleType) and self.items == other.items)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))}{',' * (len(self.items) == 1)})"

    __repr__ = __str__


def as_shape(value: Any) -> Shape:
    """A shape from an int, a `Dim` or a sequence of these; sizes must not be negative."""
    items: Sequence[Any] = (value,) if isinstance(value, Dim) or not _iterable(value) else value
    shape = tuple(d if isinstance(d, Dim) else _size(d, value) for d in items)
    return shape


def _iterable(value: Any) -> bool:
    return hasattr(value, "__iter__")


def _size(d: Any, shape: Any) -> int:
    try:
        size = d.__index__()
    except (AttributeError, TypeError):
        raise ShapeError(
            f"a shape is made of integers and Dims, but {shape!r} holds {d!r}"
        ) from None
    if size < 0:
        raise ShapeError(f"sizes are not negative, but the shape {shape!r} holds {size}")
    if size >= 2**63:
        raise ShapeError(f"the shape {shape!r} holds {size}, which is more than can be counted")
    return int(size)


def spec(shape: Any, dtype: Any = "float32") -> TensorType:
    """A stand-in for an array in `trace`: its shape and dtype, without data.

    `DTypeError` for what is no dtype, `ShapeError` for a size that is neither an integer from 0 on
    nor a `Dim`.

    >>> spec((Dim("N"), 784))
    f32[N, 784]
    """
    return TensorType(as_dtype(dtype), as_shape(shape))
