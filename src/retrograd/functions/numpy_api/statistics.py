"""Weighted means, covariances, and statistics that leave out NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ParamSpec

from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions import reductions, scans
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    broadcast_to,
    listed_axes,
    normal_axes,
    promote_to_float,
)
from retrograd.functions.complex import conj
from retrograd.functions.contractions import matmul
from retrograd.functions.linalg.determinants import diagonal
from retrograd.functions.manipulation import matrix_transpose, moveaxis
from retrograd.functions.reductions import Axis, root, summed
from retrograd.functions.searching import flat
from retrograd.functions.sorting import METHODS, places_between
from retrograd.ir import Node, TensorType, as_dtype, float64, full, int64, product
from retrograd.ops import elementwise as el
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.index import gather_along
from retrograd.ops.leaf import constant
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Concat, expand, permute, reshape
from retrograd.ops.sort import Sort
from retrograd.tensor_type import Tensor

P = ParamSpec("P")


@op_function
def ptp(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The largest element along the given axes less the smallest ("peak to peak").

    The shape is that of x without the axes, or with size 1 there under `keepdims`. `AxisError` for
    an axis that x does not have, `ShapeError` over no elements.

    >>> import retrograd as rg
    >>> rg.ptp([[1, 5], [2, 2]], axis=1).tolist()
    [4, 0]
    """
    x = as_node(x)
    high, low = (of(x, axis=axis, keepdims=keepdims) for of in (reductions.max, reductions.min))
    return f.subtract(high, low)


def average(
    x: ArrayLike,
    /,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The mean over the given axes, weighted: `sum(w x) / sum(w)`; with `returned`, also the sum of
    the weights.

    The weights have the shape of x, or that of the axes. The shape is that of x without the axes,
    or with size 1 there under `keepdims`. `ShapeError` for other weights, `AxisError` for an axis
    that x does not have.

    >>> import retrograd as rg
    >>> rg.average([1.0, 2.0, 4.0], weights=[1.0, 1.0, 2.0]).item()
    2.75
    """
    mean, total = _average(x, axis, weights, keepdims)
    return (mean, total) if returned else mean


@op_function
def _average(x: ArrayLike, axis: Axis, weights: ArrayLike | None, keepdims: bool, /) -> Any:
    x = promote_to_float(x)
    axes = normal_axes(axis, x.type.rank, "average")
    if weights is None:
        mean = reductions.mean(x, axis=axes, keepdims=keepdims)
        return mean, broadcast_to(reductions.count(x, axes), mean.shape)
    x, w = alike(x, weights, floating=True)
    if w.shape != x.shape:
        given = axes if axis is None else axis
        listed = listed_axes(given, x.type.rank, "average")
        if w.shape != tuple(x.shape[a] for a in listed):
            raise ShapeError(
                f"average of {x.type} over the axes {listed} with weights {w.type}: weights have "
                "the shape of x, or that of the axes"
            )
        order = sorted(range(len(listed)), key=lambda i: listed[i])
        others = [i for i in range(x.type.rank) if i not in listed]
        w = expand(permute(w, order), x.shape, others)
    total = reductions.sum(w, axis=axes, keepdims=keepdims)
    return reductions.sum(x * w, axis=axes, keepdims=keepdims) / total, total


# -- covariance ------------------------------------------------------------------------------------
@op_function
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: Any = None,
) -> Any:
    """The covariances of variables, which are the rows (or columns, without `rowvar`), over
    observations; `y` are more of them. The sum of products is divided by `n - 1`, with `bias` by n,
    or by `n - ddof`. `fweights` say how often each observation counts, `aweights` how much.

    `[k, n]` to `[k, k]`, a vector to a number. `ShapeError` for arrays of more than two axes or
    weights that are no vector of n elements.

    >>> import retrograd as rg
    >>> rg.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    x = _variables(m, rowvar)
    if y is not None:
        x = Concat(0)(*alike(x, _variables(y, rowvar), floating=True))
    x = el.cast(x, as_dtype(dtype)) if dtype is not None else promote_to_float(x)
    n = x.shape[1]
    w: Any = None
    for given in (fweights, aweights):
        if given is None:
            continue
        weight = el.cast(as_node(given), x.dtype.real)
        if weight.shape != (n,):
            raise ShapeError(f"cov of {n} observations with weights {weight.type}")
        w = weight if w is None else w * weight
    correction = ddof if ddof is not None else 0 if bias else 1
    centre = _average(x, 1, None if w is None else el.cast(w, x.dtype), True)[0]
    deviation = f.subtract(x, centre)
    if w is None:
        scale: Any = reductions.count(x, (1,), correction)
        weighted = deviation
    else:
        total = reductions.sum(w)
        if aweights is None or correction == 0:
            scale = total - correction
        else:
            own = el.cast(as_node(aweights), w.dtype)
            scale = total - f.divide(f.multiply(correction, reductions.sum(w * own)), total)
        weighted = f.multiply(deviation, w)
    products = matmul(weighted, conj(matrix_transpose(deviation)))
    found = as_node(f.divide(products, el.cast(scale, x.dtype)))
    return reshape(found, ()) if found.shape == (1, 1) else found


def _variables(m: Any, rowvar: bool) -> Node:
    x = promote_to_float(m)
    if x.type.rank > 2:
        raise ShapeError(f"cov takes a vector or a matrix of variables, not {x.type}")
    if x.type.rank < 2:
        return reshape(x, (1, x.type.size))
    return x if rowvar else as_node(matrix_transpose(x))


@op_function
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: Any = None
) -> Any:
    """Pearson's correlation coefficients of variables, which are the rows (or columns, without
    `rowvar`): the covariances divided by both standard deviations. NaN of a variable that does not
    vary.

    `[k, n]` to `[k, k]`, a vector to a number. `ShapeError` for arrays of more than two axes.

    >>> import retrograd as rg
    >>> rg.corrcoef([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    c = as_node(cov(as_node(x), None if y is None else as_node(y), rowvar, dtype=dtype))
    if c.type.rank == 0:
        return f.divide(c, c)
    n = c.shape[0]
    spread = as_node(f.sqrt(real(as_node(diagonal(c)))))
    found = as_node(f.divide(f.divide(c, reshape(spread, (n, 1))), spread))
    if found.dtype.is_complex:
        return complex_(*(as_node(f.clip(p, -1, 1)) for p in (real(found), imag(found))))
    return _limited(found)


def _limited(x: Node) -> Node:
    """Rounding errors beyond 1 cut off; the slope at the ends, which `clip` has none, is kept."""
    one = full(1, x.type)
    return el.select(x > one, one, el.select(x < full(-1, x.type), full(-1, x.type), x))


# -- without NaN -----------------------------------------------------------------------------------
def _filled(x: Any, value: float) -> Node:
    """A node with a number in place of NaN."""
    node = as_node(x)
    if not node.dtype.is_inexact:
        return node
    return el.select(as_node(f.isnan(node)), full(value, node.type), node)


def _present(x: Node) -> Node:
    """Where there is a number, as 1; else 0."""
    dtype = x.dtype.real if x.dtype.is_inexact else float64
    if not x.dtype.is_inexact:
        return full(1, x.type.with_dtype(dtype))
    return el.cast(el.bitwise_not(as_node(f.isnan(x))), dtype)


_NAN_DOC = """{what} over the given axes, all by default, with NaN left out{empty}.

    The shape is that of x without the axes, or with size 1 there under `keepdims`; the gradient of
    a NaN is 0. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.{name}([[1.0, rg.nan], [2.0, 3.0]], axis=1).tolist()
    {example}
    """


def _named(
    name: str, what: str, empty: str, example: str
) -> Callable[[Callable[P, Any]], Callable[P, Tensor]]:
    def decorate(call: Callable[P, Any]) -> Callable[P, Tensor]:
        call.__name__ = call.__qualname__ = name
        call.__doc__ = _NAN_DOC.format(name=name, what=what, empty=empty, example=example)
        return op_function(call)

    return decorate


@_named("nansum", "The sum", "; 0 where nothing is left", "[1.0, 5.0]")
def nansum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    axis, keepdims = reductions.reduced(axis, dim, keepdims, keepdim)
    return reductions.sum(_filled(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@_named("nanprod", "The product", "; 1 where nothing is left", "[1.0, 6.0]")
def nanprod(
    x: ArrayLike, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    return reductions.prod(_filled(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def _extreme(x: Any, axis: Axis, keepdims: bool, of: Callable[..., Any], end: float) -> Node:
    node = as_node(x)
    found = of(_filled(node, end), axis=axis, keepdims=keepdims)
    if not node.dtype.is_inexact:
        return found
    none = reductions.all(f.isnan(node), axis=axis, keepdims=keepdims)
    return el.select(as_node(none), full(math.nan, found.type), found)


@_named("nanmax", "The maximum", "; NaN where nothing is left. Ties share the gradient",
        "[1.0, 3.0]")  # fmt: skip
def nanmax(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return _extreme(x, axis, keepdims, reductions.max, -math.inf)


@_named("nanmin", "The minimum", "; NaN where nothing is left. Ties share the gradient",
        "[1.0, 2.0]")  # fmt: skip
def nanmin(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return _extreme(x, axis, keepdims, reductions.min, math.inf)


def _place(x: Any, axis: int | None, keepdims: bool, of: Callable[..., Any], end: float) -> Node:
    node = as_node(x)
    found = of(_filled(node, end), axis=axis, keepdims=keepdims)
    if not node.dtype.is_inexact:
        return found
    none = reductions.all(f.isnan(node), axis=axis, keepdims=keepdims)
    return el.select(as_node(none), full(-1, found.type), found)


@_named("nanargmax", "The index of the first maximum, int64,", "; -1 where nothing is left",
        "[0, 1]")  # fmt: skip
def nanargmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Any:
    return _place(x, axis, keepdims, reductions.argmax, -math.inf)


@_named("nanargmin", "The index of the first minimum, int64,", "; -1 where nothing is left",
        "[0, 0]")  # fmt: skip
def nanargmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Any:
    return _place(x, axis, keepdims, reductions.argmin, math.inf)


@_named("nanmean", "The arithmetic mean", "; NaN where nothing is left", "[1.0, 2.5]")
def nanmean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    axis, keepdims = reductions.reduced(axis, dim, keepdims, keepdim)
    x = promote_to_float(x)
    wide = reductions.widened(x)
    count = as_node(reductions.sum(_present(wide), axis=axis, keepdims=keepdims))
    total = as_node(reductions.sum(_filled(wide, 0), axis=axis, keepdims=keepdims))
    return el.cast(el.div(total, el.cast(count, total.dtype)), x.dtype)


@_named("nanvar", "The variance, divided by the number of elements less `correction`,",
        "; NaN where that is not positive", "[0.0, 0.25]")  # fmt: skip
def nanvar(
    x: ArrayLike, /, axis: Axis = None, correction: float = 0, *, keepdims: bool = False
) -> Any:
    x = promote_to_float(x)
    wide = reductions.widened(x)
    centre = as_node(nanmean(wide, axis=axis, keepdims=True))
    deviation = wide - broadcast_to(centre, wide.shape)  # NaN of an infinity, too, which stays
    deviation = el.select(as_node(f.isnan(wide)), full(0, wide.type), deviation)
    square = deviation * deviation
    if wide.dtype.is_complex:
        square = real(as_node(deviation * conj(deviation)))
    total = as_node(reductions.sum(square, axis=axis, keepdims=keepdims))
    count = as_node(reductions.sum(_present(wide), axis=axis, keepdims=keepdims)) - correction
    count = el.select(count > 0, count, full(math.nan, count.type))
    return el.cast(el.div(total, el.cast(count, total.dtype)), x.dtype.real)


@_named("nanstd", "The standard deviation,", "; the gradient is 0 where it is",
        "[0.0, 0.5]")  # fmt: skip
def nanstd(
    x: ArrayLike, /, axis: Axis = None, correction: float = 0, *, keepdims: bool = False
) -> Any:
    return root(el.sqrt, as_node(nanvar(as_node(x), axis, correction, keepdims=keepdims)))


def _running(x: Any, axis: int | None, dtype: Any, value: int, of: Callable[..., Any]) -> Node:
    node = _filled(x, value)
    node = el.cast(node, summed(node) if dtype is None else as_dtype(dtype))
    return of(flat(node) if axis is None else node, axis=0 if axis is None else axis)


@op_function
def nancumsum(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Any:
    """The running sum along an axis, NaN counting as 0; None flattens first.

    The shape of x. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.nancumsum([1.0, rg.nan, 2.0]).tolist()
    [1.0, 1.0, 3.0]
    """
    return _running(x, axis, dtype, 0, scans.cumulative_sum)


@op_function
def nancumprod(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Any:
    """The running product along an axis, NaN counting as 1; None flattens first.

    The shape of x. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.nancumprod([2.0, rg.nan, 3.0]).tolist()
    [2.0, 2.0, 6.0]
    """
    return _running(x, axis, dtype, 1, scans.cumulative_prod)


@op_function
def nanquantile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
) -> Any:
    """`quantile` with NaN left out; NaN where nothing is left.

    The shape is that of q, then that of x without the axes. `OptionError` for numbers q out of
    range or another method, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.nanquantile([1.0, rg.nan, 3.0], 0.5).item()
    2.0
    """
    if method not in METHODS:
        raise OptionError(f"nanquantile: method is one of {', '.join(METHODS)}, not {method!r}")
    x = promote_to_float(x)
    axis, keepdims = reductions.reduced(axis, dim, keepdims, keepdim)
    shares = el.cast(q, float64) if isinstance(q, Node) else constant(as_array(q, float64))
    if not isinstance(q, Node) and not ((as_array(q) >= 0) & (as_array(q) <= 1)).all():
        raise OptionError(f"nanquantile: q is between 0 and 1, not {q!r:.80}")
    axes = normal_axes(axis, x.type.rank, "nanquantile")
    kept = [i for i in range(x.type.rank) if i not in axes]
    n = product(x.shape[i] for i in axes)
    lead = tuple(x.shape[i] for i in kept)
    rows = Sort(len(kept))(reshape(permute(x, (*kept, *axes)), (*lead, n)))  # NaN at the end
    nothing = TensorType(x.dtype, (*shares.shape, *lead))
    found = full(float("nan"), nothing) if n == 0 else _of_rows(rows, shares, method)
    if not keepdims:
        return found
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
    return reshape(found, (*shares.shape, *shape))


def _of_rows(rows: Node, shares: Node, method: str) -> Node:
    """Quantiles of sorted rows `[..., n]`, the shares in front."""
    lead, k = rows.shape[:-1], shares.type.size
    count = ReduceSum((len(lead),))(el.cast(_present(rows), float64))
    wide = (*lead, k)
    last = el.max(expand(count, wide, (len(lead),)) - 1, full(0, count.type.with_shape(wide)))
    share = expand(reshape(shares, (k,)), wide, range(len(lead)))
    low, high, part = places_between(share, last, method)
    a = gather_along(rows, el.cast(low, int64), len(lead))
    if part is not None:
        b, part = gather_along(rows, el.cast(high, int64), len(lead)), el.cast(part, a.dtype)
        step = el.select(el.eq(a, b), full(0, a.type), b - a)
        a = el.select(part < 0.5, a + el.zmul(part, step), b - el.zmul(1 - part, step))
    y = as_node(moveaxis(a, len(lead), 0))
    return reshape(y, (*shares.shape, *lead))


@op_function
def nanpercentile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """`nanquantile` for shares in percent, from 0 to 100.

    Shapes and errors are those of `nanquantile`: `OptionError` for numbers out of range.

    >>> import retrograd as rg
    >>> rg.nanpercentile([1.0, rg.nan, 3.0], 50).item()
    2.0
    """
    share = el.cast(q, float64) / 100 if isinstance(q, Node) else as_array(q, float64) / 100
    return nanquantile(as_node(x), share, axis, method=method, keepdims=keepdims)


@_named("nanmedian", "The middle of the elements", "; NaN where nothing is left", "[1.0, 2.5]")
def nanmedian(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return nanquantile(as_node(x), 0.5, axis, keepdims=keepdims)
