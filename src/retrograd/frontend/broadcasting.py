"""What the graph leaves explicit: dtype promotion, broadcasting, axes. On nodes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.frontend.function import as_array
from retrograd.ir import (
    Dim,
    DType,
    Node,
    Shape,
    TensorType,
    as_dtype,
    bool_,
    float32,
    full,
    int64,
)
from retrograd.ops.elementwise import cast
from retrograd.ops.leaf import Leaf, constant
from retrograd.ops.shape import expand, reshape

_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2}


class Number(Leaf):
    """A graph input that stands for a Python number: like one, it takes the dtype of the arrays it
    meets. A float is carried in float64, so that nothing is lost before that."""

    name = "input"

    def __init__(self, dtype: DType) -> None:
        self.type = TensorType(dtype, ())

    def infer(self, *types: TensorType) -> TensorType:
        return self.type


def promote(a: DType, b: DType) -> DType:
    """The dtype of a combination: the higher kind of bool < integers < floats wins; within a kind,
    the smallest that holds both. float16 and bfloat16 meet in float32."""
    if a is b:
        return a
    if _RANK[a.kind] != _RANK[b.kind]:
        return a if _RANK[a.kind] > _RANK[b.kind] else b
    if a.is_float:
        return (a if a.itemsize > b.itemsize else b) if a.itemsize != b.itemsize else float32
    joined = np.promote_types(a.dtype, b.dtype)
    if joined.kind == "f":
        raise DTypeError(f"no integer dtype holds both {a} and {b}; cast one of them")
    return as_dtype(joined)


def number_dtype(value: Any, other: DType | None) -> DType:
    """The dtype a Python number takes next to an array: the array's, if its kind can hold it."""
    if isinstance(value, bool):
        return other or bool_
    if isinstance(value, int) or (isinstance(value, Node) and value.dtype.is_integer):
        return other if other is not None and other is not bool_ else int64
    return other if other is not None and other.is_float else float32


def _is_number(value: Node) -> bool:
    return isinstance(value.prim, Number)


def as_node(value: Any, dtype: DType | None = None) -> Node:
    """A node: itself, or a constant made of a number, array or nested list."""
    if isinstance(value, Node):
        return cast(value, number_dtype(value, dtype)) if _is_number(value) else value
    if isinstance(value, bool | int | float):
        return number(value, number_dtype(value, dtype))
    return constant(as_array(value))


def number(value: bool | int | float, dtype: DType, shape: Shape = ()) -> Node:
    """A Python number as a constant of a shape; one that does not fit the dtype is an error."""
    if dtype.is_integer:
        low, high = integer_range(dtype)
        if not low <= value <= high:
            raise DTypeError(f"{value} does not fit into {dtype}")
    return full(value, TensorType(dtype, shape))


def together(*values: Any, floating: bool = False) -> list[Node]:
    """Operands brought to one dtype and one shape."""
    dtypes = [v.dtype for v in values if isinstance(v, Node) and not _is_number(v)]
    joined: DType | None = None
    for d in dtypes:
        joined = d if joined is None else promote(joined, d)
    numbers = [v for v in values if not isinstance(v, Node) or _is_number(v)]
    for v in numbers:
        if not isinstance(v, bool | int | float | Node):
            raise DTypeError(f"expected a tensor, an array or a number, not {type(v).__name__}")
    for v in numbers:
        joined = number_dtype(v, joined)
    assert joined is not None
    if floating and not joined.is_float:
        joined = float32
    nodes = [cast(v, joined) if isinstance(v, Node) else v for v in values]
    shape = broadcast_shapes(*(n.shape for n in nodes if isinstance(n, Node)))
    return [
        broadcast_to(n, shape) if isinstance(n, Node) else number(n, joined, shape) for n in nodes
    ]


def integer_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer dtype."""
    info = np.iinfo(dtype.dtype)
    return int(info.min), int(info.max)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape: axes are aligned from the right, and those of size 1 stretch."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[int | Dim] = []
    for i in range(-rank, 0):
        sizes = [s[i] for s in shapes if len(s) >= -i]
        wide = [d for d in sizes if d != 1]
        if any(d != wide[0] for d in wide):
            listed = " and ".join(str(s) for s in shapes)
            raise ShapeError(
                f"the shapes {listed} do not broadcast: axis {i} has the sizes "
                f"{', '.join(map(str, sizes))}; sizes must be equal or 1"
            )
        result.append(wide[0] if wide else 1)
    return tuple(result)


def broadcast_to(x: Node, shape: Shape) -> Node:
    """`x` stretched to a shape: axes of size 1 and missing leading axes are repeated."""
    if x.shape == shape:
        return x
    lead = len(shape) - x.type.rank
    if lead < 0 or broadcast_shapes(x.shape, shape) != shape:
        raise ShapeError(f"the shape {x.shape} does not broadcast to {shape}")
    stretched = [i for i, (d, e) in enumerate(zip(x.shape, shape[lead:], strict=True)) if d != e]
    kept = reshape(x, tuple(d for i, d in enumerate(x.shape) if i not in stretched))
    return expand(kept, shape, (*range(lead), *(i + lead for i in stretched)))


def normal_axis(axis: Any, rank: int, what: str) -> int:
    """An axis counted from the front."""
    try:
        i = operator.index(axis)
    except TypeError:
        raise ShapeError(f"{what}: an axis is an integer, not {axis!r}") from None
    if not -rank <= i < rank:
        raise ShapeError(f"{what}: axis {i} of an array with {rank} axes")
    return i % rank


def normal_axes(axis: int | Sequence[int] | None, rank: int, what: str) -> tuple[int, ...]:
    """Axes counted from the front, ascending; None means all. Repeated axes are an error."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    axes = sorted(normal_axis(a, rank, what) for a in given)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{what}: the axes {axis} name one twice")
    return tuple(axes)


def keep_dims(x: Node, shape: Shape, axes: Sequence[int], keepdims: bool) -> Node:
    """A reduced node with the reduced axes of `shape` put back with size 1, if asked."""
    if not keepdims:
        return x
    return reshape(x, tuple(1 if i in axes else d for i, d in enumerate(shape)))
