"""Shapes and axes under PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import broadcasting, manipulation
from retrograd.functions.broadcasting import as_node, integer, listed_axes, normal_axis
from retrograd.functions.complex import make_complex
from retrograd.functions.indexing import getitem, take
from retrograd.ir import Dim, Node, as_dtype, as_shape, full, int64, product
from retrograd.ops import complex as complex_ops
from retrograd.ops import elementwise as el
from retrograd.ops import shape as ops
from retrograd.ops.leaf import Iota
from retrograd.ops.reduce import ReduceSum


def sized(size: Sequence[Any]) -> tuple[Any, ...]:
    """Sizes or axes given one by one, or as one sequence."""
    if len(size) == 1 and hasattr(size[0], "__iter__") and not hasattr(size[0], "__index__"):
        return tuple(size[0])
    return tuple(size)


@op_function
def unsqueeze(x: ArrayLike, /, dim: int) -> Any:
    """A new axis of size 1 at a position of the result: `expand_dims`.

    `[..., n]` to `[..., n, 1]` for `dim=-1`. `AxisError` for a position beyond the result's shape.

    >>> import retrograd as rg
    >>> rg.unsqueeze(rg.ones(3), 0).shape
    (1, 3)
    """
    return manipulation.expand_dims(as_node(x), dim)


@op_function
def flatten(x: ArrayLike, /, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes from one to another, both included, as one axis; all by default.

    `[a, b, c]` to `[a, b * c]` for `start_dim=1`; an array without axes becomes a vector.
    `AxisError` for an axis that x does not have, `ShapeError` where the first comes after the last.

    >>> import retrograd as rg
    >>> rg.flatten(rg.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = as_node(x)
    if x.type.rank == 0:
        return ops.reshape(x, (1,))
    first, last = (normal_axis(d, x.type.rank, "flatten") for d in (start_dim, end_dim))
    if first > last:
        raise ShapeError(f"flatten of {x.shape}: axis {start_dim} comes after axis {end_dim}")
    middle = product(x.shape[first : last + 1])
    return ops.reshape(x, (*x.shape[:first], middle, *x.shape[last + 1 :]))


@op_function
def unflatten(x: ArrayLike, /, dim: int, sizes: Sequence[int]) -> Any:
    """One axis as several, of which one size may be -1: undoes `flatten`.

    `[a, b * c]` to `[a, b, c]`. `ShapeError` where the sizes do not multiply to that of the axis,
    `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.unflatten(rg.ones((2, 12)), 1, (3, -1)).shape
    (2, 3, 4)
    """
    x = as_node(x)
    at = normal_axis(dim, x.type.rank, "unflatten")
    known = product(s for s in sizes if s != -1)
    n = x.shape[at]
    if (
        sum(s == -1 for s in sizes) > 1
        or (known == 0 and -1 in sizes)
        or (-1 in sizes and n % known)
    ):
        raise ShapeError(f"unflatten of axis {dim} of {x.shape} to {tuple(sizes)}")
    parts = [n // known if s == -1 else s for s in sizes]
    return ops.reshape(x, as_shape((*x.shape[:at], *parts, *x.shape[at + 1 :])))


@op_function
def permute(x: ArrayLike, /, dims: Sequence[int]) -> Any:
    """The axes reordered: `permute_dims`.

    Axis i of the result is axis `dims[i]` of x, in its shape too. `ShapeError` where `dims` does
    not list each axis once, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.permute(rg.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return manipulation.permute_dims(as_node(x), dims)


@op_function
def movedim(x: ArrayLike, /, source: Any, destination: Any) -> Any:
    """Axes moved to new positions: `moveaxis`.

    The others keep their order in the shape. `ShapeError` where there are not as many of both,
    `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.movedim(rg.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return manipulation.moveaxis(as_node(x), source, destination)


@op_function
def swapdims(x: ArrayLike, /, dim0: int, dim1: int) -> Any:
    """Two axes exchanged: `swapaxes`.

    The sizes of both are exchanged in the shape. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.swapdims(rg.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return manipulation.swapaxes(as_node(x), dim0, dim1)


@op_function
def t(x: ArrayLike, /) -> Any:
    """The transpose of a matrix; a vector or a number stays as it is.

    `[m, n]` to `[n, m]`. `ShapeError` for more than two axes: see `matrix_transpose`.

    >>> import retrograd as rg
    >>> rg.t(rg.ones((2, 3))).shape
    (3, 2)
    """
    x = as_node(x)
    if x.type.rank > 2:
        raise ShapeError(f"t takes a matrix, not the shape {x.shape}; see matrix_transpose")
    return ops.permute(x, tuple(reversed(range(x.type.rank))))


@op_function
def adjoint(x: ArrayLike, /) -> Any:
    """The last two axes exchanged, of complex numbers with the conjugates.

    `[..., m, n]` to `[..., n, m]`. `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.adjoint(rg.tensor([[1j, 2j]])).tolist()
    [[-1j], [-2j]]
    """
    x = manipulation.matrix_transpose(as_node(x))
    return complex_ops.conj(x) if x.dtype.is_complex else x


@op_function
def expand(x: ArrayLike, size: Sequence[int], /) -> Any:
    """x repeated to a shape, in which -1 leaves an axis as it is: `x.expand(*size)`.

    Missing axes are put in front, and axes of size 1 stretch. `ShapeError` where it does not fit.

    >>> import retrograd as rg
    >>> rg.ones((3, 1)).expand(-1, 4).shape
    (3, 4)
    """
    x = as_node(x)
    extra = len(size) - x.type.rank
    if extra < 0 or any(s == -1 for s in size[:extra]):
        raise ShapeError(f"expand of {x.shape} to {tuple(size)}")
    known = tuple(x.shape[i - extra] if s == -1 else s for i, s in enumerate(size))
    return broadcasting.broadcast_to(x, as_shape(known))


@op_function
def sum_to_size(x: ArrayLike, size: Sequence[int], /) -> Any:
    """The sum over the axes that broadcasting `size` to the shape of x would repeat.

    The shape is `size`. `ShapeError` where that does not broadcast to the shape of x.

    >>> import retrograd as rg
    >>> rg.ones((2, 3)).sum_to_size(3).tolist()
    [2.0, 2.0, 2.0]
    """
    x, shape = as_node(x), as_shape(size)
    lead = x.type.rank - len(shape)
    if lead < 0 or broadcasting.broadcast_shapes(x.shape, shape) != x.shape:
        raise ShapeError(f"sum_to_size: {shape} does not broadcast to {x.shape}")
    axes = [i for i, n in enumerate(x.shape) if i < lead or (shape[i - lead] == 1 and n != 1)]
    return ops.reshape(ReduceSum(tuple(axes))(x), shape) if axes else x


@op_function
def narrow(x: ArrayLike, /, dim: int, start: int, length: int) -> Any:
    """So many elements from a place on along an axis: `x[:, start : start + length]` for `dim=1`.

    `[..., n, ...]` to `[..., length, ...]`. `ShapeError` where there are not as many, `AxisError`
    for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.narrow(rg.arange(5), 0, 1, 3).tolist()
    [1, 2, 3]
    """
    x = as_node(x)
    at = normal_axis(dim, x.type.rank, "narrow")
    n, first = x.shape[at], _place(start, "narrow")
    first = first + n if isinstance(first, int) and first < 0 else first
    if not isinstance(n, Dim) and not 0 <= first <= first + length <= n:
        raise ShapeError(f"narrow of axis {dim} of {x.shape} to {length} elements from {start}")
    return ops.slice_axis(x, at, first, first + length)


def _place(value: Any, what: str) -> Any:
    return value if isinstance(value, Dim) else integer(value, f"{what}: a place")


def at_axis(x: Node, dim: int, item: Any, what: str) -> tuple[Any, ...]:
    """The key with an item at one axis, and everything of the axes before it."""
    return (*(slice(None),) * normal_axis(dim, x.type.rank, what), item)


@op_function
def select(x: ArrayLike, /, dim: int, index: int) -> Any:
    """One slice along an axis: `x.select(dim, index)`, `x[:, index]` for `dim=1`.

    `[..., n, ...]` to `[..., ...]`. `IndexRangeError` for a place beyond the axis, `AxisError` for
    an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.eye(3).select(0, 1).tolist()
    [0.0, 1.0, 0.0]
    """
    x = as_node(x)
    return getitem(x, at_axis(x, dim, integer(index, "select: an index"), "select"))


@op_function
def unfold(x: ArrayLike, /, dimension: int, size: int, step: int) -> Any:
    """Windows along an axis, in a new last axis: `x.unfold(dimension, size, step)`.

    `[..., n, ...]` to `[..., (n - size) // step + 1, ..., size]`. `ShapeError` for windows that are
    longer than the axis, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.arange(5).unfold(0, 2, 2).tolist()
    [[0, 1], [2, 3]]
    """
    x = as_node(x)
    at = normal_axis(dimension, x.type.rank, "unfold")
    n = x.shape[at]
    if step < 1 or size < 0 or (not isinstance(n, Dim) and size > n):
        raise ShapeError(f"unfold of axis {dimension} of {x.shape}: size {size}, step {step}")
    shape = ((n - size) // step + 1, size)
    first, offset = Iota(shape, 0, int64)(), Iota(shape, 1, int64)()
    taken = take(x, first * step + offset, axis=at)
    return manipulation.moveaxis(taken, at + 1, -1)


@op_function
def diag_embed(x: ArrayLike, /, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with the last axis of x as a diagonal, zero elsewhere; they stand in the axes `dim1`
    and `dim2` of the result.

    `[..., n]` to `[..., n + |offset|, n + |offset|]`. `AxisError` for axes beyond the result,
    `ShapeError` where both are one.

    >>> import retrograd as rg
    >>> rg.diag_embed(rg.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x, k = as_node(x), integer(offset, "diag_embed: the offset")
    rank = x.type.rank
    axes = listed_axes((dim1, dim2), rank, "diag_embed", 1)
    before = (0,) * (rank - 1)
    wide = ops.pad(x, (*before, max(-k, 0)), (*before, max(k, 0)))
    shape = (*wide.shape, wide.shape[-1])
    i, j = Iota(shape, rank - 1, int64)(), Iota(shape, rank, int64)()
    hit = el.eq(j, i + k)
    along = ops.expand(wide, shape, (rank,))
    y = el.select(hit, along, full(0, x.type.with_shape(shape)))
    return manipulation.moveaxis(y, (-2, -1), axes)


@op_function
def view_as_real(x: ArrayLike, /) -> Any:
    """Complex numbers as pairs of a real and an imaginary part.

    `[...]` to `[..., 2]`. `DTypeError` for real numbers.

    >>> import retrograd as rg
    >>> rg.view_as_real(rg.tensor(1 + 2j)).tolist()
    [1.0, 2.0]
    """
    x = as_node(x)
    if not x.dtype.is_complex:
        raise broadcasting.DTypeError(f"view_as_real takes complex numbers, not {x.dtype}")
    return manipulation.stacked([complex_ops.real(x), complex_ops.imag(x)], -1)


@op_function
def view_as_complex(x: ArrayLike, /) -> Any:
    """Pairs in the last axis as complex numbers.

    `[..., 2]` to `[...]`. `ShapeError` for another size of that axis.

    >>> import retrograd as rg
    >>> rg.view_as_complex(rg.tensor([1.0, 2.0])).item()
    (1+2j)
    """
    x = as_node(x)
    if x.shape[-1:] != (2,):
        raise ShapeError(f"view_as_complex takes pairs in the last axis, not the shape {x.shape}")
    return make_complex(*(getitem(x, (..., i)) for i in (0, 1)))


@op_function
def view_as_dtype(x: ArrayLike, dtype: Any, /) -> Any:
    """`x.view(dtype)`, for the dtype of x, and between complex numbers and their parts, which are
    side by side in the last axis: `[..., n]` to `[..., 2 n]` and back."""
    x, wanted = as_node(x), as_dtype(dtype)
    if wanted is x.dtype:
        return x
    if x.type.rank and x.dtype.is_complex and wanted is x.dtype.real:
        return flatten(view_as_real(x), -2)
    if x.type.rank and wanted.is_complex and x.dtype is wanted.real:
        n = x.shape[-1]
        if isinstance(n, int) and n % 2:
            raise ShapeError(f"view({wanted}) takes pairs in the last axis of {x.shape}")
        return view_as_complex(manipulation.reshape(x, (*x.shape[:-1], n // 2, 2)))
    raise OptionError(
        f"view({dtype!r}) of {x.type} would read bits as another dtype; x.astype(dtype) converts "
        "numbers, x.numpy().view(dtype) reads bits"
    )


@op_function
def repeated(x: ArrayLike, sizes: Sequence[int], /) -> Any:
    """x laid side by side: `tile`, which is what `torch.Tensor.repeat` is."""
    x = as_node(x)
    if len(sizes) < x.type.rank:
        raise ShapeError(f"{len(sizes)} repetitions for the axes of {x.shape}")
    return manipulation.tile(x, tuple(sizes))


def element_count(shape: Sequence[int]) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)
