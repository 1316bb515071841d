"""What the graph leaves explicit: dtype promotion, broadcasting, axes. On nodes."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retrograd.eager.conversion import as_array, holds_arrays, integer_range, promote
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.weak_types import is_weak, wide
from retrograd.errors import AxisError, DTypeError, OptionError, ShapeError
from retrograd.ir import (
    Dim,
    DType,
    Node,
    Shape,
    TensorType,
    as_dtype,
    bool_,
    complex128,
    float64,
    full,
    int64,
)
from retrograd.ir.dtype import DEFAULT
from retrograd.ops.elementwise import cast
from retrograd.ops.leaf import SizeOf, constant
from retrograd.ops.shape import Concat, expand, reshape


def number_dtype(value: Any, other: DType | None) -> DType:
    """The dtype a Python number or a size takes next to an array: the array's, if its kind can
    hold it."""
    if isinstance(value, bool):
        return other or bool_
    if isinstance(value, int | Dim) or (isinstance(value, Node) and value.dtype.is_integer):
        return other if other is not None and other is not bool_ else int64
    if isinstance(value, complex) or (isinstance(value, Node) and value.dtype.is_complex):
        double = isinstance(value, np.complex128)
        return (
            other.complex
            if other is not None and other.is_inexact
            else (complex128 if double else DEFAULT.complex)
        )
    if other is not None and other.is_inexact:
        return other
    return float64 if isinstance(value, np.float64) else DEFAULT.real


def as_node(value: Any, dtype: DType | None = None) -> Node:
    """A node: itself, or one made of a number, a size, an array or nested lists of these. The
    dtype is that of what a number stands next to."""
    if isinstance(value, Node):
        if dtype is None or not is_weak(value):
            return value
        return cast(wide(value), number_dtype(value, dtype))
    if isinstance(value, bool | int | float | complex | Dim):
        return number(value, number_dtype(value, dtype))
    if isinstance(value, list | tuple) and holds_arrays(value):
        return nested(value)
    if isinstance(value, LazyTensor):
        raise DTypeError(f"expected a number, not a tensor of the shape {value.shape}")
    if dtype is not None and isinstance(value, list | tuple):
        numbers = PythonNumbers(value)
        return numbers.node(promote(dtype, numbers.dtype))
    return constant(as_array(value))


def number(value: bool | int | float | complex | Dim, dtype: DType, shape: Shape = ()) -> Node:
    """A Python number or a size as a constant of a shape; one that does not fit the dtype is an
    error."""
    if not isinstance(value, bool | int | float | complex | Dim | np.number):
        raise DTypeError(f"expected a number, not {value!r:.40}")
    if isinstance(value, Dim):
        return expand(SizeOf(value, dtype)(), shape, tuple(range(len(shape))))
    if dtype.is_integer:
        low, high = integer_range(dtype)
        if not (isinstance(value, int | np.integer) and low <= value <= high):
            raise DTypeError(f"{value} does not fit into {dtype}")
    given: Any = value
    if type(value) is int and 2**53 < abs(value) < 2**63:
        given = np.int64(value)  # an int would be rounded to a double before it is to float32
    try:
        return full(given, TensorType(dtype, shape))
    except OverflowError:
        raise DTypeError(f"{value!r:.40} does not fit into {dtype}") from None


class PythonNumbers:
    """A nested sequence of Python numbers: an array of the default dtype, whose elements are
    rounded when it is known what it stands next to."""

    def __init__(self, data: Sequence[Any]) -> None:
        self.data = data
        self.dtype = as_dtype(as_array(data).dtype)

    def node(self, dtype: DType) -> Node:
        if self.dtype.is_complex and not dtype.is_complex:
            dtype = self.dtype
        return constant(as_array(self.data, dtype))


def nested(data: Sequence[Any], dtype: DType | None = None, even: bool = False) -> Node:
    """A nested sequence in which there are nodes as one node. Python numbers take the dtype of the
    nodes; elements are broadcast to one shape, unless that they differ is an error (`even`)."""
    if dtype is None:
        dtype = joined_dtype([_operand(x) for x in flat(data)])
    parts = [_element(x, dtype, even) for x in data]
    if even and len({x.shape for x in parts}) > 1:
        shapes = ", ".join([str(x.shape) for x in parts])
        raise ShapeError(f"the nested sequence is ragged, its rows have the shapes {shapes}")
    shape = broadcast_shapes(*(x.shape for x in parts))
    parts = [broadcast_to(x, shape) for x in parts]
    return Concat(0)(*(reshape(x, (1, *shape)) for x in parts))


def _element(x: Any, dtype: DType, even: bool) -> Node:
    if isinstance(x, list | tuple) and holds_arrays(x):
        return nested(x, dtype, even)
    found = _operand(x)
    x = _cast_to(found, dtype)
    return x if isinstance(x, Node) else number(x, dtype)


def flat(data: Any) -> Iterator[Any]:
    """What is in nested sequences, in order; one of Python numbers alone is in one piece."""
    if isinstance(data, list | tuple) and holds_arrays(data):
        for x in data:
            yield from flat(x)
    else:
        yield data


def joined_dtype(operands: Sequence[Any]) -> DType:
    """The dtype of operands that stand next to each other."""
    joined: DType | None = None
    for v in operands:
        if isinstance(v, PythonNumbers) or (isinstance(v, Node) and not is_weak(v)):
            joined = v.dtype if joined is None else promote(joined, v.dtype)
    for v in operands:
        if not isinstance(v, Node | PythonNumbers) or (isinstance(v, Node) and is_weak(v)):
            joined = number_dtype(v, joined)
    assert joined is not None
    return joined


def alike(*values: Any, floating: bool = False) -> list[Node]:
    """Operands brought to one dtype, each in its own shape."""
    joined, nodes = _promoted(values, floating)
    return [n if isinstance(n, Node) else number(n, joined) for n in nodes]


def broadcast(*values: Any, floating: bool = False) -> list[Node]:
    """Operands brought to one dtype and one shape."""
    joined, nodes = _promoted(values, floating)
    shape = broadcast_shapes(*(n.shape for n in nodes if isinstance(n, Node)))
    return [
        broadcast_to(n, shape) if isinstance(n, Node) else number(n, joined, shape) for n in nodes
    ]


def _promoted(values: Sequence[Any], floating: bool) -> tuple[DType, list[Any]]:
    """The dtype of all operands, and these as nodes of it; numbers stay what they are."""
    operands = [_operand(v) for v in values]
    joined = joined_dtype(operands)
    if floating and not joined.is_inexact:
        joined = DEFAULT.real
    return joined, [_cast_to(v, joined) for v in operands]


def _cast_to(v: Any, dtype: DType) -> Any:
    if isinstance(v, PythonNumbers):
        return v.node(dtype)
    return rounded(v, dtype) if isinstance(v, Node) else v


def rounded(x: Node, dtype: DType) -> Node:
    """A node in a dtype; of a weak one the exact value is rounded."""
    return x if x.dtype is dtype and not dtype.is_inexact else cast(wide(x), dtype)


def _operand(value: Any) -> Any:
    """A node, a Python number or a sequence of these, of whatever a user may give as an array."""
    if isinstance(value, Node | bool | int | float | complex | Dim):
        return value
    if isinstance(value, list | tuple) and not holds_arrays(value):
        return PythonNumbers(value)
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        return as_node(value)
    raise DTypeError(f"expected a tensor, an array or a number, not {type(value).__name__}")


def promote_to_float(x: Any) -> Node:
    """A node of floating or complex dtype: integers and booleans become what Python
    floats are."""
    x = as_node(x)
    return x if x.dtype.is_inexact else cast(x, DEFAULT.real)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape: axes are aligned from the right, and those of size 1 stretch."""
    distinct = {s for s in shapes if s}
    if len(distinct) < 2:  # as nearly always: no axis stretches but for numbers
        return distinct.pop() if distinct else ()
    rank = max([len(s) for s in distinct])
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


def integer(value: Any, what: str) -> int:
    """A whole number, given as an int or as something that stands for one."""
    try:
        return operator.index(value)
    except TypeError:
        raise ShapeError(f"{what} is an integer, not {value!r}") from None


def one_axis(axis: Any, dim: Any, default: Any = None) -> Any:
    """The axis of a call that may have been given it by PyTorch's name for it, `dim`."""
    if dim is None:
        return axis
    if axis is not None and axis != default:
        raise OptionError(f"axis={axis!r} and dim={dim!r} are two names of one argument; give one")
    return dim


def normal_axis(axis: Any, rank: int, what: str, new: int = 0) -> int:
    """An axis of an array of so many axes, and `new` ones, counted from the front."""
    i = integer(axis, f"{what}: an axis")
    among = rank + new
    if not -among <= i < among:
        room = f"; with {new} more, axes are {-among} to {among - 1}" if new else ""
        raise AxisError(f"{what}: axis {i} of an array with {rank} axes{room}")
    return i % among


def normal_axes(axis: Any, rank: int, what: str, new: int = 0) -> tuple[int, ...]:
    """Axes counted from the front, ascending; None means all. Repeated axes are an error."""
    if axis is None:
        return tuple(range(rank + new))
    return tuple(sorted(listed_axes(axis, rank, what, new)))


def listed_axes(axis: Any, rank: int, what: str, new: int = 0) -> tuple[int, ...]:
    """Axes counted from the front, in the order given; one alone counts as a list."""
    given = axis if hasattr(axis, "__iter__") and not hasattr(axis, "__index__") else (axis,)
    axes = tuple(normal_axis(a, rank, what, new) for a in given)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{what}: the axes {axis} name one twice")
    return axes


def keep_dims(x: Node, shape: Shape, axes: Sequence[int], keepdims: bool) -> Node:
    """A reduced node with the reduced axes of `shape` put back with size 1, if asked."""
    if not keepdims:
        return x
    return reshape(x, tuple(1 if i in axes else d for i, d in enumerate(shape)))
