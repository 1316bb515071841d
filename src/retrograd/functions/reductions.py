"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, NamedTuple, overload

from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import OptionError
from retrograd.functions.broadcasting import (
    as_node,
    keep_dims,
    normal_axes,
    normal_axis,
    one_axis,
    promote_to_float,
)
from retrograd.ir import (
    Dim,
    DType,
    Node,
    TensorType,
    as_dtype,
    bool_,
    float32,
    full,
    int64,
    product,
    uint64,
)
from retrograd.ops import elementwise as el
from retrograd.ops import reduce as ops
from retrograd.ops.complex import conj, real
from retrograd.ops.index import gather_along
from retrograd.ops.leaf import SizeOf
from retrograd.ops.shape import expand, reshape
from retrograd.tensor_type import Tensor

Axis = int | Sequence[int] | None
# The correction of a variance where none is given, told by identity from a 0.0 that is.
STANDARD = float("0")


def summed(x: Node) -> DType:
    """The dtype a sum is taken in: small integers and booleans are widened."""
    if x.dtype.is_inexact:
        return x.dtype
    return uint64 if x.dtype.kind == "uint" else int64


class ValuesAndIndices(NamedTuple):
    """What selects elements gives where it is called with PyTorch's `dim`: these, and where they
    stand along that axis."""

    values: Tensor
    indices: Tensor


def reduced(axis: Any, dim: Any, keepdims: bool, keepdim: bool) -> tuple[Any, bool]:
    """The axes to reduce and whether they are kept, by the standard's names or by PyTorch's, to
    which no axes mean all."""
    if isinstance(dim, tuple | list) and not dim:
        dim = None
    return one_axis(axis, dim), keepdims or keepdim


def _over(op: Callable[..., Any], x: Node, axis: Axis, keepdims: bool, what: str) -> Node:
    axes = normal_axes(axis, x.type.rank, what)
    return keep_dims(op(axes)(x) if axes else x, x.shape, axes, keepdims)


@op_function
def sum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """Sum over the given axes, all by default. Over no elements it is 0.

    Booleans and integers are summed in 64 bits unless a dtype is given. Floats are added up in
    blocks and these in pairs, half precision in float32: along each axis the error of a sum of n
    floats is at most `(128 + log2(n)) * eps` times the sum of their magnitudes, with the eps of the
    dtype they are added up in. Mostly it is a few eps.

    `[..., n, ...]` to the shape without the axes, or with size 1 there under `keepdims`. The
    cotangent is repeated along the axes. `AxisError` for an axis that x does not have, `ShapeError`
    for one named twice.

    >>> import retrograd as rg
    >>> abs(rg.sum(rg.full((1 << 20,), 0.1)).item() / (0.1 * 2**20) - 1) < 1e-6
    True
    >>> rg.sum([[1, 2], [3, 4]], axis=1).tolist()
    [3, 7]
    """
    if isinstance(dtype, bool):  # the second position is PyTorch's keepdim
        dtype, keepdim = None, dtype
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    x = as_node(x)
    x = el.cast(x, summed(x) if dtype is None else as_dtype(dtype))
    return _over(ops.ReduceSum, x, axis, keepdims, "sum")


@op_function
def prod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """Product over the given axes, all by default. Over no elements it is 1.

    Its gradient is exact where elements are zero.

    Booleans and integers are multiplied in 64 bits unless a dtype is given. The shape is that of x
    without the axes, or with size 1 there under `keepdims`. `AxisError` for an axis that x does not
    have.

    >>> import retrograd as rg
    >>> rg.prod([[1, 2], [3, 4]], axis=1).tolist()
    [2, 12]
    """
    if isinstance(dtype, bool):  # the second position is PyTorch's keepdim
        dtype, keepdim = None, dtype
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    x = as_node(x)
    x = el.cast(x, summed(x) if dtype is None else as_dtype(dtype))
    return _over(ops.ReduceProd, x, axis, keepdims, "prod")


@overload
def max(
    x: ArrayLike, /, axis: Axis = ..., *, keepdims: bool = ..., dim: None = ..., keepdim: bool = ...
) -> Tensor: ...
@overload
def max(
    x: ArrayLike, /, axis: None = ..., *, keepdims: bool = ..., dim: int, keepdim: bool = ...
) -> ValuesAndIndices: ...
@op_function_of_several
def max(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    dim: int | None = None,
    keepdim: bool = False,
) -> Any:
    """Maximum over the given axes; NaN if an element is NaN. Ties share the gradient equally.

    The shape is that of x without the axes, or with size 1 there under `keepdims`; the dtype stays.
    `AxisError` for an axis that x does not have, `ShapeError` over no elements, `DTypeError` for
    complex numbers.

    With PyTorch's `dim` in place of `axis` the result is a named tuple of `values` and `indices`,
    and the gradient of each value goes to the one element that its index names.

    >>> import retrograd as rg
    >>> rg.max([[1, 2], [3, 0]], axis=1).tolist()
    [2, 3]
    >>> rg.max(rg.tensor([[1, 2], [3, 0]]), dim=1).indices.tolist()
    [1, 0]
    """
    if dim is not None:
        return _picked(ops.ArgMax, as_node(x), one_axis(axis, dim), keepdims or keepdim, "max")
    _refuse_array(axis, "maximum")
    return _over(ops.ReduceMax, as_node(x), axis, keepdims or keepdim, "max")


@overload
def min(
    x: ArrayLike, /, axis: Axis = ..., *, keepdims: bool = ..., dim: None = ..., keepdim: bool = ...
) -> Tensor: ...
@overload
def min(
    x: ArrayLike, /, axis: None = ..., *, keepdims: bool = ..., dim: int, keepdim: bool = ...
) -> ValuesAndIndices: ...
@op_function_of_several
def min(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    dim: int | None = None,
    keepdim: bool = False,
) -> Any:
    """Minimum over the given axes; NaN if an element is NaN. Ties share the gradient equally.

    The shape is that of x without the axes, or with size 1 there under `keepdims`; the dtype stays.
    `AxisError` for an axis that x does not have, `ShapeError` over no elements, `DTypeError` for
    complex numbers.

    With PyTorch's `dim` in place of `axis` the result is a named tuple of `values` and `indices`,
    and the gradient of each value goes to the one element that its index names.

    >>> import retrograd as rg
    >>> rg.min([[1, 2], [3, 0]], axis=1).tolist()
    [1, 0]
    >>> rg.min(rg.tensor([[1, 2], [3, 0]]), dim=1).indices.tolist()
    [0, 1]
    """
    if dim is not None:
        return _picked(ops.ArgMin, as_node(x), one_axis(axis, dim), keepdims or keepdim, "min")
    _refuse_array(axis, "minimum")
    return _over(ops.ReduceMin, as_node(x), axis, keepdims or keepdim, "min")


def _picked(op: type[ops.ArgMax], x: Node, axis: int, keepdims: bool, what: str) -> Any:
    """The first extreme element along an axis, and its place."""
    at = normal_axis(axis, x.type.rank, what)
    places = op(at)(x)
    whole = reshape(places, tuple(1 if i == at else n for i, n in enumerate(x.shape)))
    values = gather_along(x, whole, at)
    if keepdims:
        return ValuesAndIndices._make((values, whole))
    return ValuesAndIndices._make((reshape(values, places.shape), places))


def _refuse_array(axis: Any, instead: str) -> None:
    """`torch.max(x, y)` is elementwise, and an array is no axis."""
    if hasattr(axis, "shape"):
        raise OptionError(f"an axis is an integer, not an array; write rg.{instead}(x, y)")


@op_function
def any(
    x: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """Whether an element is true (not zero).

    The result is boolean, of the shape of x without the axes, or with size 1 there under
    `keepdims`; False over no elements. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.any([[0, 2], [0, 0]], axis=1).tolist()
    [True, False]
    """
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    return _over(ops.ReduceAny, el.cast(as_node(x), bool_), axis, keepdims, "any")


@op_function
def all(
    x: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """Whether every element is true (not zero).

    The result is boolean, of the shape of x without the axes, or with size 1 there under
    `keepdims`; True over no elements. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.all([[1, 2], [3, 0]], axis=1).tolist()
    [True, False]
    """
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    return _over(ops.ReduceAll, el.cast(as_node(x), bool_), axis, keepdims, "all")


def count(x: Node, axes: Sequence[int], minus: int | float = 0) -> Node:
    """The number of elements along axes, as a scalar of x's dtype; less a correction, where NaN
    stands for what is not positive."""
    n = product(x.shape[a] for a in axes)
    if isinstance(n, Dim):
        left = SizeOf(n, x.dtype.real)() - minus
        some = el.gt(left, full(0, left.type))
        left = el.select(some, left, full(math.nan, left.type)) if minus else left
        return el.cast(left, x.dtype)
    return full(n - minus if n > minus or not minus else math.nan, TensorType(x.dtype, ()))


@op_function
def mean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """Arithmetic mean over the given axes, all by default; NaN over no elements. The error is that
    of `sum`, divided by n; half precision is rounded after the division.

    The shape is that of x without the axes, or with size 1 there under `keepdims`; booleans and
    integers are taken as float32, unless a dtype is given. `AxisError` for an axis that x does not
    have.

    >>> import retrograd as rg
    >>> rg.mean([[1.0, 2.0], [3.0, 5.0]], axis=1).tolist()
    [1.5, 4.0]
    """
    if isinstance(dtype, bool):  # the second position is PyTorch's keepdim
        dtype, keepdim = None, dtype
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    x = promote_to_float(x if dtype is None else el.cast(as_node(x), as_dtype(dtype)))
    axes = normal_axes(axis, x.type.rank, "mean")
    return keep_dims(mean_over(x, axes), x.shape, axes, keepdims)


def widened(x: Node) -> Node:
    """What sums of a node are computed from: half precision holds no sum of 65,520 ones."""
    return el.cast(x, float32) if x.dtype.is_half else x


def mean_over(x: Node, axes: Sequence[int], correction: int | float = 0) -> Node:
    """Sum over axes divided by the number of elements less the correction; axes are dropped. Half
    precision is rounded after the division."""
    wide = widened(x)
    total = ops.reduce_sum(wide, axes)
    return el.cast(el.div(total, expand_scalar(count(wide, axes, correction), total)), x.dtype)


def expand_scalar(x: Node, like: Node) -> Node:
    """A scalar repeated to the shape of another node."""
    return expand(x, like.shape, tuple(range(like.type.rank)))


def _deviating(
    axis: Any, correction: Any, keepdims: bool, dim: Any, keepdim: Any, unbiased: Any, what: str
) -> tuple[Any, Any, bool]:
    """Axes, correction and `keepdims` of a variance: a call with one of PyTorch's keywords has
    PyTorch's default of the correction, 1, any other the standard's and NumPy's, 0."""
    if isinstance(axis, bool):
        raise OptionError(f"{what}({axis}): is that whether it is unbiased? Write correction=")
    if unbiased is not None and correction is not STANDARD:
        raise OptionError(f"{what}: unbiased and correction say the same; give one")
    of_torch = dim is not ... or keepdim is not None or unbiased is not None
    if unbiased is not None:
        correction = int(unbiased)
    elif correction is STANDARD or correction is None:
        correction = 1 if of_torch else 0
    axis, keepdims = reduced(axis, None if dim is ... else dim, keepdims, bool(keepdim))
    return axis, correction, keepdims


@op_function
def var(
    x: ArrayLike,
    /,
    axis: Axis = None,
    correction: int | float | None = STANDARD,
    *,
    keepdims: bool = False,
    dim: Axis | EllipsisType = ...,
    keepdim: bool | None = None,
    unbiased: bool | None = None,
) -> Any:
    """Variance over the given axes: the mean square deviation, divided by `n - correction`; NaN
    where that is not positive. Of complex numbers that of the absolute deviation, a real number.

    The correction is 0 by default, as in the array API standard and NumPy. Where one of PyTorch's
    keywords `dim`, `keepdim` and `unbiased` is used it is 1, as in PyTorch: `axis=1` divides by n,
    `dim=1` by `n - 1`.

    The shape is that of x without the axes, or with size 1 there under `keepdims`; booleans and
    integers are taken as float32. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.var([1.0, 2.0, 3.0]).item(), rg.var([1.0, 2.0, 3.0], correction=1).item()
    (0.6667, 1.0)
    """
    axis, correction, keepdims = _deviating(
        axis, correction, keepdims, dim, keepdim, unbiased, "var"
    )
    x = promote_to_float(x)
    axes, dtype = normal_axes(axis, x.type.rank, "var"), x.dtype.real
    x = widened(x)
    deviation = x - expand(mean_over(x, axes), x.shape, axes)
    square = deviation * deviation
    if x.dtype.is_complex:
        square = real(deviation * conj(deviation))
    result = el.cast(mean_over(square, axes, correction), dtype)
    return keep_dims(result, x.shape, axes, keepdims)


@op_function
def std(
    x: ArrayLike,
    /,
    axis: Axis = None,
    correction: int | float | None = STANDARD,
    *,
    keepdims: bool = False,
    dim: Axis | EllipsisType = ...,
    keepdim: bool | None = None,
    unbiased: bool | None = None,
) -> Any:
    """Standard deviation over the given axes: the square root of `var`. Its gradient is 0 where the
    deviation is.

    The correction is 0 by default, as in the array API standard and NumPy. Where one of PyTorch's
    keywords `dim`, `keepdim` and `unbiased` is used it is 1, as in PyTorch: `axis=1` divides by n,
    `dim=1` by `n - 1`.

    The shape is that of x without the axes, or with size 1 there under `keepdims`; booleans and
    integers are taken as float32. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.std([1.0, 2.0, 3.0]).item()
    0.8165
    """
    axis, correction, keepdims = _deviating(
        axis, correction, keepdims, dim, keepdim, unbiased, "std"
    )
    return root(el.sqrt, as_node(var(as_node(x), axis, correction, keepdims=keepdims)))


def root(f: Callable[[Node], Node], x: Node) -> Node:
    """`f(x)` for a function such as a root, which is 0 at 0 and infinitely steep there; in place of
    that slope, which times 0 would be NaN, the gradient is 0."""
    zero = el.eq(x, full(0, x.type))
    y = f(el.select(zero, full(1, x.type), x))
    return el.select(zero, full(0, y.type), y)


@op_function
def logsumexp(
    x: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """`log(sum(exp(x)))` over the given axes without overflow; -inf where all elements are.

    The shape is that of x without the axes, or with size 1 there under `keepdims`; booleans and
    integers are taken as float32. Derivative: `softmax(x)`. `AxisError` for an axis that x does not
    have.

    >>> import retrograd as rg
    >>> rg.logsumexp([1000.0, 1000.0]).item()
    1000.693
    """
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    return _over(ops.LogSumExp, promote_to_float(x), axis, keepdims, "logsumexp")


def _position(op: type[ops.ArgMax], x: Node, axis: int | None, keepdims: bool, what: str) -> Node:
    shape = x.shape
    if axis is None:
        y = op(0)(reshape(x, (product(shape),)))
        return keep_dims(y, shape, range(len(shape)), keepdims)
    at = normal_axis(axis, len(shape), what)
    return keep_dims(op(at)(x), shape, (at,), keepdims)


@op_function
def argmax(
    x: ArrayLike,
    /,
    axis: int | None = None,
    keepdims: bool = False,
    *,
    dim: int | None = None,
    keepdim: bool = False,
) -> Any:
    """Index of the first maximum along an axis, or in the flattened array; int64.

    The shape is that of x without the axis, or with size 1 there under `keepdims`. `AxisError` for
    an axis that x does not have, `ShapeError` over no elements, `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.argmax([[1, 2], [3, 0]], axis=1).tolist()
    [1, 0]
    """
    axis, keepdims = one_axis(axis, dim), keepdims or keepdim
    return _position(ops.ArgMax, as_node(x), axis, keepdims, "argmax")


@op_function
def argmin(
    x: ArrayLike,
    /,
    axis: int | None = None,
    keepdims: bool = False,
    *,
    dim: int | None = None,
    keepdim: bool = False,
) -> Any:
    """Index of the first minimum along an axis, or in the flattened array; int64.

    The shape is that of x without the axis, or with size 1 there under `keepdims`. `AxisError` for
    an axis that x does not have, `ShapeError` over no elements, `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.argmin([[1, 2], [3, 0]], axis=1).tolist()
    [0, 1]
    """
    axis, keepdims = one_axis(axis, dim), keepdims or keepdim
    return _position(ops.ArgMin, as_node(x), axis, keepdims, "argmin")


@op_function
def count_nonzero(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """How many elements are not zero along the given axes, all by default; int64. NaN is not zero.

    The shape is that of x without the axes, or with size 1 there under `keepdims`. `AxisError` for
    an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.count_nonzero([[0, 1], [2, 3]], axis=1).tolist()
    [1, 2]
    """
    axis, keepdims = reduced(axis, dim, keepdims, keepdim)
    x = el.cast(el.cast(as_node(x), bool_), int64)
    return _over(ops.ReduceSum, x, axis, keepdims, "count_nonzero")
