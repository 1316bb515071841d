"""Norms of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.broadcasting import (
    as_node,
    keep_dims,
    normal_axes,
    normal_axis,
    promote_to_float,
)
from retrograd.functions.elementwise import abs as magnitude
from retrograd.functions.linalg.decompositions import svdvals
from retrograd.functions.reductions import reduced, root, widened
from retrograd.ir import Node, at_least, full
from retrograd.ops import elementwise as el
from retrograd.ops import reduce
from retrograd.ops.complex import imag, real
from retrograd.ops.identity import StopGradient
from retrograd.ops.linalg import NuclearNorm, SpectralNorm
from retrograd.ops.linalg.matrix import adjoint
from retrograd.ops.shape import permute, reshape

INFINITY = float("inf")


@op_function
def vector_norm(
    x: ArrayLike,
    /,
    ord: int | float | None = 2,
    *,
    axis: Any = None,
    keepdims: bool = False,
    dim: Any = None,
    keepdim: bool = False,
) -> Any:
    """`sum(|x|**ord)**(1/ord)` over axes; the maximum of |x| for inf, the minimum for -inf.

    The Euclidean norm is scaled by the largest element, so squares neither overflow nor underflow.
    The gradient where the norm is 0 is 0, and so are derivatives beyond. Elements that are 0 beside
    others have the derivatives that there are, to every order for even `ord`. Of complex numbers it
    is a real number. None is 2.

    `[..., n]` to `[...]`, over all axes by default; sizes of 1 stay under `keepdims`. `AxisError`
    for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.vector_norm([3.0, 4.0]).item(), rg.vector_norm([3.0, 4.0], ord=1).item()
    (5.0, 7.0)
    """
    if isinstance(ord, str):
        raise OptionError(f"vector_norm: ord is a number, not {ord!r}; see matrix_norm")
    x = promote_to_float(x)
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    axes = normal_axes(axis, x.type.rank, "vector_norm")
    norm = el.cast(_norm(widened(x), axes, 2 if ord is None else ord), x.dtype.real)
    return keep_dims(norm, x.shape, axes, keepdims)


def _norm(x: Node, axes: tuple[int, ...], order: float) -> Node:
    if axes and order == 2:
        return euclidean(x, axes)
    size = as_node(magnitude(x))
    if not axes:  # each element by itself
        return size if order else el.cast(el.ne(size, full(0, size.type)), size.dtype)
    if order == float("inf"):
        if any(size.shape[a] == 0 for a in axes):
            return reduce.ReduceSum(axes)(size)  # the largest of none is 0
        return reduce.ReduceMax(axes)(size)
    if order == float("-inf"):
        return reduce.ReduceMin(axes)(size)
    if order == 0:
        return reduce.ReduceSum(axes)(el.cast(el.ne(size, full(0, size.type)), size.dtype))
    if order == 1:
        return reduce.ReduceSum(axes)(size)
    powers = el.pow(size, full(order, size.type))
    total = reduce.ReduceSum(axes)(powers)
    exponent = full(1 / order, total.type)
    return el.pow(total, exponent) if order < 0 else root(lambda x: el.pow(x, exponent), total)


def euclidean(x: Node, axes: tuple[int, ...]) -> Node:
    """The Euclidean norm over axes, without overflow of squares, which are those of the parts of
    complex numbers: their magnitudes have kinks."""
    parts = (real(x), imag(x)) if x.dtype.is_complex else (x,)
    if any(x.shape[a] == 0 for a in axes):
        return reduce.ReduceSum(axes)(parts[0])
    # The scale changes nothing but the rounding, so it takes no part in the gradient: the norm is
    # homogeneous. A power of two near the largest element rounds nothing, and takes no division.
    sizes = [reduce.ReduceMax(axes)(el.abs(p)) for p in parts]
    top = StopGradient()(sizes[0] if len(sizes) == 1 else el.max(*sizes))
    usable = el.isfinite(top) & (top > 0)
    largest = np.finfo(top.dtype.dtype).maxexp - 2  # that of the inverse must be there, too
    power = el.floor(el.log2(el.select(usable, top, full(1, top.type))))
    power = el.max(el.min(power, full(largest, top.type)), full(-largest, top.type))
    scale, inverse = el.exp2(power), reduce.ReduceSum(axes).back(el.exp2(-power), parts[0])
    squares = [q * q for q in [p * inverse for p in parts]]
    total = squares[0] if len(squares) == 1 else squares[0] + squares[1]
    return scale * root(el.sqrt, reduce.ReduceSum(axes)(total))


@op_function
def matrix_norm(
    x: ArrayLike,
    /,
    ord: int | float | str | None = "fro",
    *,
    keepdims: bool = False,
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
) -> Any:
    """A norm of the matrices of the last two axes, or of the two that PyTorch's `dim` names.

    | ord | norm |
    |---|---|
    | "fro" | the root of the sum of the squares of all elements |
    | "nuc" | the sum of the singular values |
    | inf, -inf | the largest, the least sum of magnitudes along a row |
    | 1, -1 | the same along a column |
    | 2, -2 | the largest, the least singular value |

    `[..., m, n]` to `[...]`, or `[..., 1, 1]` under `keepdims`. `ShapeError` for an array of less
    than two axes, `OptionError` for another `ord`.

    >>> import retrograd as rg
    >>> rg.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]).item()
    5.0
    """
    x, keepdims = promote_to_float(x), keepdims or keepdim
    n = x.type.rank
    if n < 2:
        raise ShapeError(f"matrix_norm takes matrices, or stacks of them, not {x.type}")
    if tuple(dim) != (-2, -1):
        return norm(x, ord="fro" if ord is None else ord, axis=tuple(dim), keepdims=keepdims)
    y = el.cast(_matrix_norm(widened(x), ord), x.dtype.real)
    return reshape(y, (*y.shape, 1, 1)) if keepdims else y


def _matrix_norm(x: Node, order: int | float | str | None) -> Node:
    n = x.type.rank
    if order in ("fro", None):
        return euclidean(x, (n - 2, n - 1))
    if order in (1, -1, INFINITY, -INFINITY):
        along = n - 2 if order in (1, -1) else n - 1
        sums = reduce.ReduceSum((along,))(as_node(magnitude(x)))
        return _extreme(sums, order > 0)
    if order in (2, -2, "nuc"):
        values = as_node(svdvals(x))
        if order == "nuc":
            total = reduce.ReduceSum((n - 2,))(values)
            rows, columns = x.shape[-2:]
            if at_least(rows, columns):
                return NuclearNorm()(x, total)
            return NuclearNorm()(adjoint(x), total) if at_least(columns, rows) else total
        y = _extreme(values, order == 2)
        return SpectralNorm()(x, y) if order == 2 and values.shape[-1] != 0 else y
    raise OptionError(f"matrix_norm knows 'fro', 'nuc', inf, -inf, 1, -1, 2 and -2, not {order!r}")


def _extreme(x: Node, largest: bool) -> Node:
    """The largest or least along the last axis; the largest of none is 0."""
    axes = (x.type.rank - 1,)
    if x.shape[-1] == 0 and largest:
        return reduce.ReduceSum(axes)(x)
    return (reduce.ReduceMax if largest else reduce.ReduceMin)(axes)(x)


@op_function
def norm(
    x: ArrayLike,
    /,
    ord: int | float | str | None = None,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dim: Any = None,
    keepdim: bool = False,
) -> Any:
    """A norm as NumPy and PyTorch have it under one name: of vectors along one axis, of matrices
    in two axes; without axis that of a vector, of a matrix, or with `ord=None` of all elements.

    The shape is that of x without the axes, or with size 1 there under `keepdims`. With an `ord`,
    more than two axes are a `ShapeError`; an `ord` that there is not is an `OptionError`.

    >>> import retrograd as rg
    >>> rg.linalg.norm(rg.tensor([3.0, 4.0])).item()
    5.0
    """
    x = as_node(x)
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    rank = x.type.rank
    if axis is None and rank not in (1, 2):
        raise ShapeError(f"norm of {x.type} with ord={ord!r}: say along which axis or axes")
    axes = normal_axes(axis, rank, "norm")
    if len(axes) == 1 or (ord is None and len(axes) > 0):
        if isinstance(ord, str):
            raise OptionError(f"norm of vectors takes a number as ord, not {ord!r}")
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(f"norm is of vectors or of matrices, not over {len(axes)} axes")
    given = axes if axis is None else tuple(normal_axis(a, rank, "norm") for a in axis)
    order = (*(i for i in range(rank) if i not in axes), *given)
    y = as_node(matrix_norm(permute(x, order), ord=ord))
    return keep_dims(y, x.shape, axes, keepdims)
